"""Intervals from sets where one person has several rows: k that are all alike have k times the variance of independent ones."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Plan
from schemas.spec.analyses import TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.analyses.honesty import combining_of
from steps_engine.analyses.results import results_of
from steps_engine.answers.table import _from_sets, question_of
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import decode
from steps_engine.evaluation.comparison import compare
from steps_engine.evaluation.regression import Model
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tasks.answers.sampling import notes
from tasks.publishing.descriptions.analysis_r import analysis_r
from tests.steps_engine.shapes import domain, release

ROWS, PEOPLE, TRIALS = 5, 400, 12
WEIGHT = {"column": "w", "bounds": (Decimal(1), Decimal(12)), "total": 8000, "step": Decimal(4)}


def rows_of_persons(rows: int = ROWS, **more) -> Domain:
    return domain(2, 3, unit={"rows_per_person": rows}, expected_rows=ROWS * PEOPLE, **more)


def planned(of: Domain) -> Plan:
    asked = release(of, method_spec(decomposition="pairs", sets={"count": 5, "budget": "shared"}), "20")
    spec = asked.spec.model_copy(update={"analyses": (TableAnalysis(table=("x0", "x1")),)})
    return make_plan(asked.model_copy(update={"spec": spec}))


@pytest.mark.whole
def test_intervals_called_honest_cover_where_all_rows_of_a_person_are_alike():
    """Every cell has a sixth of the people. Control: rows that are taken for independent people do not cover."""
    of = rows_of_persons()
    plan, naive, covered = planned(of), rows_of_persons(rows=1), {"bound": [], "naive": []}
    for trial in range(TRIALS):
        people = np.random.default_rng(trial).integers(0, (2, 3), (PEOPLE, 2))
        made = run_plan(of, plan, count_codes(np.repeat(people, ROWS, axis=0)), SeededRandomness(trial))
        for name, known in (("bound", of), ("naive", naive)):
            (found,) = results_of(plan, known, made.records)
            assert (
                found.honest and "W is 5 times what the rows say, the most that 5 rows of one person allow" in found.combining
            )
            covered[name] += [each.low <= 1 / 6 <= each.high for each in found.estimates]
    assert np.mean(covered["bound"]) >= 0.9 and np.mean(covered["naive"]) < 0.75, {k: np.mean(v) for k, v in covered.items()}


def test_counts_from_sets_allow_for_people_with_fewer_rows():
    """Where nearly all rows are in one cell, its share hardly varies; its count does, unless all have exactly as many rows."""
    codes = np.zeros((400, 2), dtype=int)
    codes[:8, 0] = 1
    exactly = domain(2, 3, unit={"column": "id", "rows_per_person": ROWS, "exactly": True}, expected_rows=ROWS * PEOPLE)
    errors = []
    for of in (rows_of_persons(), exactly, rows_of_persons(rows=1)):
        method = method_spec(decomposition="flat", sets={"count": 2})
        records = [decode(codes, of, SeededRandomness(seed)) for seed in range(2)]  # the same sets twice: W alone
        found = _from_sets(question_of(["x0"], {}, of), of, make_plan(release(of, method)), records, "not measured")
        assert found.source == "sets" and found.shares.error[0] == pytest.approx((of.inflation * 0.98 * 0.02 / 400) ** 0.5)
        errors.append(found.counts.error[0] ** 2)
    assert errors == pytest.approx([ROWS * 392, ROWS * 392 * 0.02, 392 * 0.02])


def test_expected_widths_know_of_it():
    """Where noise is small, by √k."""
    widths = [planned(rows_of_persons(rows)).analyses[0].expected_width for rows in (1, ROWS)]
    assert widths[1] / widths[0] == pytest.approx(ROWS**0.5, rel=0.1)


def test_with_weights_both_multiply_and_rounding_does_not():
    """k·high/step + r, and with a design effect k·d·mean/step + r: that of weights does not speak of a person's rows."""
    assert rows_of_persons(weight=WEIGHT).weighing.inflation == 5 * Fraction(12, 4) + 1
    assert rows_of_persons(rows=1, weight=WEIGHT).weighing.inflation == Fraction(12, 4) + 1
    effect = rows_of_persons(weight=WEIGHT | {"design_effect": Decimal("1.5")})
    assert effect.weighing.inflation == 5 * Fraction(3, 2) * 4 / 4 + 1
    plan = planned(effect)
    assert plan.inflation == plan.weight.inflation == effect.weighing.inflation and effect.inflation == 8.5
    assert combining_of(plan).endswith(
        "W is 8.5 times what the rows say, what the weights and 5 rows of one person make of it by the survey's design effect"
    )
    assert "by the survey's design effect about 8.5 times" in " ".join(notes(plan, 100, 100, 5, False))
    bound = planned(rows_of_persons(weight=WEIGHT))
    assert combining_of(bound).endswith("the most that the weights and 5 rows of one person allow")
    assert "up to 16 times" in " ".join(notes(bound, 100, 100, 5, False))


def test_everything_that_combines_says_it_and_one_row_per_person_says_nothing():
    plans = {rows: planned(rows_of_persons(rows)) for rows in (1, ROWS)}
    programs = {rows: analysis_r(rows_of_persons(rows), plan) for rows, plan in plans.items()}
    assert b"inflation = 5" in programs[ROWS] and b"within <- steps_release$inflation * colMeans" in programs[ROWS]
    assert b"inflation" not in programs[1] and "times" not in combining_of(plans[1])
    said = {rows: " ".join(notes(plan, 100, 100, 5, False)) for rows, plan in plans.items()}
    assert "are up to 5 times those of independent rows" in said[ROWS] and "independent rows" not in said[1]


def test_an_original_is_compared_by_the_same_bound():
    """Sets that are the original overlap with it wholly, however many rows a person has."""
    import pandas as pd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    model = Model("y ~ x", "y ~ x", "linear")
    found = compare(model, frame, [frame, frame], inflation=5.0, rows_per_person=5)
    assert found.mean_overlap == pytest.approx(1) and compare(model, frame, [frame] * 2, inflation=5.0).mean_overlap < 0.9
