"""★ BUDGET IS CHARGED HERE, and only here: before anything random touches a count, once per release."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from enum import Enum
from typing import Any, final

from schemas.counted import counted
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from schemas.plan import Plan
from schemas.spec.release import Approval, Release
from tasks.stages.cells import stored_counts
from tasks.stages.discretize import fingerprint
from tasks.stages.plan import load_plan
from tasks.stages.references import CellsReference, PlanReference
from tasks.stores.artifacts import Store
from tasks.stores.charging import asked_by, must_have_a_price
from tasks.stores.home import Home
from tasks.stores.identity import make_keys, must_be_ours, register
from tasks.stores.keys import secret_key
from tasks.stores.people import APPROVER, OPERATOR


class _Till(Enum):
    """What only this module hands over: a ChargedPlan comes from a charge."""

    CHARGED = "charged"


@final
@dataclass(frozen=True)
class ChargedPlan:
    """A plan that is paid for: `new` is False when an earlier run paid; `attempt` is above 1 after a burnt charge.

    Building and sanitizing take nothing else, so that forgetting to pay is an error of types. Made by `charge` alone;
    `dataclasses.replace` cannot make another of it, and a copy sent to another process stays what it is.
    """

    plan: Plan
    new: bool
    attempt: int
    till: InitVar[_Till]

    def __post_init__(self, till: _Till) -> None:
        if till is not _Till.CHARGED:
            raise TypeError("a ChargedPlan is made by charge() alone, when the ledger holds the charge")

    def must_cover(self, plan: Plan) -> None:
        """What is drawn is what was paid for."""
        if plan.hash != self.plan.hash:
            raise EvidenceBroken(f'release "{plan.release}": its plan is not the one that was charged. Nothing was drawn.')


def must_be_payable(home: Home, plan: PlanReference) -> None:
    """A plan that the population's budget can never pay, its measure being another, is refused before a record is read."""
    store = Store(home)
    planned = load_plan(store, plan)
    account = next((each for each in store.ledger.accounts() if each.population == planned.population), None)
    if account is not None:
        must_have_a_price(asked_by(planned), account)


def must_be_signable(home: Home, release: Release) -> None:
    """Where people are registered: that an operator runs the release, and that others can approve it as it asks."""
    ledger, asked = Store(home).ledger, release.spec.approval
    people, me = ledger.people(), ledger.me()
    if me is None:
        if isinstance(asked, Approval):
            raise SpecError(
                f'release "{release.name}" asks for {counted(asked.required, "approval")} by registered people, and nobody is '
                "registered in this ledger. Nothing was charged. See: steps people add"
            )
        return
    if me not in [person.name for person in people.having(OPERATOR)]:
        raise SpecError(
            f'"{me}" is no {OPERATOR} and cannot run release "{release.name}". Nothing was charged. See: steps people list'
        )
    roles = (asked.from_ if isinstance(asked, Approval) else ()) or (APPROVER,)
    may = {person.name for person in people.having(*roles)}
    needed = asked.required if isinstance(asked, Approval) else 1
    if asked != "none" and (len(may) < needed or not may - {me}):
        raise SpecError(
            f'release "{release.name}" needs {counted(needed, "approval")} by {" or ".join(roles)}, not only by who runs it; '
            f"registered so: {', '.join(sorted(may)) or 'nobody'}. Nothing was charged. See: steps people add"
        )


def charge(home: Home, release: Release, plan: PlanReference, cells: CellsReference, context: dict[str, Any]) -> ChargedPlan:
    """Charge the plan's exact cost to the population, or find that this release has paid. Refused: exact counts go."""
    store = Store(home)
    must_be_ours(home, store.ledger)
    make_keys(home)  # whoever cannot sign does not pay
    planned = load_plan(store, plan)
    counts = stored_counts(store, cells, release.domain)
    found = fingerprint(counts, release.domain, secret_key(home, "fingerprint"))
    try:
        must_be_signable(home, release)
        paid = store.ledger.charge(asked_by(planned, found, {**context, **_said(release)}, release.domain.overlaps))
    except (BudgetRefused, SpecError):
        store.forget(cells)
        raise
    register(home, store.ledger)
    must_be_ours(home, store.ledger)  # of two homes that register at once, one draws
    return ChargedPlan(planned, paid.new, paid.attempt, _Till.CHARGED)


def _said(release: Release) -> dict[str, Any]:
    """What the ledger keeps of the author's words: who decides, and the reason for a large ε."""
    asked, why = release.spec.approval, release.spec.privacy.why
    approval = asked.model_dump(mode="json", by_alias=True) if isinstance(asked, Approval) else asked
    return {"approval": approval} | ({"why": why} if why else {})
