"""Draws for intervals lie √2 times as far from the truth as the estimate (docs/lab/shared-sets.md), and the plan says so."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.inference.dependence import STRENGTHS, axis, dependence
from steps_engine.methods.planning import plan_with_analyses
from steps_engine.methods.registry import method_of
from steps_engine.noise import SeededRandomness
from tests.steps_engine.analyses.asking import PAIRS, asking

ROWS, NOISE, SETS, REPEATS = 1000.0, 900.0, 4, 400


def test_a_draw_is_twice_as_far_in_squares_as_the_mean_and_several_together_are_nearly_as_close():
    rng, randomness = np.random.default_rng(2), SeededRandomness(2)
    axes = axis(np.array([0.5, 0.3, 0.2]), ordered=False), axis(np.array([0.6, 0.4]), ordered=False)
    (a, b), (left, right) = ([each.directions[0] for each in axes], [each.sizes[0] for each in axes])
    squares = []
    for _ in range(REPEATS):
        strength = rng.choice(STRENGTHS, p=STRENGTHS / STRENGTHS.sum())  # as the posterior supposes
        truth = a @ (strength * ROWS * np.outer(left, right) * rng.normal(size=(2, 1))) @ b.T
        found = dependence(truth + a @ rng.normal(0, NOISE**0.5, (2, 1)) @ b.T, NOISE, ROWS, axes)
        draws = [found.draw(randomness) for _ in range(SETS)]
        squares.append([((each - truth) ** 2).sum() for each in (found.mean, draws[0], np.mean(draws, axis=0))])
    mean, draw, together = np.mean(squares, axis=0)
    assert draw / mean == pytest.approx(2, rel=0.15) and together / mean == pytest.approx(1 + 1 / SETS, rel=0.1)


@pytest.mark.parametrize(("sets", "said"), [({"count": 5, "budget": "shared"}, 1), ({"count": 5}, 0), ({"count": 1}, 0)])
def test_a_plan_of_several_draws_says_that_one_set_lies_closer(sets, said):
    plan = plan_with_analyses(asking(method=PAIRS | {"sets": sets}))
    assert sum("lies closer to the records" in remark for remark in method_of(plan).sketch(plan).remarks) == said
