"""The conversion of ρ is tight, on the safe side, and never better than what Gaussian noise really loses."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from steps_engine import gaussian
from steps_engine.accounting.conversion import UNIT, epsilon_of, rho_of

RHOS = [Fraction(1, 10**6), Fraction(1, 50), Fraction(1, 2), Fraction(10)]
DELTAS = [1e-12, 1e-9, 1e-5, 0.1]
every_pair = pytest.mark.parametrize(("rho", "delta"), [(rho, delta) for rho in RHOS for delta in DELTAS])


def proved(epsilon: float, rho: float, orders: np.ndarray) -> np.ndarray:
    """δ by the formula itself, in logarithms."""
    return np.exp((orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1))


@every_pair
def test_epsilon_is_that_of_a_fine_grid_of_orders_and_the_order_proves_it(rho, delta):
    found = epsilon_of(rho, delta)
    orders = 1 + np.geomspace(1e-4, 1e6, 400_001)
    grid = (orders * float(rho) + (-math.log(delta) - np.log(orders)) / (orders - 1) + np.log1p(-1 / orders)).min()
    assert max(0, grid) - 1e-7 <= found.value <= max(0, grid) + 2e-9 + 1e-9 * grid
    assert proved(float(found.value), float(rho), np.array(found.order)) <= delta * (1 + 1e-9)


@every_pair
def test_it_is_better_than_the_textbook_bound_and_never_than_gaussian_noise(rho, delta):
    epsilon = float(epsilon_of(rho, delta).value)
    assert epsilon < float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))
    sigma = 1 / math.sqrt(2 * float(rho))

    def continuous(e: float) -> float:
        half, ratio = 1 / (2 * sigma), e * sigma
        return stats.norm.cdf(half - ratio) - math.exp(e) * stats.norm.cdf(-half - ratio)

    def discrete(e: float) -> float:
        x = np.arange(-math.ceil(40 * sigma) - 5, math.ceil(40 * sigma) + 6)
        chance = gaussian.probability(x, 1 / (2 * rho))
        return np.maximum(chance[:-1] - math.exp(e) * chance[1:], 0).sum()

    for exact in (continuous, discrete):
        assert exact(epsilon) <= delta
    assert continuous(epsilon / 2) > delta or epsilon < 1e-3 or delta > 1e-5  # a claim of half as much would be caught


def in_sixty_digits(rho: Fraction, delta: str, order: float) -> Decimal:
    """The ε that an order proves, by the formula for δ solved for ε."""
    with localcontext(prec=60):
        alpha, exact = Decimal(order), Decimal(rho.numerator) / rho.denominator
        log_delta = Decimal(delta).ln() + (alpha - 1).ln() - alpha * (1 - 1 / alpha).ln()
        return alpha * exact - log_delta / (alpha - 1)


@pytest.mark.parametrize("delta", ["1e-300", "1e-100", "1e-12", "1e-9", "1e-3", "0.1", "0.5", "0.9"])
@pytest.mark.parametrize("exponent", range(-9, 7))
def test_no_rounding_takes_from_epsilon(exponent, delta):
    for digit in (1, 3, 7):
        rho = digit * Fraction(10) ** exponent
        found = epsilon_of(rho, float(delta))
        exact = max(Decimal(0), in_sixty_digits(rho, delta, found.order))
        assert exact <= Decimal(found.value.numerator) / found.value.denominator
        assert float(found.value) <= float(exact) * (1 + 1e-9) + 1e-7


def test_a_value_rounded_down_would_be_caught():
    found = epsilon_of(Fraction(1, 50), 1e-9)
    below = Decimal((found.value - UNIT).numerator) / (found.value - UNIT).denominator
    assert below < in_sixty_digits(Fraction(1, 50), "1e-9", found.order)


def test_opendp_converts_to_the_same_epsilon():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    for rho in (0.001, 0.02, 0.5, 3.0):
        theirs = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
        profile = dp.c.make_zCDP_to_approxDP(theirs).map(1.0)
        for delta in DELTAS:
            epsilon = epsilon_of(Fraction(theirs.map(1.0)), delta).value
            assert profile.epsilon(delta) <= epsilon <= profile.epsilon(delta) + 5e-9


def test_more_is_never_less():
    epsilons = [[epsilon_of(rho, delta).value for delta in DELTAS] for rho in RHOS]
    assert all(a < b for column in zip(*epsilons, strict=True) for a, b in zip(column, column[1:], strict=False) if b)
    assert all(a >= b for row in epsilons for a, b in zip(row, row[1:], strict=False))


@pytest.mark.parametrize("epsilon", [Fraction(1, 7), Fraction(1), Fraction(8)])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_way_back_is_the_largest_that_still_holds(epsilon, delta):
    rho = rho_of(epsilon, delta).value
    assert rho % UNIT == 0 and epsilon_of(rho, delta).value <= epsilon < epsilon_of(rho + UNIT, delta).value


def test_nothing_is_worth_nothing_and_what_is_no_chance_is_refused():
    assert epsilon_of(Fraction(0), 1e-9).value == 0 and rho_of(Fraction(0), 1e-12).value == 0
    for delta in (0.0, 1.0, -1e-9, 2.0, math.nan):
        with pytest.raises(ValueError, match="δ lies below 1"):
            epsilon_of(Fraction(1), delta)
    for convert in (epsilon_of, rho_of):
        with pytest.raises(ValueError, match="at least 0"):
            convert(Fraction(-1), 1e-9)
