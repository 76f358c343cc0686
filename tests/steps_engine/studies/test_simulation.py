"""The simulated models are the printed ones, and a huge ε gives them back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from steps_engine.noise import SeededRandomness
from steps_engine.studies.methods import SIMULATION, StudyMethod
from steps_engine.studies.simulation import BINS, TRUTHS, every_combination, normal, simulate, simulation_figures, summarize

HUGE = "100000"
SUM_OF_THE_120 = 1.258341438  # drawn once: another sum means another model


def figures(method: str, model: int, epsilon: str = HUGE, rows: int = 10_000, repeat: int = 1):
    sample, noise = SeededRandomness(("sample", model, repeat)), SeededRandomness(("noise", method, repeat))
    return simulation_figures(SIMULATION[method], TRUTHS[model], rows, epsilon, 4, sample, noise)


def test_the_coefficients_are_the_printed_ones():
    main = dict(zip(TRUTHS[1].names, TRUTHS[1].coefficients, strict=True))
    assert main == {
        "Intercept": 0, "x1[T.1]": 0.5, "x2[T.1]": 0.5, "x2[T.2]": -0.8, "x3[T.1]": 1, "x3[T.2]": 0.5, "x3[T.3]": 0.5,
        "x4[T.1]": 0.5, "x4[T.2]": 0.7, "x4[T.3]": 0.8, "x4[T.4]": 0.5,
    }  # fmt: skip
    assert len(TRUTHS[2].names) == len(TRUTHS[2].coefficients) == 120
    assert sum(TRUTHS[2].coefficients) == pytest.approx(SUM_OF_THE_120, abs=1e-8)


def test_the_mean_of_a_row_is_the_sum_of_its_coefficients():
    everything = every_combination()
    row = everything.index[(everything == ["1", "2", "3", "4"]).all(axis=1)]
    assert TRUTHS[1].mean(everything, np.array(TRUTHS[1].coefficients))[row] == pytest.approx(0 + 0.5 - 0.8 + 0.5 + 0.5)
    assert sorted(TRUTHS[2].mean(everything, np.array(TRUTHS[2].coefficients))) == pytest.approx(sorted(TRUTHS[2].coefficients))


def test_errors_are_standard_normal():
    draws = normal(200_000, SeededRandomness(1))
    assert abs(draws.mean()) < 0.01 and abs(draws.std() - 1) < 0.01 and abs((np.abs(draws) < 1.96).mean() - 0.95) < 0.003


@pytest.mark.parametrize("model", [1, 2])
def test_the_bins_are_public_and_almost_nothing_lies_beyond_them(model):
    truth = TRUTHS[model]
    y = simulate(truth, 20_000, SeededRandomness(2))["y"]
    assert truth.domain.attributes[-1].size == BINS
    assert ((y < truth.bounds[0]) | (y > truth.bounds[1])).mean() < 0.001


@pytest.mark.parametrize("method", ["steps", "steps-elected", "uh-4", "steps-printed", "original"])
@pytest.mark.parametrize("model", [1, 2])
@pytest.mark.whole
def test_a_huge_epsilon_gives_the_truth_back(method, model):
    """What is left is the sample itself and the bins of Y: close to the fit on the sample."""
    found, sample = figures(method, model), figures("original", model)
    error = np.array([found["estimate", n] - t for n, t in zip(TRUTHS[model].names, TRUTHS[model].coefficients, strict=True)])
    reference = np.array([found["estimate", n] - sample["estimate", n] for n in TRUTHS[model].names])
    assert np.sqrt(np.mean(error**2)) < (0.06 if model == 1 else 0.16)
    assert np.sqrt(np.mean(reference**2)) < 0.06
    assert 0.7 < found["prediction", "squared error"] < 1.5


def test_a_small_epsilon_does_not():
    found = figures("steps", 1, epsilon="0.1", rows=4_000)
    error = [found["estimate", n] - t for n, t in zip(TRUTHS[1].names, TRUTHS[1].coefficients, strict=True)]
    assert np.sqrt(np.mean(np.square(error))) > 0.2


@pytest.mark.whole
def test_the_same_seeds_give_the_same_figures_and_other_seeds_do_not():
    assert figures("steps", 1, epsilon="2") == figures("steps", 1, epsilon="2")
    assert figures("steps", 1, epsilon="2") != figures("steps", 1, epsilon="2", repeat=2)


def coverage(method: StudyMethod, epsilon: str = HUGE, rows: int = 4_000, repeats: int = 40) -> float:
    seeds = [(SeededRandomness(("sample", r)), SeededRandomness(("noise", r))) for r in range(repeats)]
    parts = [simulation_figures(method, TRUTHS[1], rows, epsilon, 4, sample, noise) for sample, noise in seeds]
    table = pd.DataFrame(
        [
            {"which": n, "estimate": p["estimate", n], "low": p["low", n], "high": p["high", n]}
            for p in parts
            for n in TRUTHS[1].names
        ]
    )
    return summarize(table, TRUTHS[1])["coverage"].mean()


@pytest.mark.whole
def test_intervals_of_the_sample_itself_cover_the_truth_about_95_times_in_100():
    assert 0.9 < coverage(SIMULATION["original"]) < 0.985


@pytest.mark.slow
def test_intervals_from_shared_sets_cover_the_truth_about_95_times_in_100():
    assert 0.9 < coverage(SIMULATION["steps-shared"], "2", 10_000, 25) < 0.985


class CombinedAsSplit(StudyMethod):
    combining = "split"


@pytest.mark.slow
def test_control_combining_shared_sets_as_if_split_does_not_cover():
    shared = SIMULATION["steps-shared"]
    assert coverage(CombinedAsSplit(shared.name, shared.title, shared.kind, shared.settings), "1", 10_000, 25) < 0.85


def test_bias_rmse_and_coverage_by_hand():
    table = pd.DataFrame({"which": "x1[T.1]", "estimate": [0.4, 0.8], "low": [0.3, 0.6], "high": [0.5, 1.0]})
    (row,) = summarize(table, TRUTHS[1]).to_dict("records")
    assert row["bias"] == pytest.approx(0.1) and row["rmse"] == pytest.approx(np.sqrt((0.01 + 0.09) / 2))
    assert (row["coverage"], row["repeats"], row["truth"]) == (0.5, 2, 0.5)
