"""★ BUDGET IS CHARGED HERE, and only here: before anything random touches a count, once per release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schemas.budget import parse_nanos
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from schemas.plan import Plan
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from tasks.stages.discretize import fingerprint
from tasks.stages.plan import load_plan
from tasks.stores.artifacts import Reference, Store
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.keys import secret_key


@dataclass(frozen=True)
class Paid:
    """A durable charge: `new` is False when an earlier run paid; `attempt` is above 1 after a burnt charge."""

    plan_hash: str
    new: bool
    attempt: int

    def must_cover(self, plan: Plan) -> None:
        """What is drawn is what was paid for."""
        if plan.hash != self.plan_hash:
            raise EvidenceBroken(f'release "{plan.release}": its plan is not the one that was charged. Nothing was drawn.')


def charge(home: Home, release: Release, plan: Reference, cells: Reference, context: dict[str, Any]) -> Paid:
    """Charge the plan's exact cost to the population, or find that this release has paid. Refused: exact counts go."""
    store = Store(home)
    planned = load_plan(store, plan)
    counts = Counts.from_table(release.domain, store.read(cells))
    request = ChargeRequest(
        release=release.name,
        population=planned.population,
        nanos=parse_nanos(planned.epsilon),
        neighbours=planned.neighbours,
        unit="person",
        plan_hash=planned.hash,
        spec_hash=planned.spec_hash,
        fingerprint=fingerprint(counts, release.domain, secret_key(home, "fingerprint")),
        context={**context, "approval": release.spec.approval},
    )
    try:
        paid = store.ledger.charge(request)
    except (BudgetRefused, SpecError):
        store.forget(cells)
        raise
    return Paid(planned.hash, paid.new, paid.attempt)
