"""Utilities: sensitivities by exhaustive search, elections that find what matters, groupings, a user's own utility."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from schemas.spec.method import MethodSpec, method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.election import AIC, BIC, UNEVEN, Utility, _groupings, grouping_count, log_likelihood
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, electing_by, release


def histograms(categories: int, most: int) -> np.ndarray:
    return np.array(list(itertools.product(range(most + 1), repeat=categories)), dtype=float)


def changes(score, categories: int, most: int) -> np.ndarray:
    """How a score moves when one record is added, over every small histogram and every category."""
    before = histograms(categories, most)
    moved = [score(before + np.eye(categories)[k]) - score(before) for k in range(categories)]
    return np.concatenate(moved)


def test_the_likelihood_is_the_multinomials():
    for row in ([3, 2, 0], [0, 0, 0], [5, 0, 0], [1, 1, 1]):
        n = sum(row)
        ways = math.factorial(n) / math.prod(math.factorial(k) for k in row)
        expected = math.log(ways) + sum(k * math.log(k / n) for k in row if k)
        assert log_likelihood(np.array([row], float))[0] == pytest.approx(expected, abs=1e-12)


def test_scores_of_huge_counts_are_as_exact_as_an_election_assumes():
    from decimal import Decimal, getcontext

    getcontext().prec = 60

    def log_factorial(n):  # Stirling with Decimal, exact far beyond double precision for n this large
        n = Decimal(n)
        two_pi = Decimal("6.283185307179586476925286766559005768394338798750211641949889")
        return n * n.ln() - n + (two_pi * n).ln() / 2 + 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)

    for row in ([10**9, 3 * 10**9, 7 * 10**8], [10**12, 12345], [65, 64], [1000, 999]):
        n = sum(row)
        exact = log_factorial(n) - sum(log_factorial(k) for k in row) + sum(k * (Decimal(k) / n).ln() for k in row)
        assert abs(log_likelihood(np.array([row], float))[0] - float(exact)) < 2**-22


@pytest.mark.parametrize("utility", [AIC, BIC], ids=["aic", "bic"])
@pytest.mark.parametrize("categories, most", [(1, 60), (2, 60), (3, 14), (4, 7)])
@pytest.mark.whole
def test_adding_a_record_moves_the_score_within_its_declared_interval(utility, categories, most):
    public = np.full((most + 1) ** categories, categories)
    moved = changes(lambda h: utility.score(h, public, 1000), categories, most)
    assert utility.monotone and moved.max() <= 1e-9 and moved.min() > -float(utility.sensitivity)
    assert utility.spread == utility.sensitivity == 2


@pytest.mark.parametrize("categories, most", [(1, 60), (2, 60), (3, 14), (4, 7)])
def test_adding_a_record_moves_unevenness_by_less_than_one_either_way(categories, most):
    public = np.full((most + 1) ** categories, categories)
    moved = changes(lambda h: UNEVEN.score(h, public, None), categories, most)
    assert np.abs(moved).max() == pytest.approx(1 - 1 / categories) and UNEVEN.spread == 2 * UNEVEN.sensitivity == 2
    if categories > 1:
        assert moved.min() < 0 < moved.max()  # so that it is not monotone


def test_control_unevenness_among_categories_seen_in_the_data_would_break_its_bound():
    def from_data(h):
        return UNEVEN.score(h, np.maximum((h > 0).sum(axis=1), 1), None)

    assert np.abs(changes(from_data, 3, 30)).max() > 5


def test_unevenness_is_the_rows_that_equal_categories_would_misplace():
    histogram = np.array([[7.0, 1, 0, 0], [5, 5, 5, 5], [0, 0, 0, 0]])
    assert UNEVEN.score(histogram, np.array([4, 4, 4]), None).tolist() == [5, 0, 0]
    assert UNEVEN.score(histogram[:1], np.array([2]), None).tolist() == [3]  # the rules leave two of four categories


def stopping(layers: int = 2, stop: bool = True) -> MethodSpec:
    return method_spec(
        decomposition="tree", elect={"layers": layers, "utility": "uneven", "stop": stop, "share": Fraction(9, 10)}
    )


def test_a_branch_ends_where_another_layer_tells_nothing_and_goes_on_where_it_does():
    shape = domain(2, 2, 2)
    even = [(0, b, c) for b in range(2) for c in range(2)] * 500
    uneven = [(1, 0, c) for c in range(2)] * 1000
    plan = make_plan(release(shape, stopping(), "20"))
    tree = build_tree(shape, plan, count_codes(np.array([(0, b, c) for _, b, c in even] + uneven)), SeededRandomness(1))
    assert tree.splits[tree.layers[0].split[0]] == (1,)  # 3000 of 4000 rows have x1 = 0
    whole = build_tree(shape, plan, count_codes(np.array(even * 2 + [(1, b, c) for _, b, c in even * 2])), SeededRandomness(1))
    assert whole.widths() == (1, 8)  # nothing is uneven: the cells come at once, with all of ε
    assert (
        build_tree(
            shape, make_plan(release(shape, stopping(stop=False), "20")), count_codes(np.array(even)), SeededRandomness(1)
        ).widths()[1]
        == 2
    )


def test_cells_below_a_branch_that_stopped_spend_what_its_path_has_left():
    shape = domain(2, 2, 2)
    plan = make_plan(release(shape, stopping(3), "1"))
    for layer in (1, 2):
        left = sum(
            d.epsilon for d in plan.draws if d.kind == "count" and d.layer >= layer and (d.nodes == "inner" or d.layer == 3)
        )
        assert plan.count_draw(layer, 1, "leaves").epsilon == left
    assert plan.election.candidates == 4 and all(layer.nodes == 8 for layer in plan.layers)


def test_the_declared_sensitivity_is_not_wasteful():
    """Near-saturated: one category with many records, one record added to another: the change approaches 2."""
    before, after = np.array([[10.0**6, 0]]), np.array([[10.0**6, 1]])
    moved = AIC.score(before, np.array([2]), None) - AIC.score(after, np.array([2]), None)
    assert 0 <= moved[0] < 2
    big = changes(lambda h: AIC.score(h, np.full(len(h), 2), None), 2, 400)
    assert big.min() < -1.9


def test_counting_categories_from_data_would_break_the_bound():
    """A control (the paper's error E4): with K = the categories seen, the change exceeds 2 and approaches 4."""

    def from_data(h):
        return 2 * log_likelihood(h) - 2 * (h > 0).sum(axis=1)

    moved = changes(from_data, 2, 60)
    assert moved.min() < -2.5


def test_an_election_with_plenty_of_budget_takes_the_smallest_aic():
    shape = domain(2, 2, 2)
    rows = np.array([(0, i % 2, i % 10 == 0) for i in range(400)], dtype=int)
    plan = make_plan(release(shape, method_spec(decomposition="tree", elect={"layers": 1}), "1000"))
    for mechanism in ("permute_and_flip", "exponential"):
        plan = make_plan(release(shape, method_spec(decomposition="tree", elect={"layers": 1, "mechanism": mechanism}), "1000"))
        winners = [build_tree(shape, plan, count_codes(rows), SeededRandomness(i)).splits[0] for i in range(20)]
        scores = [AIC.score(np.bincount(rows[:, j], minlength=2)[None].astype(float), np.array([2]), None)[0] for j in range(3)]
        assert winners == [(int(np.argmax(scores)),)] * 20


def test_with_little_budget_the_election_is_close_to_a_lottery():
    shape = domain(2, 2, 2)
    rows = np.array([(0, i % 2, i % 10 == 0) for i in range(400)], dtype=int)
    plan = make_plan(release(shape, method_spec(decomposition="tree", elect={"layers": 1}), "0.001"))
    winners = {build_tree(shape, plan, count_codes(rows), SeededRandomness(i)).splits[0] for i in range(60)}
    assert winners == {(0,), (1,), (2,)}


def test_groupings_are_all_ordered_partitions():
    for p, g in ((5, 2), (4, 3), (3, 3)):
        labels = _groupings(p, g)
        assert len({tuple(row) for row in labels.tolist()}) == len(labels) == grouping_count(p, g)
    assert grouping_count(5, 2) == 30  # the paper's 15 splits, each in two orders


def test_elected_groups_put_the_most_important_attributes_first():
    shape = domain(2, 2, 2, 2)
    rng = np.random.default_rng(1)
    rows = np.stack([np.zeros(500, int), rng.integers(0, 2, 500), np.zeros(500, int), rng.integers(0, 2, 500)], axis=1)
    plan = make_plan(
        release(
            shape, method_spec(decomposition="tree", elect={"layers": 2, "what": "groups", "share": Fraction(1, 2)}), "1000"
        )
    )
    tree = build_tree(shape, plan, count_codes(rows), SeededRandomness(3))
    scores = [
        float(AIC.score(np.bincount(rows[:, j], minlength=2)[None].astype(float), np.array([2]), None)[0]) for j in range(4)
    ]
    best = max(
        (np.mean([scores[j] for j in first]) - np.mean([scores[j] for j in range(4) if j not in first]), first)
        for k in (1, 2, 3) for first in itertools.combinations(range(4), k)
    )  # fmt: skip
    assert tree.splits[0] == best[1] and len(tree.layers) == 2


def test_the_grouping_utility_moves_within_twice_the_spread():
    """Difference of two group means of AIC under one added record: both signs, never beyond 2 (brute force)."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(400):
        rows = rng.integers(0, 2, (rng.integers(0, 12), 4))
        added = np.vstack([rows, rng.integers(0, 2, (1, 4))])
        one, two = (
            np.array(
                [AIC.score(np.bincount(r[:, j], minlength=2)[None].astype(float), np.array([2]), None)[0] for j in range(4)]
            )
            for r in (rows, added)
        )
        for label in _groupings(4, 2):
            gap = lambda s, label=label: s[label == 0].mean() - s[label == 1].mean()  # noqa: E731
            worst = max(worst, abs(gap(two) - gap(one)))
    assert 1.0 < worst < 2.0
    plan = make_plan(release(domain(2, 2), method_spec(decomposition="tree", elect={"layers": 2, "what": "groups"})))
    assert plan.election_draw(0).sensitivity == 4  # not monotone: twice the sensitivity of 2


def test_a_users_own_utility_is_paid_at_its_declared_sensitivity():
    largest = Utility("largest_category", lambda h, k, n: h.max(axis=1), Fraction(1), monotone=True)
    both = Utility("imbalance", lambda h, k, n: np.abs(h[:, 0] - h[:, -1]), Fraction(1), monotone=False)
    shape = domain(2, 2)
    for utility, spread in ((largest, 1), (both, 2)):
        method = method_spec(decomposition="tree", elect={"layers": 1, "utility": utility.name})
        plan = make_plan(release(shape, method, "100"), method=electing_by(utility))
        assert plan.election_draw(0).sensitivity == spread
        rows = np.array([(0, i % 2) for i in range(100)])
        tree = build_tree(shape, plan, count_codes(rows), SeededRandomness(0), {utility.name: utility})
        assert tree.splits[0] == (0,)
