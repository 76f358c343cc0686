"""Where two attributes nearly determine each other, noise in empty cells weakens every set alike: such intervals are not called honest."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.plan import NeededTable
from schemas.spec.domain import Domain
from steps_engine.analyses.results import results_of
from steps_engine.analyses.weakened import EMPTIED, UNSURE, told, weakened
from steps_engine.domain.counting import count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.analyses.asking import PAIRS, asking

ROWS, SIZE = 6_000, 9
DOMAIN = Domain.model_validate(
    {
        "name": "loans",
        "population": "people",
        "expected_rows": ROWS,
        "attributes": tuple({"name": name, "kind": "integer", "bounds": (0, SIZE - 1)} for name in ("grade", "rate", "term")),
    }
)


def people(tied: float) -> np.ndarray:
    """The rate is that of the grade, for so many people; else any."""
    rng = np.random.default_rng(5)
    grade, other, term = rng.integers(0, SIZE, (3, ROWS))
    return np.stack([grade, np.where(rng.random(ROWS) < tied, grade, other), term], axis=1)


def asked(tied: float, epsilon: str):
    """What is told of the slope of the rate on the grade, and the slope that the records have."""
    plan = make_plan(asking("rate ~ grade", ("grade", "rate"), method=PAIRS, domain=DOMAIN, epsilon=epsilon))
    codes = people(tied)
    made = run_plan(DOMAIN, plan, count_codes(codes), SeededRandomness(2))
    return results_of(plan, DOMAIN, made.records), np.polyfit(codes[:, 0], codes[:, 1], 1)[0], made


def test_what_is_nearly_determined_is_not_called_honest_and_is_wrong_indeed():
    (model, table), slope, made = asked(1.0, "0.4")
    for each in (model, table):
        assert not each.honest and "grade and rate leave many of their combinations empty, and noise does not" in each.why
        assert each.measured and each.estimates
    (told_of,) = (each for each in model.estimates if each.name == "grade")
    assert told_of.high < slope, "the control: the interval does not hold the slope of the records"
    assert weakened((NeededTable(of=("grade", "term"), measured=True),), DOMAIN, made.records) is None


@pytest.mark.parametrize(("tied", "epsilon"), [(0.3, "0.4"), (0.98, "60")], ids=["little dependence", "little noise"])
def test_little_dependence_and_little_noise_leave_it_honest(tied: float, epsilon: str):
    results, slope, _ = asked(tied, epsilon)
    (told_of,) = (each for each in results[0].estimates if each.name == "grade")
    assert all(each.honest for each in results) and told_of.low < slope < told_of.high


def test_both_are_counted_from_the_tables_of_the_sets():
    sure = np.array([[[50, 0], [0, 50]]] * 3)
    assert told(sure) == (0.0, 0.0), "an empty cell of which all sets are sure weakens nothing"
    assert told(np.full((3, 2, 2), 25)) == (0.0, 0.0)
    even, unsure = told(sure + np.array([[[0, 9], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [9, 0]]]))
    assert even == pytest.approx(2 * 53**2 / 106**2) and even > EMPTIED
    assert unsure == pytest.approx(6 / 106) and unsure > UNSURE
