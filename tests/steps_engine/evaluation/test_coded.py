"""A sample of a coded table is records of it, each at most once, evenly."""

from __future__ import annotations

import numpy as np
from scipy import stats

from steps_engine.evaluation.coded import Coded, sample
from steps_engine.noise import SeededRandomness

WHOLE = Coded(("a",), (4,), np.array([[0], [1], [3]]), np.array([500, 1, 300]))


def test_a_sample_takes_no_record_twice_and_is_even():
    taken = np.zeros(4)
    for seed in range(300):
        part = sample(WHOLE, 40, SeededRandomness(seed))
        found = np.zeros(4, dtype=int)
        found[part.codes[:, 0]] = part.counts
        assert part.total == 40 and (found <= [500, 1, 0, 300]).all()
        taken += found
    expected = 300 * 40 * np.array([500, 1, 300]) / 801
    assert stats.chisquare(taken[[0, 1, 3]], expected).pvalue > 1e-5


def test_a_table_that_is_small_enough_is_taken_as_it_is():
    assert sample(WHOLE, 801, SeededRandomness(1)) is WHOLE
