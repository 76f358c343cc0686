"""Rows of pairs: quotas, the spanning tree, weights, rules and sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from schemas.spec.method import method_spec
from schemas.spec.release import ReleaseSpec
from steps_engine.accounting.mechanisms import contrast_variance
from steps_engine.domain.counting import count_codes
from steps_engine.domain.records import codes_of as codes_of_table
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.methods.pairs.estimate import estimate
from steps_engine.methods.pairs.synthesize import (
    LARGEST_BASE,
    agreeing,
    base_rows,
    base_size,
    by_quota,
    rungs_below,
    sample,
    spanning_tree,
    weights,
)
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import SHAPES, allowed_cells, counted, domain, release

PLENTY = "100000"  # ε whose noise is nought


def made(of, counts, epsilon=PLENTY, seed=0, privacy=None, **method):
    asked = release(of, method_spec(decomposition="pairs", **method), epsilon, **(privacy or {}))
    return run(asked, counts, SeededRandomness(seed))


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_every_parent_gives_its_children_their_quota_up_to_one_row(rows):
    rng = np.random.default_rng(rows)
    parent, shares = rng.integers(0, 4, rows).astype(np.int8), rng.dirichlet(np.ones(6), 4)
    shares[1, 2] = shares[3, 0] = 0
    child = by_quota(parent, shares, SeededRandomness(rows))
    found = np.zeros((4, 6))
    np.add.at(found, (parent, child), 1)
    wanted = shares / shares.sum(axis=1, keepdims=True) * np.bincount(parent, minlength=4)[:, None]
    assert (np.abs(found - wanted) <= 1 + 1e-6).all() and not found[shares == 0].any()


@pytest.mark.parametrize(("rows", "parents"), [(1, 1), (1000, 4), (1000, 3000), (50_000, 500)])
def test_rungs_looked_up_in_the_places_are_places_looked_up_on_the_rungs(rows, parents):
    """Rows of a set of one block stay what they were: they follow from what was published."""
    rng = np.random.default_rng(rows)
    shares = rng.dirichlet(np.full(7, 0.3), parents) * (rng.random((parents, 7)) < 0.8)
    ladder = np.cumsum(shares, axis=1)
    rungs = (ladder / np.maximum(ladder[:, -1:], 1e-300) + np.arange(parents)[:, None]).ravel()
    places = np.sort(np.append(rng.random(rows) * parents, rng.choice(rungs, 20)))  # some meet a rung
    assert (rungs_below(rungs, places) == np.searchsorted(rungs, places, side="right")).all()
    assert (rungs_below(rungs, places) != np.searchsorted(rungs, places, side="left")).any()  # control


def test_which_rows_of_a_parent_get_a_category_is_drawn():
    parent, shares = np.zeros(100, dtype=int), np.array([[0.5, 0.5]])
    first, second = (by_quota(parent, shares, SeededRandomness(seed)) for seed in (1, 2))
    assert first.sum() == second.sum() == 50 and (first != second).any()


@pytest.mark.parametrize("seed", range(10))
def test_the_spanning_tree_is_the_best_of_all(seed):
    pairs, worth = tuple(combinations(range(5), 2)), np.random.default_rng(seed).random(10)
    chosen = spanning_tree(5, pairs, worth)
    assert sum(worth[chosen]) == pytest.approx(max(sum(worth[list(each)]) for each in trees(5, pairs)))
    assert list(worth[chosen]) == sorted(worth[chosen], reverse=True)


def trees(attributes: int, pairs):
    """Brute force: so many edges that reach everything."""
    for edges in combinations(range(len(pairs)), attributes - 1):
        reached = {0}
        for _ in range(attributes):
            reached |= {x for e in edges if set(pairs[e]) & reached for x in pairs[e]}
        if len(reached) == attributes:
            yield edges


def test_pairs_that_were_not_measured_leave_a_forest():
    assert spanning_tree(4, ((0, 1), (2, 3)), np.array([1.0, 2.0])) == [1, 0]
    assert spanning_tree(3, (), np.zeros(0)) == []


def misfit(structure, found, codes, weight) -> float:
    total = 0.0
    for (a, b), table in zip(structure.tables, found.tables, strict=True):
        cell = codes[:, a].astype(int) * structure.sizes[b] + codes[:, b]
        total += np.abs(np.bincount(cell, weights=weight, minlength=table.size) / weight.sum() - table.ravel()).sum() / 2
    return total / len(found.tables)


def test_weights_bring_the_base_nearer_to_all_pairs_and_rows_follow_the_weights():
    of = domain(3, 4, 2, 3, 2, expected_rows=5000)
    released = made(of, counted(of, 5000), pairs="all")
    structure, noisy = read_measured(of, released.plan, released.tables)
    found = estimate(structure, noisy, 0, None)
    base = base_rows(structure, found, found.information(structure.tables), 20_000, SeededRandomness(1))
    weight = weights(structure, found, base)
    before, after = (misfit(structure, found, base, each) for each in (np.ones(len(base)), weight))
    assert after < before / 3
    taken = base[sample(base, weight, 5000, [0, 1, 2, 3, 4], structure.sizes, SeededRandomness(2))]
    assert misfit(structure, found, taken, np.ones(5000)) < after + 0.02


@pytest.mark.whole
def test_rows_that_are_weighed_and_sampled_again_are_nearer_to_all_pairs_than_those_sampled_once():
    of, drawn = domain(*[3] * 14, expected_rows=5000), np.random.default_rng(3)
    codes = drawn.integers(0, 3, (5000, 14))
    for j in range(2, 14):
        copied = drawn.random(5000) < 0.4
        codes[copied, j] = codes[copied, j - 2]
    released = made(of, count_codes(codes), pairs="all")
    structure, noisy = read_measured(of, released.plan, released.tables)
    found, order = estimate(structure, noisy, 0, None), list(range(14))
    base = base_rows(structure, found, found.information(structure.tables), 20_000, SeededRandomness(1))
    weight = weights(structure, found, base)
    taken = sample(base, weight, 5000, order, structure.sizes, SeededRandomness(2))
    rows = agreeing(structure, found, base, weight, 5000, order, SeededRandomness(2))
    assert rows.shape == (5000, 14)
    assert {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in base.tolist()}
    once, again = (misfit(structure, found, each, np.ones(5000)) for each in (base[taken], rows))
    assert again < 0.7 * once


def test_a_base_has_several_rows_for_every_row_until_memory_ends_that():
    assert [base_size(rows) for rows in (1, 8192, 30_000, 100_000)] == [16, 2**17, 2**17, 400_000]
    assert [base_size(rows) for rows in (10**6, 10**7)] == [LARGEST_BASE, 10**7]
    assert [base_size(40_000, tables) for tables in (0, 64, 105, 10**4)] == [640_000, 2**19, 2**25 // 105, 160_000]


@pytest.mark.parametrize("epsilon", ["0.01", "1", PLENTY])
@pytest.mark.parametrize("which", [name for name in SHAPES if "rule" in name])
@pytest.mark.whole
def test_rules_are_kept_whatever_the_noise(which, epsilon):
    of = SHAPES[which]
    codes = codes_of_table(made(of, counted(of, 400), epsilon).records[0], of)
    assert {tuple(row) for row in codes.tolist()} <= set(allowed_cells(of))


@pytest.mark.whole
def test_shared_sets_differ_by_the_posterior_and_split_sets_by_measurements_of_their_own():
    of = domain(2, 3, 3, expected_rows=2000)
    counts = counted(of, 2000)
    shared = made(of, counts, "1", sets={"count": 3, "budget": "shared"})
    split = made(of, counts, "1", sets={"count": 3})
    for released in (shared, split):
        tables = [np.bincount(codes_of_table(r, of)[:, 1], minlength=3).tolist() for r in released.records]
        assert len({tuple(table) for table in tables}) == 3
    assert "noisy_2" not in shared.tables["noisy-counts"].column_names
    one, other = (split.tables["noisy-counts"][f"noisy_{i}"].to_numpy() for i in (1, 2))
    assert (one != other).mean() > 0.9


def test_split_sets_follow_their_own_measurement_alone():
    """The noise of the second measurement moves no row of the first set, given the groups and pairs."""
    of = domain(2, 3, 3, expected_rows=2000)
    released = made(of, counted(of, 2000), "1", sets={"count": 2})
    structure, noisy = read_measured(of, released.plan, released.tables)
    changed = [each.copy() for each in noisy]
    for each in changed:
        each[1].flat[0] += 300
    assert estimate(structure, noisy, 0, None).tables[0] == pytest.approx(estimate(structure, changed, 0, None).tables[0])
    assert estimate(structure, noisy, 1, None).tables[0] != pytest.approx(estimate(structure, changed, 1, None).tables[0])


@pytest.mark.parametrize("total", ["public", "invariant", "estimated"])
@pytest.mark.parametrize("sizes", [(2, 3), (1,), (4,), (3, 1)])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.whole
def test_a_number_of_rows_that_is_known_is_kept(total, sizes, count):
    of = domain(*sizes, expected_rows=300)
    released = made(of, counted(of, 300), "1", privacy={"total": total, "neighbours": "substitute"}, sets={"count": count})
    rows = [table.num_rows for table in released.records]
    assert released.method.check(of, released.plan, released.tables).findings == ()
    if total != "estimated" and max(sizes) > 1:
        assert rows == [300] * count
    noise = [contrast_variance(draw, ()) for draw in released.plan.draws if () in draw.tables]
    error = np.sqrt(max(noise, default=0.0))
    assert all(abs(each - 300) <= 8 * error + 1 for each in rows)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1,), (5,), (120, 2)])
def test_of_an_empty_table_there_are_few_rows_or_none(sizes):
    of = domain(*sizes)
    released = made(of, count_codes(np.zeros((0, len(sizes)), int)))
    assert released.records[0].num_rows <= 1


def chained(rows: int = 4000, attributes: int = 9) -> np.ndarray:
    drawn = np.random.default_rng(3)
    codes = drawn.integers(0, 3, (rows, attributes))
    for j in range(2, attributes):
        copied = drawn.random(rows) < 0.4
        codes[copied, j] = codes[copied, j - 2]
    return codes


def unexchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steps_engine.methods.pairs.synthesize.exchanged", lambda rows, *_: rows)


@pytest.mark.whole
def test_rows_that_were_exchanged_are_nearer_in_triples_and_no_further_in_pairs(monkeypatch):
    codes = chained()
    of, names = domain(*[3] * 9, expected_rows=4000), tuple(f"a{j}" for j in range(9))
    original, counts = Coded(names, (3,) * 9, codes), count_codes(codes)

    def distances() -> np.ndarray:
        rows = codes_of_table(made(of, counts, pairs="all").records[0], of).astype(np.int64)
        return np.array([margins(original, [Coded(names, (3,) * 9, rows)], ways).mean for ways in (2, 3)])

    exchanged = distances()
    unexchanged(monkeypatch)
    before = distances()
    assert exchanged[1] < 0.95 * before[1] and exchanged[0] < before[0]


@pytest.mark.whole
def test_rows_that_agree_with_measured_triples_are_not_exchanged(monkeypatch):
    codes = chained(1000, 5)
    of = domain(*[3] * 5, expected_rows=1000)
    asked = release(of, method_spec(decomposition="pairs", pairs="all"), "10")
    declared = ReleaseSpec.model_validate({**dict(asked.spec), "analyses": (tuple(of.names[:3]),)})
    for each, differs in ((asked.model_copy(update={"spec": declared}), False), (asked, True)):
        before = run(each, count_codes(codes), SeededRandomness(0)).records[0]
        with monkeypatch.context() as patch:
            unexchanged(patch)
            assert (run(each, count_codes(codes), SeededRandomness(0)).records[0] != before) is differs
