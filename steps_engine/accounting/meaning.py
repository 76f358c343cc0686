"""What ρ means: the ε that it promises at several δ, how far a suspicion can grow, and what the same noise costs in pure ε."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from schemas.budget import UNIT, show_nanos
from schemas.plan import Draw, Plan
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.mechanisms import TWO_SIDED_GEOMETRIC, noise_of

TOLD_AT = ("1e-6", "1e-9", "1e-12")  # besides the plan's own δ
POINTS = 66  # of a curve


@dataclass(frozen=True)
class Promise:
    """ε at δ, both as they are written, and the Rényi order that proves it."""

    delta: str
    epsilon: str
    order: float


def promises_of(plan: Plan, deltas: Iterable[str] = TOLD_AT) -> tuple[Promise, ...]:
    """What ρ promises at the plan's own δ and at these, the smallest δ last; nothing of a pure plan."""
    if plan.rho is None or plan.delta is None or plan.order is None:
        return ()
    told = {delta: promise_at(Fraction(plan.rho), delta) for delta in deltas}
    told[plan.delta] = Promise(plan.delta, plan.epsilon, plan.order)
    return tuple(sorted(told.values(), key=lambda promise: -float(promise.delta)))


def promise_at(rho: Fraction, delta: str) -> Promise:
    """
    >>> promise_at(Fraction(1, 50), "1e-9").epsilon
    '1.163287327'
    """
    found = epsilon_of(rho, float(delta))
    return Promise(delta, show_nanos(int(found.value * UNIT)), found.order)


@dataclass(frozen=True)
class Curve:
    """(−log₁₀ δ, ε) from the largest δ to the smallest, and of the δ that is told."""

    points: tuple[tuple[float, float], ...]
    own: tuple[float, float]


def curve_of(rho: Fraction, delta: str) -> Curve:
    """ε against δ from 10⁻² to 10⁻¹⁵, or as far as the told δ lies."""
    told = -math.log10(float(delta))
    first, last = min(2, math.floor(told)), max(15, math.ceil(told) + 1)
    exponents = (first + (last - first) * point / (POINTS - 1) for point in range(POINTS))
    return Curve(tuple(_point(rho, exponent) for exponent in exponents), _point(rho, told))


def _point(rho: Fraction, exponent: float) -> tuple[float, float]:
    """Just within the δ that can be converted, where it would lie beyond."""
    return exponent, float(epsilon_of(rho, min(max(10**-exponent, 1e-300), 0.999)).value)


def rho_between(plan: Plan) -> Fraction:
    """ρ between data that must look alike to a reader.

    Where the number of rows is published, they have equally many: a removal and an addition, two steps and so 4ρ.
    """
    steps = 2 if (plan.total, plan.neighbours) == ("invariant", "add_remove") else 1
    return steps**2 * Fraction(plan.rho or 0)


def loss_of(rho: Fraction, chance: float) -> float:
    """What the logarithm of the odds between two neighbouring data sets exceeds with at most this chance.

    The loss Z has E e^((α − 1)Z) ≤ e^((α − 1)αρ), so P(Z > t) ≤ e^(−(t − ρ)²/4ρ) at the best order α.

    >>> round(loss_of(Fraction(1, 50), 1e-9), 4)
    1.3076
    """
    return float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / chance))


def belief(before: float, loss: float) -> float:
    """A probability after its odds were multiplied by e^loss.

    >>> belief(0.5, 0.0), round(belief(0.5, 1.0), 3)
    (0.5, 0.731)
    """
    return before / (before + (1 - before) * math.exp(-loss))


def chance_of_a_right_guess(rho: Fraction) -> float:
    """The most with which anyone tells two neighbouring data sets apart that are equally likely: half of 1 + their distance.

    The divergence is at most ρ, so the distance is at most √(ρ/2) (Pinsker) and √(1 − e^−ρ) (Bretagnolle, Huber).

    >>> round(chance_of_a_right_guess(Fraction(1, 50)), 3)
    0.55
    """
    distance = min(math.sqrt(float(rho) / 2), math.sqrt(-math.expm1(-float(rho))))
    return (1 + distance) / 2


def pure_epsilon_of_same_noise(plan: Plan) -> float:
    """About what draws with as much noise would cost in pure ε, on the way that is dearest then."""
    ways = ways_of(plan.draws)
    dear = (max((_pure(plan, way) for way in found.values()), default=0.0) for found in ways.trees.values())
    return _pure(plan, ways.common) + sum(dear)


def _pure(plan: Plan, draws: Iterable[Draw]) -> float:
    return sum(_rate(draw) if draw.kind == "election" else _geometric(plan, draw) for draw in draws)


def _rate(draw: Draw) -> float:
    return float(draw.sensitivity / draw.scale)


def _geometric(plan: Plan, draw: Draw) -> float:
    """ε of the two-sided geometric law of the same variance, which is 1/(cosh(1/scale) − 1)."""
    own = plan.units_per_person * (plan.at_most - 1 if draw.rows_of and plan.at_most else 1)  # of other members, or of the unit
    rows = TWO_SIDED_GEOMETRIC.sensitivity(own, plan.neighbours == "substitute")
    variance = noise_of(draw).variance
    if variance < 1e-300:  # 2·e^(−1/2σ²), and here 2·e^(−1/scale)
        return float(rows / (2 * draw.scale))
    return float(rows) * math.log1p((1 + math.sqrt(1 + 2 * variance)) / variance)
