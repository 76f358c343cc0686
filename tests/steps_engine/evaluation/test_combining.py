"""Combining rules: the printed formulas, honest coverage, and the wrong rule is caught."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.errors import SpecError
from steps_engine.evaluation.combining import combine, interval, overlap, sampling_variance

VALUES = np.array([[1.0], [2.0], [4.0]])
VARIANCES = np.array([[0.3], [0.5], [0.4]])
W, B, M = 0.4, np.var([1, 2, 4], ddof=1), 3


def test_split_sets_follow_the_printed_rule():
    found = combine(VALUES, VARIANCES, "split")
    assert found.value[0] == pytest.approx(7 / 3)
    assert found.variance[0] == pytest.approx(W + B / M)
    assert found.freedom[0] == pytest.approx((M - 1) * (1 + M * W / B) ** 2)


def test_shared_sets_follow_the_printed_rule():
    found = combine(VALUES, VARIANCES, "shared")
    assert found.variance[0] == pytest.approx(W + (1 + 1 / M) * B)
    assert found.freedom[0] == pytest.approx((M - 1) * (1 + M * W / ((M + 1) * B)) ** 2)


def test_sampled_rows_take_their_variance_out_but_never_more_than_all():
    assert combine(VALUES, VARIANCES, "shared", np.array([0.5])).variance[0] == pytest.approx(
        W + (1 + 1 / M) * (B - 0.5) + 0.5 / M
    )
    drowned = combine(VALUES, VARIANCES, "shared", np.array([100.0]))
    assert (drowned.variance[0], drowned.freedom[0]) == (pytest.approx(W), M - 1)


def test_one_set_says_that_the_variance_between_sets_is_unknown():
    found = combine(VALUES[:1], VARIANCES[:1], "split")
    assert (found.variance[0], found.freedom[0], found.between) == (0.3, np.inf, False)


def test_sets_that_agree_exactly_leave_the_variance_within():
    found = combine(np.ones((3, 1)), VARIANCES, "shared")
    assert (found.variance[0], found.freedom[0]) == (pytest.approx(W), np.inf)


def test_unknown_rules_are_refused():
    with pytest.raises(SpecError, match="split or shared"):
        combine(VALUES, VARIANCES, "rubin")
    with pytest.raises(SpecError, match="leave `sampling` out"):
        combine(VALUES, VARIANCES, "split", np.array([0.1]))


def coverage(kind: str, rule: str, m: int = 4, repeats: int = 20_000) -> float:
    """How often the interval holds the truth 0: W = 1, noise of variance 2, rows sampled with variance 0.5 if asked."""
    draw = np.random.default_rng(7)
    truth_to_data = draw.normal(0, 1, repeats)
    own_noise = draw.normal(0, np.sqrt(2), (m, repeats))
    if kind == "split":
        values, sampling = truth_to_data + own_noise, None
    else:
        values, sampling = truth_to_data + draw.normal(0, np.sqrt(2), repeats) + own_noise, None
    if kind == "shared, sampled":
        first, second = (values + draw.normal(0, np.sqrt(0.5), values.shape) for _ in range(2))
        values, sampling = first, sampling_variance(first, second)
    found = combine(values, np.ones((m, repeats)), rule, sampling)
    low, high = interval(found.value, found.variance, found.freedom)
    return float(((low < 0) & (high > 0)).mean())


@pytest.mark.parametrize(("kind", "rule"), [("split", "split"), ("shared", "shared"), ("shared, sampled", "shared")])
def test_intervals_cover_the_truth_as_often_as_they_say(kind, rule):
    assert 0.93 < coverage(kind, rule) < 0.98


def test_the_split_rule_on_shared_sets_is_caught_undercovering():
    assert coverage("shared", "split") < 0.88


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [((0, 4), (1, 2), 0.625), ((0, 1), (1, 2), 0.0), ((0, 1), (5, 6), 0.0), ((2, 2), (2, 2), 1.0), ((0, 2), (1, 3), 0.5)],
)
def test_overlap_is_the_mean_covered_share(first, second, share):
    assert overlap(*map(float, first), *map(float, second)) == pytest.approx(share)


def test_an_unknown_interval_has_no_overlap_value():
    assert np.isnan(overlap(0.0, 1.0, np.nan, np.nan))
