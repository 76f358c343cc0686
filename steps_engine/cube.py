"""The law of the max norm on whole vectors of d coordinates, P(x) ∝ exp(−max|x_i|/scale): its radius, and its variance.

Nothing here is random. A radius r with P(r) ∝ (2r + 1)^d·exp(−r/scale), and d whole numbers uniform on −r … r, have this law:
of the radii from max|x_i| on, each gives x the same chance ∝ exp(−r/scale). PRIVACY.md has the proofs, under `max_norm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np

from steps_engine.laws import context_of, exp_minus

MOST_DIMENSIONS = 2**17  # up to which double precision is within MARGIN
MARGIN = 2.0**-30  # of a chance in double precision: more than ten times the bound of its error
_SUMMED = 10**6  # radii that a moment is summed over; beyond, its expansion


@dataclass(frozen=True)
class Radius:
    """By rejection: proposed with P(r) ∝ exp(−r/proposed), accepted with chance (y·e^(1−y))^d ≤ 1, y = (r + ½)/tangent.

    The product is ∝ (2r + 1)^d·exp(−r·(1/proposed + d/tangent)) = (2r + 1)^d·exp(−r/scale). For y ≠ 1 the chance is irrational
    (Lindemann); y = 1 is accepted. A radius costs about √d proposals, and hardly more than one where scale is small.
    """

    scale: Fraction
    dimension: int

    @property
    def tangent(self) -> Fraction:
        return max((self.dimension + 1) * self.scale, Fraction(1, 2))

    @property
    def proposed(self) -> Fraction:
        return 1 / (1 / self.scale - self.dimension / self.tangent)

    def rough(self, radius: np.ndarray) -> np.ndarray:
        """The chance in double precision, within MARGIN: the first look of a coin toss."""
        beyond = (radius + 0.5) / float(self.tangent) - 1
        return np.exp(self.dimension * (np.log1p(beyond) - beyond))

    def is_sure(self, radius: int) -> bool:
        return radius + Fraction(1, 2) == self.tangent

    def chance(self, radius: int, digits: int) -> Decimal:
        """Relative error below 10^(20 − digits)."""
        y = (radius + Fraction(1, 2)) / self.tangent
        more = context_of(digits + 10)
        power = more.power(more.divide(y.numerator, y.denominator), self.dimension)
        if y > 1:
            return more.multiply(power, exp_minus(self.dimension * (y - 1), more.prec))
        return more.divide(power, exp_minus(self.dimension * (1 - y), more.prec))


@lru_cache(maxsize=64)
def variance(scale: Fraction, dimension: int) -> float:
    """Of one coordinate: E r(r + 1)/3; for large radii (d + 1)(d + 2)·scale²/3.

    >>> round(variance(Fraction(15), 1), 4), round(variance(Fraction(10), 66), 1)
    (449.8334, 151866.6)
    """
    wide = float(scale) * (dimension + 1)
    reach = wide + 40 * float(scale) * math.sqrt(dimension + 1) + 40
    if reach > _SUMMED:
        return float(scale) ** 2 * (dimension + 1) * (dimension + 2) / 3
    radius = np.arange(int(reach))
    log = dimension * np.log(2 * radius + 1) - radius / float(scale)
    chance = np.exp(log - log.max())
    return float((radius * (radius + 1) * chance).sum() / chance.sum() / 3)
