"""Counts of people: half of an interval holds noise and rounding, of small cells too."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from schemas.spec.method import method_spec
from steps_engine.domain.weights import count_units
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.tabulated import Asked
from steps_engine.methods.weighted import rounding_variance, table_in_people
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, release

WEIGHT = {"column": "w", "bounds": (Decimal("0.5"), Decimal(40)), "total": 4000, "step": Decimal(40)}
OF = domain(10, 8, 3, expected_rows=400, weight=WEIGHT)


def test_intervals_of_small_cells_hold_weighted_totals():
    """About a unit in each: half of the cells are found empty, and most are not."""
    plan = make_plan(release(OF, method_spec(decomposition="flat"), "9"))
    method, asked, rng = method_of(plan), Asked((0, 1), {}), np.random.default_rng(1)
    codes, weight = rng.integers(0, OF.sizes, (400, 3)), np.exp(rng.uniform(np.log(0.5), np.log(40), 400))
    truth = np.bincount(codes[:, 0] * 8 + codes[:, 1], weights=weight, minlength=80)
    covered = []
    for trial in range(10):
        counts, source = count_units(codes, weight, OF, trial.to_bytes(32, "big")), SeededRandomness(trial)
        tree = method.build(OF, plan, counts, source)
        tables = {"tree": tree, "noisy-counts": method.sanitize(OF, plan, counts, tree, source)}
        tables["consistent-counts"] = method.correct(OF, plan, tree, tables["noisy-counts"], source)
        found = table_in_people(method.tabulate(OF, plan, tables, asked), asked, OF)
        covered.append(np.abs(found.estimate - truth) <= found.half)
    assert np.mean(covered) >= 0.95, np.mean(covered)


def test_a_count_of_nothing_may_have_been_rounded_down():
    """Never ± 0; and at most a quarter per cell, as before."""
    found, half = np.array([0.0, -3.0, 0.0, 1000.0]), np.array([0.0, 1.0, 5.0, 0.0])
    added = rounding_variance(found, half, 10**6, OF)
    assert (added > 1).all() and added[2] > added[0] and 1000 < added[3] < 1150
    assert (rounding_variance(found, half, 1, OF) == 0.25).all()
