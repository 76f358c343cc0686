"""What a draw costs in each measure, from the proofs in PRIVACY.md: a table of the verifier's own, as that of sensitivities.

A mechanism that has no price in a measure cannot be paid in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from schemas.budget import UNIT, as_fraction, parse_nanos
from schemas.plan import Draw, Plan
from tasks.verify.sensitivities import NotKnown

SYMBOLS: Mapping[str, str] = {"pure": "ε", "zcdp": "ρ"}

# (measure, mechanism): the price, from sensitivity/scale.
PRICES: Mapping[tuple[str, str], Callable[[Fraction], Fraction]] = {
    # One person moves the logarithm of every probability by at most sensitivity/scale.
    ("pure", "two_sided_geometric"): lambda ratio: ratio,
    ("pure", "max_norm"): lambda ratio: ratio,
    ("pure", "permute_and_flip"): lambda ratio: ratio,
    ("pure", "exponential"): lambda ratio: ratio,
    # ε-differential privacy is ε²/2-zCDP.
    ("zcdp", "two_sided_geometric"): lambda ratio: ratio**2 / 2,
    ("zcdp", "permute_and_flip"): lambda ratio: ratio**2 / 2,
    # One person moves all these logarithms within one interval of this length: by Hoeffding's lemma a quarter of that.
    ("zcdp", "exponential"): lambda ratio: ratio**2 / 8,
    # Here the ratio is one of squares, Δ²/σ²: the Rényi divergence of order α is at most αΔ²/2σ². No ε alone bounds it.
    ("zcdp", "discrete_gaussian"): lambda ratio: ratio / 2,
}


def symbol_of(measure: str) -> str:
    return SYMBOLS.get(measure, measure)


def price_of(draw: Draw, measure: str) -> Fraction:
    """What a draw costs at its sensitivity and scale; NotKnown where that is not in the table."""
    if (measure, draw.mechanism) not in PRICES:
        raise NotKnown(f"{draw.mechanism} has no price in {symbol_of(measure)} that this verifier knows")
    return PRICES[measure, draw.mechanism](draw.sensitivity / draw.scale)


def owed(plan: Plan, measure: str) -> int | None:
    """What the plan costs on an account of this measure, in 10⁻⁹; None where it has no price there.

    ε-differential privacy is ε²/2-zCDP, so that ε can be paid in ρ; no ρ above 0 promises an ε without δ.
    """
    cost = as_fraction(parse_nanos(plan.cost))
    if (plan.measure, measure) == ("pure", "zcdp"):
        cost = cost**2 / 2
    elif plan.measure != measure:
        return None
    return math.ceil(cost * UNIT)
