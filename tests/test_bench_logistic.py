"""The benchmark of logistic intervals: what counts as covered, what is left out, and that a run goes on where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import logistic
from steps_engine.evaluation.regression import Estimates
from steps_engine.studies.voter import voter_domain


def estimates(value: list[float], variance: list[float], separated: list[bool]) -> Estimates:
    return Estimates(("a", "b", "c"), np.array(value), np.array(variance), np.inf, np.array(separated), True)


def test_an_interval_that_misses_the_truth_is_counted_and_a_separated_coefficient_is_not():
    never = [False] * 3
    true = estimates([0.0, 0.0, 0.0], [1.0] * 3, never)
    sample = estimates([0.1, 0.1, 0.1], [0.01] * 3, never)
    sets = [estimates([0.1, 5.0, 0.1], [0.01] * 3, [False, False, last]) for last in (False, True)]
    found = logistic.compared(true, sample, sets)
    assert found["covered"][:2] == [1.0, 0.0] and np.isnan(found["covered"][2])
    assert found["overlap"][0] == pytest.approx(1) and found["overlap"][1] == 0 and found["width"][0] == pytest.approx(1)


@pytest.mark.whole
def test_the_models_have_as_many_coefficients_as_they_say_and_know_the_stand_in():
    assert {name: len(found.names) for name, found in logistic.truth().items()} == {"30": 30, "32": 32}
    assert logistic.truth()["32"].separated.sum() == 4 and not logistic.truth()["30"].separated.any()
    assert set(logistic.population().columns) == set(voter_domain().names)


def test_what_is_kept_is_not_computed_again(tmp_path: Path):
    file, asked = tmp_path / "kept.jsonl", logistic.Asked("paper", 10, "1", "1e-9", 3)
    logistic.keep(file, asked, {"seconds": 1.0})
    assert logistic.kept(file) == {logistic.key(asked): {"seconds": 1.0}} and not logistic.kept(tmp_path / "none")
