"""What ρ-zCDP promises as (ε, δ), and back: the tight conversion, minimised over the Rényi order, rounded to the safe side.

A ρ-zCDP mechanism is (ε, δ)-differentially private with δ = exp((α − 1)(αρ − ε))·(1 − 1/α)^α/(α − 1) for every order
α > 1 (Canonne, Kamath, Steinke 2020, proposition 12 with the loss of order α bounded by αρ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

UNIT = Fraction(1, 10**9)  # results are whole multiples of this
_SLACK = 1e-12  # relative; more than double precision can lose here


@dataclass(frozen=True)
class Converted:
    """A number on the safe side, and the Rényi order that proves it."""

    value: Fraction
    order: float


def epsilon_of(rho: Fraction, delta: float) -> Converted:
    """The least ε, rounded up, such that ρ-zCDP is proved to be (ε, δ)-differentially private.

    >>> found = epsilon_of(Fraction(1, 50), 1e-9)
    >>> found.value, round(found.order, 2)
    (Fraction(1163287327, 1000000000), 30.42)
    """
    _must_be_chance(delta)
    if rho < 0:
        raise ValueError(f"ρ is at least 0; found {rho}")
    if rho == 0:
        return Converted(Fraction(0), math.inf)
    order = _best_order(float(rho), delta)
    exact = _epsilon(float(rho), delta, order)
    return Converted(max(Fraction(0), UNIT * math.ceil((Fraction(exact) + _slack(rho, order)) / UNIT)), order)


def rho_of(epsilon: Fraction, delta: float) -> Converted:
    """The largest ρ, rounded down, that epsilon_of says is (ε, δ)-differentially private; 0 where no multiple of UNIT is.

    >>> found = rho_of(Fraction(1), 1e-9)
    >>> found.value, epsilon_of(found.value, 1e-9).value <= 1
    (Fraction(14973057, 1000000000), True)
    """
    _must_be_chance(delta)
    if epsilon < 0:
        raise ValueError(f"ε is at least 0; found {epsilon}")
    low, high = 0, 1  # in UNITs: low is proved, high is not
    while epsilon_of(high * UNIT, delta).value <= epsilon:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if epsilon_of(middle * UNIT, delta).value <= epsilon else (low, middle)
    return Converted(low * UNIT, epsilon_of(low * UNIT, delta).order)


def _epsilon(rho: float, delta: float, order: float) -> float:
    """The ε that an order proves: any order above 1 gives a valid one."""
    return order * rho + (math.log(1 / delta) - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _best_order(rho: float, delta: float) -> float:
    """Where ε stops falling: its derivative in α has the sign of ρ(α − 1)² − log(1/δ) + log α, which increases."""
    low, high = 0.0, 1.0  # of α − 1
    while _slope(rho, delta, high) < 0:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _slope(rho, delta, middle) < 0 else (low, middle)
    return 1 + high


def _slope(rho: float, delta: float, above: float) -> float:
    return rho * above**2 - math.log(1 / delta) + math.log1p(above)


def _slack(rho: Fraction, order: float) -> Fraction:
    """More than rounding can take from ε: its terms are below order·ρ, 700/(order − 1) and log(order) in size."""
    return Fraction(_SLACK) * (Fraction(order) * rho + Fraction(1500 / (order - 1)) + 50)


def _must_be_chance(delta: float) -> None:
    if not 1e-300 <= delta < 1:
        raise ValueError(f"δ lies below 1 and at least at 10^−300; found {delta}")
