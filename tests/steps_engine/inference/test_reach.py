"""Intervals cover what they say: 95 %, by the law of the noise, and one unit less would not."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from steps_engine.accounting.mechanisms import GAUSSIAN, TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.inference.reach import HEAVIEST, NORMAL, reach_of


def within(noise: CountNoise, reach: float) -> float:
    """P(|X| ≤ reach) by the law itself."""
    return float(noise.chance_below(np.array(reach + 1)) - noise.chance_below(np.array(-reach)))


@pytest.mark.parametrize("mechanism", [TWO_SIDED_GEOMETRIC, GAUSSIAN], ids=lambda each: each.name)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(1796, 100), Fraction(250)])
def test_one_noise_is_covered_and_one_unit_less_is_not(mechanism, scale):
    noise = CountNoise(mechanism, scale)
    reach = reach_of(((noise, 1),))
    assert within(noise, reach) >= 0.95
    assert reach == 0 or within(noise, reach - 1) < 0.95


def test_control_a_normal_law_covers_too_little():
    noise = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1796, 100))
    normal = round(NORMAL * noise.variance**0.5)
    assert normal == 50 and within(noise, normal) == pytest.approx(0.940, abs=0.001)
    assert reach_of(((noise, 1),)) == 54


def test_sums_of_noises_are_covered_by_their_own_law():
    """By plain convolution of two laws, three noises of one and two of the other; and the mean of two measurements."""
    noises = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(5)), CountNoise(TWO_SIDED_GEOMETRIC, Fraction(9))
    x = np.arange(-400, 401)
    law = np.ones(1)
    for noise in (noises[0],) * 3 + (noises[1],) * 2:
        law = np.convolve(law, noise.probability(x))
    middle = len(law) // 2
    covered = {w: float(law[middle - w : middle + w + 1].sum()) for w in range(120)}
    reach = reach_of(((noises[0], 3), (noises[1], 2)))
    assert covered[int(reach)] >= 0.95 > covered[int(reach) - 1]
    assert reach_of(((noises[0], 3), (noises[1], 2)), 2) == reach / 2


def test_wide_noises_are_covered_to_a_five_hundredth():
    noise = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(10**6))
    reach = reach_of(((noise, 1),))
    assert 0.95 <= within(noise, reach) < 0.951


def test_no_weighted_sum_of_exponential_noises_is_heavier_than_one():
    """P(|Σ| > t) = Σ c_i exp(−t/a_i) with c_i = Π a_i²/(a_i² − a_j²): at HEAVIEST standard deviations at most 5 %."""
    rng = np.random.default_rng(5)
    assert np.exp(-HEAVIEST * 2**0.5) == pytest.approx(0.05)
    for number in (2, 3, 4):
        for _ in range(200):
            a = np.sort(rng.uniform(0.05, 1, number))
            if min(after / before for before, after in pairwise(a)) < 1.05:
                continue  # the sum above loses its digits where two are nearly the same
            parts = [np.prod([a[i] ** 2 / (a[i] ** 2 - a[j] ** 2) for j in range(number) if j != i]) for i in range(number)]
            beyond = HEAVIEST * np.sqrt(2 * (a**2).sum())
            assert np.dot(parts, np.exp(-beyond / a)) <= 0.05 + 1e-9
