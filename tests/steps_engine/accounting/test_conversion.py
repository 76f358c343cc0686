"""The conversion of ρ is tight, on the safe side, and never better than what Gaussian noise really loses."""

from __future__ import annotations

import math
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
