"""What a mechanism says of itself, against its law written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from steps_engine.accounting.measures import PURE
from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, CountNoise
from steps_engine.noise import SeededRandomness

SCALES = [Fraction(1, 3), Fraction(2), Fraction(25)]
every_law = pytest.mark.parametrize(
    "noise", [CountNoise(m, s) for m in COUNTS.values() for s in SCALES], ids=lambda n: f"{n.mechanism.name} {n.scale}"
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


@pytest.mark.parametrize("mechanism", [*COUNTS.values(), *ELECTIONS.values()], ids=lambda m: m.name)
def test_a_price_is_what_its_scale_costs(mechanism):
    price, sensitivity, cost = mechanism.prices[PURE.name], Fraction(3), Fraction(1, 7)
    assert price.cost(sensitivity, price.scale(sensitivity, cost)) == cost
