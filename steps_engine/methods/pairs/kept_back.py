"""What of the tables' budget is kept back for pairs that are measured twice, decided from public inputs alone.

Strong pairs are worth more of the budget than weak ones, and which these are nobody knows before: part of the budget waits
until the first noisy tables tell (again.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs.division import ASSUMED_ROWS, TOLD, Division, candidates, errors, left

FOR_EACH = 2  # of an attribute's pairs: a tree of them, and as many beside it
PARTS = tuple(Fraction(part, 10) for part in (1, 2, 3, 4, 5))  # of the tables' budget, that may be kept back
WORTH = 0.98  # of the error that is predicted without: choices by noisy numbers are not always the best


@dataclass(frozen=True)
class Again:
    """How many pairs are measured a second time, and with what part of the tables' budget."""

    number: int = 0
    part: Fraction = Fraction(0)


def kept_back(domain: Domain, allowance: Allowance, divided: Division, asked: int | str | None) -> Again:
    """From public inputs: what waits, where all pairs are measured and their number is left to the plan. Under ρ alone.

    (Under ε noise is drawn for many tables at once, and two draws of half the budget say less than one of all of it.)
    """
    pairs, number = len(candidates(domain)), FOR_EACH * (sum(size > 1 for size in domain.sizes) - 1)
    if allowance.measure is PURE or asked is not None or divided.elected or pairs <= 2 * number:
        return Again()
    rows, cost = domain.expected_units or ASSUMED_ROWS, float(allowance.total) / len(allowance.served)
    sizes = np.minimum(domain.sizes, TOLD).tolist()
    noise = float(errors(candidates(domain), sizes, allowance, cost * float(1 - divided.margins)).mean()) / rows
    best, least = Again(), WORTH * float(left(np.array(noise)))
    for part in PARTS:
        if (found := predicted(noise, number / pairs, float(part))) < least:
            best, least = Again(number, part), found
    return best


def predicted(noise: float, chosen: float, part: float) -> float:
    """What noise leaves wrong in the mean pair, where so many of them, the strongest, share a part that was kept back.

    All have the noise x/√(1 − part); the strongest that of both measurements, joined by precision.
    """
    once, twice = (np.array(noise / math.sqrt(precision)) for precision in (1 - part, 1 - part + part / chosen))
    return float(left(twice, 0.0, chosen) + left(once, chosen, 1.0))
