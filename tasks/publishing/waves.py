"""What the page says of populations that share people: what somebody in all of them has lost, and may lose at most."""

from __future__ import annotations

from decimal import ROUND_UP
from fractions import Fraction
from typing import Any

from schemas.manifest import Manifest
from schemas.plan import Plan
from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.measures import MEASURES
from tasks.publishing.privacy_loss import short

DELTA = "1e-9"  # at which ε is told where the release has no δ of its own


def waves_view(manifest: Manifest, plan: Plan) -> dict[str, Any] | None:
    """None where the population shares nobody, and nobody's lifetime is capped."""
    if (said := manifest.ledger.charge.shown.waves) is None:
        return None
    others = [name for name in said.populations if name != manifest.population]
    view = {"others": others, "total": said.total, "cap": said.cap, "symbol": MEASURES[said.measure].symbol, "epsilon": None}
    if said.measure == "pure":
        return view
    delta = plan.delta or DELTA
    epsilon = epsilon_of(Fraction(said.total), float(delta)).value
    return view | {"epsilon": short(epsilon, ROUND_UP), "delta": delta}
