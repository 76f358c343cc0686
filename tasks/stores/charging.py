"""What a charge must satisfy: pure rules over an account and a release's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.budget import LARGEST, show_nanos
from schemas.errors import BudgetRefused, SpecError
from schemas.identity import PLAN_FORMAT

from .entries import Entry
from .releases import current, state_of


@dataclass(frozen=True)
class Account:
    """A population's budget in 10⁻⁹, with the relation and the unit that its first grant fixed."""

    population: str
    granted: int
    charged: int
    neighbours: str
    unit: str

    @property
    def balance(self) -> int:
        return self.granted - self.charged


@dataclass(frozen=True)
class ChargeRequest:
    """What a release asks to pay for: its plan's whole cost, tied to the plan, the spec and the data."""

    release: str
    population: str
    nanos: int
    neighbours: str
    unit: str
    plan_hash: str
    spec_hash: str
    fingerprint: str = field(repr=False)  # a keyed hash of the data; stays in the ledger
    context: dict[str, Any] = field(default_factory=dict)  # flow run, versions; approval: "required" makes it wait
    plan_format: int = PLAN_FORMAT  # in which `plan_hash` and `spec_hash` were computed

    def body(self, attempt: int) -> dict[str, Any]:
        terms = ("neighbours", "unit", "plan_hash", "spec_hash", "plan_format", "fingerprint", "context")
        return {name: getattr(self, name) for name in terms} | {"attempt": attempt}


@dataclass(frozen=True)
class Charge:
    """A durable, anchored charge. `new` is False when it was there already; `attempt` is above 1 after a burnt one."""

    entry: Entry
    new: bool

    @property
    def attempt(self) -> int:
        return int(self.entry.details["attempt"])


def must_be_amount(nanos: int) -> None:
    if isinstance(nanos, bool) or not isinstance(nanos, int) or not 0 < nanos <= LARGEST:
        raise SpecError(f"ε must be a positive whole number of 10⁻⁹, at most {show_nanos(LARGEST)}; not {nanos!r}.")


def must_share_relation(account: Account, neighbours: str, unit: str) -> None:
    """ε under one relation or unit says nothing about another: a population's charges must all mean the same."""
    if (neighbours, unit) != (account.neighbours, account.unit):
        raise SpecError(
            f'neighbours "{neighbours}" and unit "{unit}" were asked; the budget of population "{account.population}" '
            f'is for neighbours "{account.neighbours}" and unit "{account.unit}", and that cannot change.'
        )


def must_be_in_relation(request: ChargeRequest, account: Account) -> None:
    """A charge is made under the relation and the unit of the grant; says which key would have to say so."""
    if request.neighbours != account.neighbours:
        raise SpecError(
            f'release "{request.release}" has neighbours "{request.neighbours}"; the budget of population '
            f'"{account.population}" is for neighbours "{account.neighbours}", and that cannot change. Write '
            f"privacy: {{neighbours: {account.neighbours}}} in release.yaml, or use another population."
        )
    if request.unit != account.unit:
        raise SpecError(
            f'release "{request.release}" protects unit "{request.unit}"; the budget of population "{account.population}" '
            f'is for unit "{account.unit}", and that cannot change. Write unit: {{who: {account.unit}}} in dataset.yaml, '
            f"with rows_per_person the most rows that one {account.unit} has, or use another population."
        )


def must_be_same_release(request: ChargeRequest, history: Sequence[Entry]) -> None:
    """A name that was charged belongs to one spec and one data set, and may not come back from a refusal."""
    must_not_be_undone(request.release, history)
    charge = current(history)[0]
    was, now = charge.details, request.body(attempt=0)
    spec = (charge.amount, charge.population) != (request.nanos, request.population) or any(
        was[name] != now[name] for name in ("spec_hash", "plan_hash", "neighbours", "unit")
    )
    data = was["fingerprint"] != now["fingerprint"]
    if spec or data:
        differs = " and ".join(["another spec"] * spec + ["other data"] * data)
        raise SpecError(
            f'release "{request.release}" exists already, with {differs}. Choose another name, or run it as it was.'
        )


def must_not_be_undone(release: str, history: Sequence[Entry]) -> None:
    """What was rejected or abandoned stays so, whatever the data."""
    state = state_of(history)
    if state in ("rejected", "abandoned"):
        raise SpecError(f'release "{release}" was {state}: it stays charged and is never published. Choose another name.')


def must_be_affordable(request: ChargeRequest, account: Account | None) -> None:
    """charged + asked ≤ granted, under the granted relation."""
    if account is None:
        raise BudgetRefused(no_grant(request.population))
    must_be_in_relation(request, account)
    if request.nanos > account.balance:
        raise BudgetRefused(
            f'release "{request.release}" asks ε={show_nanos(request.nanos)}; {show_nanos(account.balance)} of '
            f'{show_nanos(account.granted)} is left for population "{account.population}". Lower epsilon or extend '
            f'the grant: steps budget grant {account.population} EPSILON --why "…"'
        )


def no_grant(population: str) -> str:
    return (
        f'population "{population}" has no grant, so nothing can be charged to it. '
        f'Grant a budget first: steps budget grant {population} EPSILON --why "…"'
    )
