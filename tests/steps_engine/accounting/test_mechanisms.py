"""What a mechanism says of itself, against its law written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from steps_engine.accounting.measures import PURE, ZCDP
from steps_engine.accounting.mechanisms import (
    COUNTS,
    ELECTIONS,
    EXPONENTIAL,
    GAUSSIAN,
    PERMUTE_AND_FLIP,
    TWO_SIDED_GEOMETRIC,
    CountNoise,
)
from steps_engine.noise import SeededRandomness

SCALES = [Fraction(1, 3), Fraction(2), Fraction(25)]
every_law = pytest.mark.parametrize(
    "noise",
    [CountNoise(m, s) for m in COUNTS.values() for s in SCALES],
    ids=lambda n: f"{n.mechanism.name} {n.scale}",
)


@every_law
def test_probabilities_sum_to_one_and_have_the_variance_and_mean_size_it_says(noise):
    values = np.arange(-4000, 4001)
    chance = noise.probability(values)
    assert chance.sum() == pytest.approx(1)
    assert (chance * values**2).sum() == pytest.approx(noise.variance)
    assert (chance * np.abs(values)).sum() == pytest.approx(noise.mean_size)
    bounds = np.array([-3, 0, 1, 7])
    assert noise.chance_below(bounds) == pytest.approx([chance[values < bound].sum() for bound in bounds])


@every_law
def test_draws_have_the_variance_it_says(noise):
    drawn = noise.draw(40_000, SeededRandomness(("law", str(noise.scale))))
    assert drawn.var() == pytest.approx(noise.variance, rel=0.08)


@every_law
@pytest.mark.parametrize("chance", [0.2, 1e-3, 1e-9])
def test_a_threshold_is_the_lowest_that_few_enough_reach(noise, chance):
    threshold = noise.threshold(chance)
    reached = 1 - noise.chance_below(np.array([threshold, threshold - 1]))
    assert threshold >= 1 and reached[0] <= chance * (1 + 1e-6)
    assert threshold == 1 or reached[1] > chance * (1 - 1e-6)


@pytest.mark.parametrize("mechanism", [TWO_SIDED_GEOMETRIC, *ELECTIONS.values()], ids=lambda m: m.name)
def test_a_price_is_what_its_scale_costs(mechanism):
    price, sensitivity, cost = mechanism.prices[PURE.name], Fraction(3), Fraction(1, 7)
    assert price.cost(sensitivity, price.scale(sensitivity, cost)) == cost


@pytest.mark.parametrize(
    ("mechanism", "part"),
    [(TWO_SIDED_GEOMETRIC, 2), (PERMUTE_AND_FLIP, 2), (EXPONENTIAL, 8)],
    ids=lambda m: getattr(m, "name", ""),
)
def test_in_zcdp_a_scale_is_rounded_so_that_its_cost_is_never_exceeded(mechanism, part):
    price = mechanism.prices[ZCDP.name]
    assert price.cost(Fraction(3), Fraction(12)) == Fraction(1, 16) / part
    for cost in (Fraction(1, 7), Fraction(2, 10**9), Fraction(10**9, 3), Fraction(1, 3 * 10**40), Fraction(1, 8), Fraction(2)):
        for sensitivity in (Fraction(1), Fraction(3), Fraction(7, 3)):
            paid = price.cost(sensitivity, price.scale(sensitivity, cost))
            assert cost * (1 - Fraction(1, 2**58)) < paid <= cost


def test_gaussian_noise_is_paid_in_zcdp_alone_and_exactly():
    price = GAUSSIAN.prices[ZCDP.name]
    assert price.cost(Fraction(9), Fraction(100)) == Fraction(9, 200)
    assert price.cost(Fraction(9), price.scale(Fraction(9), Fraction(1, 7))) == Fraction(1, 7)
    assert PURE.name not in GAUSSIAN.prices


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """The divergence of this order between two laws, given by their logarithms."""
    return float(logsumexp(order * p + (1 - order) * q) / (order - 1))


@pytest.mark.parametrize("order", [1.01, 2, 8, 64])
def test_no_renyi_divergence_of_the_gaussian_exceeds_its_price_and_a_variance_a_fifth_too_small_does(order):
    values, price = np.arange(-600, 601), GAUSSIAN.prices[ZCDP.name]

    def loss(variance: Fraction) -> float:
        law = -(values**2) / (2 * float(variance))
        law = law - logsumexp(law)
        paid = {d: float(order * price.cost(Fraction(d**2), Fraction(9))) for d in (1, 2, 3)}
        return max(renyi(law[d:], law[:-d], order) / cost for d, cost in paid.items())

    assert loss(Fraction(9)) <= 1 + 1e-9 < loss(Fraction(9) * Fraction(4, 5))


@pytest.mark.parametrize("order", [1.01, 2, 8])
@pytest.mark.whole
def test_an_exponential_election_costs_an_eighth_of_the_square_and_permute_and_flip_at_most_half(order):
    rng, epsilon = np.random.default_rng(4), 0.5
    worst = dict.fromkeys(("exponential", "twice the rate", "permute and flip"), 0.0)
    for trial in range(400):
        scores = np.zeros(2) if trial == 0 else np.r_[0.0, -rng.uniform(0, 6, rng.integers(1, 5)) / epsilon]
        moved = scores + rng.choice([0.0, 1.0], scores.size)
        laws = {
            "exponential": [np.exp(epsilon * s) / np.exp(epsilon * s).sum() for s in (scores, moved)],
            "twice the rate": [np.exp(2 * epsilon * s) / np.exp(2 * epsilon * s).sum() for s in (scores, moved)],
        }
        if scores.size == 2:
            heads = [np.exp(epsilon * (s - s.max())).min() for s in (scores, moved)]
            laws["permute and flip"] = [
                np.where(s == s.max(), 1 - h / 2, h / 2) for s, h in zip((scores, moved), heads, strict=True)
            ]
        for name, (p, q) in laws.items():
            worst[name] = max(
                worst[name], renyi(np.log(p), np.log(q), order) / order, renyi(np.log(q), np.log(p), order) / order
            )
    assert worst["exponential"] <= epsilon**2 / 8 + 1e-12 < worst["twice the rate"]
    assert worst["permute and flip"] <= epsilon**2 / 2
