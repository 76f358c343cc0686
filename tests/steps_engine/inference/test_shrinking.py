"""Empirical Bayes: noise is taken out, signal stays, and the posterior is as wide as it says."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.inference.shrinking import shrunk, standard_normal
from steps_engine.noise import SeededRandomness


def measured(signal: float, seed: int = 1, tables: int = 20, cells: int = 30):
    """Tables of values of this spread with noise of standard deviation 10; sizes are 100."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, signal, tables * cells) if signal else np.zeros(tables * cells)
    value = truth + rng.normal(0, 10, truth.size)
    each = np.ones(truth.size)
    return truth, shrunk(value, 100 * each, 100 * each, np.repeat(np.arange(tables), cells), each, 10.0), value


@pytest.mark.parametrize("signal", [0.0, 5.0, 20.0, 200.0])
def test_the_posterior_mean_errs_no_more_than_the_best_factor_for_all_and_less_than_the_measurement(signal):
    truth, found, value = measured(signal)
    best = signal**2 / (signal**2 + 100)
    error = np.mean((found.mean - truth) ** 2)
    assert error <= 1.15 * np.mean((best * value - truth) ** 2) + 1
    assert error <= 1.02 * np.mean((value - truth) ** 2)


def test_where_there_is_no_signal_nearly_everything_is_taken_out():
    _, found, value = measured(0.0)
    assert np.abs(found.mean).mean() < 0.1 * np.abs(value).mean()


def test_a_table_with_signal_keeps_it_among_tables_without():
    rng = np.random.default_rng(4)
    truth = np.concatenate([np.zeros(570), rng.normal(0, 60, 30)])
    value, each = truth + rng.normal(0, 10, 600), np.ones(600)
    found = shrunk(value, 100 * each, 100 * each, np.repeat(np.arange(20), 30), each, 10.0).mean
    assert np.mean((found[570:] - truth[570:]) ** 2) < 130 and np.mean(found[:570] ** 2) < 5


def test_the_posterior_covers_the_truth_as_often_as_it_says():
    truth, found, _ = measured(20.0, tables=40)
    inside = np.abs(truth - found.mean) < 1.96 * np.sqrt(found.variance)
    assert 0.93 < inside.mean() < 0.97


def test_fine_whole_numbers_stand_for_a_normal_law():
    drawn = standard_normal(20_000, SeededRandomness("normal"))
    assert abs(drawn.mean()) < 0.04 and drawn.std() == pytest.approx(1, abs=0.03)
    assert (np.abs(drawn) < 1.96).mean() == pytest.approx(0.95, abs=0.01)
