"""What a charge must satisfy: pure rules over an account and a release's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from schemas.budget import LARGEST, parse_nanos, parse_quoted, show_nanos
from schemas.errors import BudgetRefused, SpecError
from schemas.identity import PLAN_FORMAT
from steps_engine.accounting.measures import MEASURES

from .entries import Entry
from .releases import UNDONE, current, state_of
from .waves import Loss, in_rho

if TYPE_CHECKING:
    from schemas.plan import Plan

_ARGUMENT = {"pure": "EPSILON", "zcdp": "--rho RHO"}  # of `steps budget grant`


@dataclass(frozen=True)
class Account:
    """A population's budget in 10⁻⁹ of a measure, with the relation, the unit and the measure that its first grant fixed."""

    population: str
    granted: int
    charged: int
    neighbours: str
    unit: str
    measure: str = "pure"
    delta: str | None = None  # of a budget in ρ: where ε is quoted
    loss: Loss | None = None  # of somebody in all populations that share people with it; None: no others, and no cap

    @property
    def balance(self) -> int:
        return self.granted - self.charged

    @property
    def symbol(self) -> str:
        return MEASURES[self.measure].symbol


@dataclass(frozen=True)
class ChargeRequest:
    """What a release asks to pay for: its plan's whole cost in its measure, tied to the plan, the spec and the data."""

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
    measure: str = "pure"
    overlaps: tuple[str, ...] = ()  # other populations that share people with its own

    def body(self, attempt: int) -> dict[str, Any]:
        terms = ("neighbours", "unit", "plan_hash", "spec_hash", "plan_format", "fingerprint", "context")
        shared = {"overlaps": sorted(self.overlaps)} if self.overlaps else {}
        return {name: getattr(self, name) for name in terms} | {"attempt": attempt} | shared


def asked_by(
    plan: Plan, fingerprint: str = "", context: dict[str, Any] | None = None, overlaps: tuple[str, ...] = ()
) -> ChargeRequest:
    """What a plan asks to pay for; without a fingerprint its price can be told, but nothing is charged by it."""
    return ChargeRequest(
        release=plan.release,
        population=plan.population,
        nanos=parse_nanos(plan.cost),
        measure=plan.measure,
        neighbours=plan.neighbours,
        unit=plan.unit,
        plan_hash=plan.hash,
        spec_hash=plan.spec_hash,
        plan_format=plan.format,
        fingerprint=fingerprint,
        context=context or {},
        overlaps=overlaps,
    )


class Price(NamedTuple):
    """What is charged, and in which measure as entries have it (None: ε)."""

    nanos: int
    measure: str | None


@dataclass(frozen=True)
class Charge:
    """A durable, anchored charge. `new` is False when it was there already; `attempt` is above 1 after a burnt one."""

    entry: Entry
    new: bool

    @property
    def attempt(self) -> int:
        return int(self.entry.details["attempt"])


def must_be_amount(nanos: int, measure: str) -> None:
    if measure not in MEASURES:
        raise SpecError(f'measure "{measure}" is none of {", ".join(MEASURES)}.')
    if isinstance(nanos, bool) or not isinstance(nanos, int) or not 0 < nanos <= LARGEST:
        symbol = MEASURES[measure].symbol
        raise SpecError(f"{symbol} must be a positive whole number of 10⁻⁹, at most {show_nanos(LARGEST)}; not {nanos!r}.")


def must_be_delta(delta: str | None, measure: str) -> None:
    """δ belongs to ρ, and is written in the one way that documents have."""
    if delta is None:
        return
    if measure == "pure":
        raise SpecError(f"delta {delta} was asked for a budget in ε, which has none. Grant ρ, or leave delta out.")
    try:
        written = parse_quoted(delta)
    except ValueError as error:
        raise SpecError(f"{error}.") from None
    if written != delta:
        raise SpecError(f"delta {delta} must be written {written}.")


def must_share_measure(account: Account, nanos: int, measure: str) -> None:
    """ε and ρ do not add up: a population's grants are all in the measure of the first."""
    if measure != account.measure:
        raise SpecError(
            f'{MEASURES[measure].symbol}={show_nanos(nanos)} was asked for population "{account.population}"; its budget is in '
            f"{account.symbol} ({MEASURES[account.measure].definition}), and that cannot change. Nothing was granted. Grant "
            f"{account.symbol}: {granting(account.population, account.measure)}; or use another population."
        )


def cost_in(measure: str, request: ChargeRequest) -> int | None:
    """What the request costs in 10⁻⁹ of this measure; None: it has no price there.

    ε-differential privacy is (ε²/2)-zCDP, so that a pure release can be paid in ρ, rounded up. The other way there is no price:
    ρ-zCDP with ρ > 0 is no ε-differential privacy, for any ε.
    """
    if request.measure == measure:
        return request.nanos
    return in_rho(request.nanos) if request.measure == "pure" else None


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
    cost = cost_in(charge.measure or "pure", request)
    spec = (charge.amount, charge.population) != (cost, request.population) or any(
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
    if state in UNDONE:
        raise SpecError(f'release "{release}" was {state}: it stays charged and is never published. Choose another name.')


def must_be_affordable(request: ChargeRequest, account: Account | None) -> Price:
    """charged + cost ≤ granted, under the granted relation; the cost in the budget's measure."""
    if account is None:
        raise BudgetRefused(no_grant(request.population, request.measure))
    must_be_in_relation(request, account)
    cost = must_have_a_price(request, account)
    if cost > account.balance:
        lower = "epsilon" if request.measure == "pure" else "rho, or the epsilon at delta"
        raise BudgetRefused(
            f'release "{request.release}" asks {_asked(request, account.measure, cost)}; {show_nanos(account.balance)} of '
            f'{show_nanos(account.granted)} is left for population "{account.population}". Lower {lower} or extend '
            f"the grant: {granting(account.population, account.measure)}"
        )
    return Price(cost, None if account.measure == "pure" else account.measure)


def must_have_a_price(request: ChargeRequest, account: Account) -> int:
    """The cost in the budget's measure, whatever is left of it."""
    cost = cost_in(account.measure, request)
    if cost is None:
        raise SpecError(_no_price(request, account))
    return cost


def _asked(request: ChargeRequest, measure: str, cost: int) -> str:
    asked = f"{MEASURES[request.measure].symbol}={show_nanos(request.nanos)}"
    return asked if request.measure == measure else f"{asked}, which costs {MEASURES[measure].symbol}={show_nanos(cost)}"


def _no_price(request: ChargeRequest, account: Account) -> str:
    return (
        f'release "{request.release}" asks ρ={show_nanos(request.nanos)} of zero-concentrated differential privacy; the budget '
        f'of population "{account.population}" is in ε (pure differential privacy), and ρ-zCDP is no ε-differential privacy '
        "for any ε, so it has no price there. Nothing was charged. Write privacy: {epsilon: …} without delta in release.yaml, "
        f"or use a population whose budget is in ρ: {granting('POPULATION', 'zcdp')}"
    )


def no_grant(population: str, measure: str = "pure") -> str:
    return (
        f'population "{population}" has no grant, so nothing can be charged to it. '
        f"Grant a budget first: {granting(population, measure)}"
    )


def capping(population: str, measure: str) -> str:
    """The command that sets a lifetime cap in this measure."""
    return f'steps budget cap {population} {_ARGUMENT[measure]} --why "…"'


def granting(population: str, measure: str) -> str:
    """The command that adds to a budget of this measure."""
    return f'steps budget grant {population} {_ARGUMENT[measure]} --why "…"'
