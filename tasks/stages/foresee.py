"""Foresee: what releases that are due will ask of each population, against what is left, and when that is not enough."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from schemas.budget import UNIT, show_nanos
from schemas.spec.release import Release
from steps_engine.accounting.measures import MEASURES
from steps_engine.accounting.plans import allowance_of
from tasks.stores.acts import waves_of
from tasks.stores.charging import Account, ChargeRequest, cost_in
from tasks.stores.home import Home
from tasks.stores.ledger import ledger_if_any, open_ledger
from tasks.stores.waves import Loss


@dataclass(frozen=True)
class Need:
    """What is due for a population, in the measure of its budget; without a grant nothing is left of it."""

    population: str
    measure: str
    needed: int
    left: int
    releases: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        return self.needed > self.left

    @property
    def text(self) -> str:
        symbol = MEASURES[self.measure].symbol
        return (
            f'population "{self.population}": {symbol} = {show_nanos(self.needed)} is scheduled ({", ".join(self.releases)}), '
            f"{show_nanos(self.left)} is left. Extend the grant, or take releases off the schedule."
        )


class Due(NamedTuple):
    """A release, and when a schedule runs it."""

    release: Release
    at: datetime.datetime


@dataclass(frozen=True)
class Run:
    """A run that will pay; `cost` None: it has no price in the measure of the budget, and will be refused."""

    release: str
    due: datetime.datetime
    cost: int | None


@dataclass(frozen=True)
class Outlook:
    """A population's runs in the order in which they are due, and how far its balance goes."""

    population: str
    measure: str
    balance: int
    granted: bool
    runs: tuple[Run, ...]

    @property
    def left(self) -> list[int]:
        """What would be left after each run, were all of them paid; below zero: not covered."""
        return [self.balance - spent for spent in accumulate(run.cost or 0 for run in self.runs)]

    @property
    def covers(self) -> int:
        """How many runs are paid before one is not covered."""
        paid = [run.cost is not None for run, left in zip(self.runs, self.left, strict=True) if left >= 0]
        return sum(paid)

    @property
    def dry_on(self) -> datetime.datetime | None:
        """When the first run is due that the balance does not cover."""
        return next((run.due for run, left in zip(self.runs, self.left, strict=True) if left < 0), None)


def forecast(home: Home, due: Iterable[Due]) -> list[Outlook]:
    """Of each population that has a grant or a run that is due. What is paid already asks nothing, a name is paid once."""
    ledger = ledger_if_any(home)
    accounts = {account.population: account for account in ledger.accounts()} if ledger else {}
    seen = {release.name for release in ledger.releases()} if ledger else set()
    paying: dict[str, list[Due]] = {population: [] for population in accounts}
    for each in sorted(due, key=lambda each: each.at):
        if each.release.name not in seen:
            seen.add(each.release.name)
            paying.setdefault(each.release.domain.population, []).append(each)
    return [_outlook(name, runs, accounts.get(name)) for name, runs in paying.items()]


@dataclass(frozen=True)
class Lifetime:
    """Populations that share people under a cap, and the runs on any of them in the order in which they are due."""

    loss: Loss
    runs: tuple[Run, ...]

    @property
    def reached_on(self) -> datetime.datetime | None:
        """When the first run is due that the cap refuses, were those before it paid."""
        totals = accumulate((run.cost or 0 for run in self.runs), initial=self.loss.total)
        capped = self.loss.cap.nanos if self.loss.cap else None
        return next((run.due for run, total in zip(self.runs, [*totals][1:], strict=True) if capped and total > capped), None)


def lifetimes(home: Home, due: Iterable[Due]) -> list[Lifetime]:
    """One for each capped group of populations, as they will be once the releases that are due have said who shares people."""
    ledger = ledger_if_any(home)
    if ledger is None:
        return []
    waves, paid = waves_of(ledger), {release.name for release in ledger.releases()}
    paying = {each.release.name: each for each in sorted(due, key=lambda each: each.at, reverse=True)}
    runs = sorted((each for name, each in paying.items() if name not in paid), key=lambda each: each.at)
    for each in runs:
        waves.join(each.release.domain.population, each.release.domain.overlaps)
    groups = [group for group in dict.fromkeys(map(waves.group, waves.caps)) if waves.unsummable(group) is None]
    return [Lifetime(loss, _runs_on(loss, runs)) for group in groups if (loss := waves.loss(group)) is not None]


def _runs_on(loss: Loss, due: list[Due]) -> tuple[Run, ...]:
    on = (each for each in due if each.release.domain.population in loss.populations)
    return tuple(Run(each.release.name, each.at, _cost(each.release, loss.measure)) for each in on)


def _outlook(population: str, due: list[Due], account: Account | None) -> Outlook:
    measure = account.measure if account else due[0].release.spec.privacy.measure
    runs = (Run(each.release.name, each.at, _cost(each.release, measure)) for each in due)
    return Outlook(population, measure, account.balance if account else 0, account is not None, tuple(runs))


def needs(home: Home, due: Iterable[Release]) -> list[Need]:
    """One for each population. What was charged already asks nothing, and a name is paid once however often it is due."""
    ledger = open_ledger(home)
    accounts = {account.population: account for account in ledger.accounts()}
    paid = {release.name for release in ledger.releases()}
    asked = {release.name: release for release in due if release.name not in paid}
    populations = dict.fromkeys(release.domain.population for release in asked.values())
    return [
        _need(name, [each for each in asked.values() if each.domain.population == name], accounts.get(name))
        for name in populations
    ]


def _need(population: str, due: list[Release], account: Account | None) -> Need:
    measure = account.measure if account else due[0].spec.privacy.measure
    costs = (_cost(release, measure) for release in due)
    return Need(
        population=population,
        measure=measure,
        needed=sum(cost for cost in costs if cost is not None),
        left=account.balance if account else 0,
        releases=tuple(release.name for release in due),
    )


def _cost(release: Release, measure: str) -> int | None:
    """In 10⁻⁹ of the measure, by the rule of the charge; None: it has no price there, and its run will be refused."""
    allowance = allowance_of(release)
    asked = ChargeRequest(
        release=release.name, population=release.domain.population, nanos=-(-allowance.total * UNIT // 1),
        measure=allowance.measure.name, neighbours="", unit="", plan_hash="", spec_hash="", fingerprint="",
    )  # fmt: skip
    return cost_in(measure, asked)
