"""The mechanisms as values: the law of each, what it costs, and how it is drawn. The draws themselves are in noise.py.

A new noise law is a sampler in noise.py, its tables in laws.py and one value here; methods, plans and estimates take it
from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from schemas.plan import Draw
from steps_engine import cube, gaussian, laws, noise
from steps_engine.accounting.measures import PURE, ZCDP
from steps_engine.inference.contrasts import squared_length


@dataclass(frozen=True)
class Price:
    """In one measure: what a draw of this sensitivity and scale costs, and the least scale that a cost pays for."""

    cost: Callable[[Fraction, Fraction], Fraction]
    scale: Callable[[Fraction, Fraction], Fraction]


# Both noise and elections move log-probabilities by at most sensitivity/scale.
_BY_RATIO = Price(cost=lambda sensitivity, scale: sensitivity / scale, scale=lambda sensitivity, cost: sensitivity / cost)


def _root(square: Fraction) -> Fraction:
    """√square, rounded down by less than a relative 2^−60."""
    bits = 64 + max(0, square.denominator.bit_length() - square.numerator.bit_length())
    return Fraction(math.isqrt((square.numerator << 2 * bits) // square.denominator), 1 << bits)


def _by_square(part: int) -> Price:
    """(sensitivity/scale)²/part; the rate that a cost pays for is rounded down, so that the cost is never exceeded."""
    return Price(
        cost=lambda sensitivity, scale: (sensitivity / scale) ** 2 / part,
        scale=lambda sensitivity, cost: sensitivity / _root(part * cost),
    )


_PURE_AS_ZCDP = _by_square(2)  # ε-DP is ε²/2-zCDP
_BOUNDED_RANGE = _by_square(8)  # log-probabilities move within an interval of length ε

# On whole numbers Δ apart in L2. Sensitivity and scale are the squares Δ² and σ², so that both are rational whatever the cost.
_GAUSSIAN = Price(
    cost=lambda sensitivity, scale: sensitivity / (2 * scale), scale=lambda sensitivity, cost: sensitivity / (2 * cost)
)


@dataclass(frozen=True)
class CountMechanism:
    """Noise on whole numbers; a measure without a price is one that it cannot be paid in.

    All functions but `draw` and `zeros_that_reach` are in double precision: for planning and estimates.
    """

    name: str
    prices: Mapping[str, Price]
    sensitivity: Callable[[int, bool], Fraction]  # of disjoint counts: so many rows of a person left out, or replaced
    length: Callable[[Fraction], float]  # the scale as a number of rows
    width: Callable[[Fraction], float]  # about E|noise|: what grids and penalties are measured in
    largest_scale: int
    least_sampled: Fraction  # the least scale at which cells that are too many to list can be drawn
    draw: Callable[[Fraction, int, noise.Randomness], np.ndarray]
    zeros_that_reach: Callable[[int, Fraction, int, noise.Randomness], tuple[np.ndarray, np.ndarray]]
    variance: Callable[[Fraction], float]
    mean_size: Callable[[Fraction], float]
    probability: Callable[[np.ndarray, Fraction], np.ndarray]
    chance_below: Callable[[np.ndarray, Fraction], np.ndarray]
    threshold: Callable[[Fraction, float], int]


@dataclass(frozen=True)
class VectorMechanism:
    """Noise on vectors of whole numbers, by their largest coordinate."""

    name: Literal["max_norm"]
    prices: Mapping[str, Price]
    largest_scale: int  # times the coordinates and one
    draw: Callable[[Fraction, int, int, noise.Randomness], np.ndarray]
    variance: Callable[[Fraction, int], float]

    def sensitivity(self, rows: int, replaced: bool) -> Fraction:
        """Every row changes each coordinate by 1 at most; rows that go and rows that come add up."""
        return Fraction(2 * rows if replaced else rows)


class Elect(Protocol):
    """The elected column of each row of scores."""

    def __call__(
        self, scores: np.ndarray, eligible: np.ndarray, epsilon: Fraction, spread: Fraction, randomness: noise.Randomness
    ) -> np.ndarray: ...


@dataclass(frozen=True)
class ElectionMechanism:
    """A private choice among candidates by their scores."""

    name: Literal["permute_and_flip", "exponential"]
    prices: Mapping[str, Price]
    elect: Elect


def _threshold(scale: Fraction, chance: float) -> int:
    """The lowest θ ≥ 1 with P(X ≥ θ) = α^θ/(1 + α) at most `chance`."""
    alpha = math.exp(-1 / scale)
    return max(1, math.ceil(scale * math.log(1 / chance / (1 + alpha))))


TWO_SIDED_GEOMETRIC = CountMechanism(
    name="two_sided_geometric",
    prices={PURE.name: _BY_RATIO, ZCDP.name: _PURE_AS_ZCDP},
    sensitivity=lambda rows, replaced: Fraction(2 * rows if replaced else rows),
    length=float,
    width=float,
    largest_scale=noise.LARGEST_SCALE,
    least_sampled=Fraction(1, 500),  # P(X ≥ θ) must be a number that double precision holds
    draw=noise.two_sided_geometric,
    zeros_that_reach=noise.zeros_that_reach,
    variance=laws.variance,
    mean_size=laws.mean_size,
    probability=laws.probability,
    chance_below=laws.chance_below,
    threshold=_threshold,
)
GAUSSIAN = CountMechanism(
    name="discrete_gaussian",
    prices={ZCDP.name: _GAUSSIAN},
    # Rows that go, u ≥ 0, and rows that come, v ≥ 0, are at most k each: ‖u − v‖² ≤ ‖u‖² + ‖v‖² ≤ 2k².
    sensitivity=lambda rows, replaced: Fraction((2 if replaced else 1) * rows**2),
    length=lambda scale: math.sqrt(scale),
    width=lambda scale: math.sqrt(2 * scale / math.pi),
    largest_scale=gaussian.LARGEST_VARIANCE,
    least_sampled=Fraction(1, 1000),
    draw=noise.discrete_gaussian,
    zeros_that_reach=noise.gaussian_zeros_that_reach,
    variance=gaussian.variance,
    mean_size=gaussian.mean_size,
    probability=gaussian.probability,
    chance_below=gaussian.chance_below,
    threshold=gaussian.threshold,
)
COUNTS = {mechanism.name: mechanism for mechanism in (TWO_SIDED_GEOMETRIC, GAUSSIAN)}
MAX_NORM = VectorMechanism("max_norm", {PURE.name: _BY_RATIO}, noise.LARGEST_SCALE, noise.max_norm, cube.variance)

PERMUTE_AND_FLIP = ElectionMechanism(
    "permute_and_flip", {PURE.name: _BY_RATIO, ZCDP.name: _PURE_AS_ZCDP}, noise.permute_and_flip
)
EXPONENTIAL = ElectionMechanism("exponential", {PURE.name: _BY_RATIO, ZCDP.name: _BOUNDED_RANGE}, noise.exponential_mechanism)
ELECTIONS: dict[str, ElectionMechanism] = {mechanism.name: mechanism for mechanism in (PERMUTE_AND_FLIP, EXPONENTIAL)}

# What a plan takes unless asked otherwise: at one cost the least noise, and the better of the elections.
COUNTING = {PURE.name: TWO_SIDED_GEOMETRIC, ZCDP.name: GAUSSIAN}
ELECTING = {PURE.name: PERMUTE_AND_FLIP, ZCDP.name: EXPONENTIAL}


@dataclass(frozen=True)
class CountNoise:
    """The noise of one draw: a mechanism at its scale."""

    mechanism: CountMechanism
    scale: Fraction

    def draw(self, size: int, randomness: noise.Randomness) -> np.ndarray:
        """That many independent noises, exactly."""
        return self.mechanism.draw(self.scale, size, randomness)

    def zeros_that_reach(self, threshold: int, cells: int, randomness: noise.Randomness) -> tuple[np.ndarray, np.ndarray]:
        """Which of so many empty cells reach the threshold once each has its noise, and their noisy counts."""
        return self.mechanism.zeros_that_reach(threshold, self.scale, cells, randomness)

    @property
    def length(self) -> float:
        """The scale as a number of rows: of a Gaussian σ."""
        return self.mechanism.length(self.scale)

    @property
    def width(self) -> float:
        """About E|noise|."""
        return self.mechanism.width(self.scale)

    @cached_property
    def variance(self) -> float:
        return self.mechanism.variance(self.scale)

    @cached_property
    def mean_size(self) -> float:
        """E|noise|."""
        return self.mechanism.mean_size(self.scale)

    def probability(self, value: np.ndarray) -> np.ndarray:
        """P(noise = value), its formula taken for any real value."""
        return self.mechanism.probability(value, self.scale)

    def chance_below(self, bound: np.ndarray) -> np.ndarray:
        return self.mechanism.chance_below(bound, self.scale)

    def threshold(self, chance: float) -> int:
        """The lowest threshold from 1 on that an empty cell reaches with at most this probability."""
        return self.mechanism.threshold(self.scale, chance)


def mechanism_of(draw: Draw) -> CountMechanism | VectorMechanism | ElectionMechanism:
    if draw.kind == "election":
        return ELECTIONS[draw.mechanism]
    return MAX_NORM if draw.is_joint else COUNTS[draw.mechanism]


def noise_of(draw: Draw) -> CountNoise:
    """The noise that a plan's draw of counts prescribes."""
    return CountNoise(COUNTS[draw.mechanism], draw.scale)


def contrast_noise(draw: Draw, sizes: Sequence[int]) -> CountNoise:
    """The noise in the contrast of a table of these sizes: a Gaussian's variance is per unit of its squared length."""
    return CountNoise(COUNTS[draw.mechanism], draw.scale * squared_length(sizes, draw.mechanism == GAUSSIAN.name))


def contrast_variance(draw: Draw, sizes: Sequence[int]) -> float:
    """Of the noise in every entry of the contrast of a table of these sizes."""
    return MAX_NORM.variance(draw.scale, len(draw.tables)) if draw.is_joint else contrast_noise(draw, sizes).variance


def joint_noise(draw: Draw, copies: int, randomness: noise.Randomness) -> np.ndarray:
    """The noise of a draw's tables together, in so many disjoint cells: cells × tables."""
    return MAX_NORM.draw(draw.scale, len(draw.tables), copies, randomness)


def length_of(draw: Draw) -> float:
    """The scale of a draw of counts as a number of rows: of a Gaussian σ, of a vector the mean of its largest coordinate."""
    return float(draw.scale) * len(draw.tables) if draw.is_joint else noise_of(draw).length


def elect(draw: Draw, scores: np.ndarray, eligible: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
    """The election that a plan prescribes: the elected column of each row. Its rate is sensitivity/scale, in any measure."""
    rate = draw.sensitivity / draw.scale
    return ELECTIONS[draw.mechanism].elect(scores, eligible, rate, draw.sensitivity, randomness)
