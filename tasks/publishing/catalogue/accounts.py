"""Budgets over time, as the public chain tells them: days and amounts, of populations of which something is published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.budget import show_nanos
from steps_engine.accounting.measures import MEASURES, PURE
from tasks.stores.public_chain import PublicEntry


class Step(NamedTuple):
    """What was left of a budget at the end of this day; `releases`: the published ones that were charged on it."""

    day: str
    left: int
    granted: int
    releases: tuple[str, ...]


class Run(NamedTuple):
    """A scheduled run that will be charged: its day, and what would be left; below zero: not covered."""

    day: str
    left: int


class Ahead(NamedTuple):
    """What the schedules will ask of a population, seen from a day."""

    seen_on: str
    runs: tuple[Run, ...]
    dry_on: str | None


@dataclass(frozen=True)
class Account:
    """One population's budget. Charges of what is not published are in the sums, and are not named."""

    population: str
    symbol: str
    unit: str
    steps: tuple[Step, ...]
    ahead: Ahead | None = None

    @property
    def granted(self) -> str:
        return show_nanos(self.steps[-1].granted)

    @property
    def left(self) -> str:
        return show_nanos(self.steps[-1].left)

    @property
    def spent(self) -> str:
        return show_nanos(self.steps[-1].granted - self.steps[-1].left)

    @property
    def percent(self) -> float:
        """How much of what was granted is spent."""
        last = self.steps[-1]
        return 100 * (last.granted - last.left) / last.granted if last.granted else 0.0


def accounts_of(chain: Iterable[PublicEntry], published: Mapping[str, str], ahead: Mapping[str, Ahead]) -> list[Account]:
    """`published`: of each release in the catalogue its population."""
    entries = [entry.content for entry in chain if entry.content["kind"] in ("grant", "charge")]
    found = []
    for population in sorted(set(published.values())):
        own = [entry for entry in entries if entry["population"] == population]
        measure = next((entry["measure"] for entry in own if "measure" in entry), PURE.name)
        unit = next((str(entry["shown"]["unit"]) for entry in own if entry["kind"] == "grant"), "person")
        if own:
            found.append(Account(population, MEASURES[measure].symbol, unit, _steps(own, published), ahead.get(population)))
    return found


def _steps(entries: Sequence[dict[str, Any]], published: Mapping[str, str]) -> tuple[Step, ...]:
    """One for each day on which something was granted or charged."""
    days: dict[str, Step] = {}
    for entry in entries:
        before = days[entry["date"]].releases if entry["date"] in days else ()
        charged = (entry["release"],) if entry["release"] in published else ()
        left = entry["granted_after"] - entry["charged_after"]
        days[entry["date"]] = Step(entry["date"], left, entry["granted_after"], (*before, *charged))
    return tuple(days[day] for day in sorted(days))


def days_of(account: Account) -> Sequence[str]:
    """Every day that the picture shows."""
    later = [account.ahead.seen_on, *(run.day for run in account.ahead.runs)] if account.ahead else []
    return sorted([*(step.day for step in account.steps), *later])
