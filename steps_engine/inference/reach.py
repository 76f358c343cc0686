"""How far 95 % intervals reach: from the exact law of the noise where it is a plain sum, else from a bound that holds for all.

Noise has heavier tails than a normal law: ± 1.96 standard errors of a two-sided geometric noise cover less than 94 %.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import COUNTS, CountNoise

COVERED = 0.95
NORMAL = 1.959964  # standard errors that hold 95 % of a normal law,
HEAVIEST = math.log(20) / math.sqrt(2)  # and of a two-sided exponential one; weighted sums of these hold more
_POINTS = 2**15  # of the lattice that a law is held on
_WIDEST = 500.0  # standard deviations beyond this are measured in coarser units

Noises = tuple[tuple[CountNoise, int], ...]  # independent noises, and how many of each


def reach_of(noises: Noises, divided_by: int = 1) -> float:
    """The least w with P(|X| ≤ w) ≥ 95 %, X being the sum of these noises divided by a whole number.

    >>> from fractions import Fraction
    >>> from steps_engine.accounting.mechanisms import TWO_SIDED_GEOMETRIC
    >>> reach_of(((CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1796, 100)), 1),))
    54.0
    """
    return _least(tuple((each.mechanism.name, each.scale, number) for each, number in noises if number)) / divided_by


@lru_cache(maxsize=4096)
def _least(noises: tuple[tuple[str, Fraction, int], ...]) -> float:
    laws = [(CountNoise(COUNTS[name], scale), number) for name, scale, number in noises]
    unit = max(1.0, math.sqrt(sum(number * noise.variance for noise, number in laws)) / _WIDEST)
    transform = np.ones(_POINTS // 2 + 1)
    for noise, number in laws:
        transform = transform * _transform(noise, unit) ** number
    chance = np.fft.irfft(transform, _POINTS)[: _POINTS // 2]
    within = chance[0] + 2 * np.concatenate([[0.0], np.cumsum(chance[1:])])
    least = int(np.searchsorted(within, COVERED - 1e-12))
    return float(least) if unit == 1 else float(math.ceil(unit * (least + 0.5)))  # a coarse point stands for all around it


def _transform(noise: CountNoise, unit: float) -> np.ndarray:
    """The characteristic function of one noise on the lattice: real, as the law is symmetric."""
    chance = noise.probability(np.minimum(np.arange(_POINTS), _POINTS - np.arange(_POINTS)) * unit)
    transformed: np.ndarray = np.fft.rfft(chance / chance.sum()).real
    return transformed


def standard_errors(plan: Plan) -> float:
    """How many standard errors hold 95 % of any weighted sum of a plan's noises.

    A weighted sum of two-sided exponential noises is a normal variable whose variance is a mean of exponential ones: the more
    even the weights, the closer to normal. A coordinate of noise by the max norm is uniform given its radius, so lighter still.
    """
    return NORMAL if plan.measure == "zcdp" and all(d.mechanism != "two_sided_geometric" for d in plan.draws) else HEAVIEST
