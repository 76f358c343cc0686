"""How many pairs are elected: a sum over pairs, or over so many that it is taken as an integral."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.spec.method import method_spec
from steps_engine.domain.counting import Counts
from steps_engine.methods.pairs import division
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, release


def test_the_integral_is_the_sum_of_many(monkeypatch: pytest.MonkeyPatch):
    noise = np.linspace(1e-4, 0.5, division.ADDED_UP)
    added_up = division.explained(noise)
    monkeypatch.setattr(division, "ADDED_UP", 0)
    integral = division.explained(noise)
    assert np.allclose(added_up, integral, rtol=1e-6)
    assert abs(int(added_up.argmax()) - int(integral.argmax())) <= 1
    assert not np.allclose(added_up, 1.001 * integral, rtol=1e-6)  # control


def test_half_a_million_pairs_are_divided_at_once():
    assert division.explained(np.linspace(1e-4, 0.5, 499_500)).shape == (499_500,)


# --- groups, and what margins get

WIDE = domain(9, 7, 6, expected_rows=5_000)


def grouped_in(plan) -> bool:
    """Whether rare categories are counted together: the first of each attribute has nearly all rows."""
    cells = np.array([[0, 0, 0], *[[i % 9, i % 7, i % 6] for i in range(1, 50)]])
    made = run_plan(WIDE, plan, Counts(cells, np.array([4_500, *[10] * 49])), SeededRandomness(0))
    category, group = (made.tables["tree"][name].drop_null().to_numpy() for name in ("category", "group"))
    return bool((category != group).any())


def margins_part(plan) -> float:
    return float(sum(draw.cost for draw in plan.draws if all(len(table) == 1 for table in draw.tables))) / float(plan.cost)


def test_where_tables_tell_of_margins_no_category_is_counted_with_others():
    """A plan that leaves margins little must not leave it to them how groups divide."""
    plan = make_plan(release(WIDE, method_spec(decomposition="pairs"), "1"))
    assert margins_part(plan) < 0.15 and not grouped_in(plan)


def test_where_noise_is_large_categories_are_grouped_and_margins_get_more():
    plan = make_plan(release(WIDE, method_spec(decomposition="pairs", pairs="all"), "0.02"))
    assert margins_part(plan) > 0.3 and grouped_in(plan)
