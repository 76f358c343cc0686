"""The cascade: its score, its cost, what it reproduces, and that no exact count decides how it grows."""

from __future__ import annotations

import ast
import inspect
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain import contingency
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.methods.blocks import together
from steps_engine.methods.cascade import growth as cascade
from steps_engine.methods.cascade import sanitize as sanitizing
from steps_engine.methods.cascade import synthesize as walking
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.growth import dependence, elect_order, grow, mean_dependence
from steps_engine.methods.cascade.plan import LAYERS, SPREAD, tree_draws
from steps_engine.methods.cascade.sanitize import Cascade, sanitize
from steps_engine.methods.cascade.synthesize import (
    aliases,
    draw_categories,
    nearest_histograms,
    nearest_shares,
    synthesize_cascade,
    total_rows,
    walk,
)
from steps_engine.methods.cascade.tables import noisy_table, read_noisy, read_trees, trees_table
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tests.privacy_audit import epsilon_lower_bound
from tests.steps_engine.shapes import SHAPES, allowed_cells, counted, domain, never, records, release

LARGE = "1000000"


def plan_of(of: Domain, epsilon: str = "1", sets: int = 1, budget: str = "split", order=None, **privacy):
    method = method_spec(decomposition="cascade", order=order, sets={"count": sets, "budget": budget})
    return make_plan(release(of, method, epsilon, **privacy))


def fit(of: Domain, plan, counts, randomness) -> Cascade:
    """Elect all trees, then sanitize the histograms of their leaves."""
    return sanitize(of, grow(of, plan, counts, randomness), plan, counts, randomness)


def made(of: Domain, codes: np.ndarray, epsilon: str = LARGE, seed: int = 1, **more) -> np.ndarray:
    plan, randomness = plan_of(of, epsilon, **more), SeededRandomness(("cascade", seed))
    return walk(of, plan, fit(of, plan, count_codes(codes), randomness), 1, randomness)


# --- the score


def brute_dependence(table: np.ndarray) -> Fraction:
    n = int(table.sum())
    if n == 0:
        return Fraction(0)
    cells = itertools.product(range(table.shape[0]), range(table.shape[1]))
    return sum(abs(int(table[z, x]) - Fraction(int(table[z].sum()) * int(table[:, x].sum()), n)) for z, x in cells) / 2


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), min_size=6, max_size=6))
def test_the_score_is_half_the_distance_from_independence(counts):
    table = np.array(counts).reshape(2, 3)
    assert dependence(table[None])[0] == pytest.approx(float(brute_dependence(table)), abs=1e-9)


def steps(tables: np.ndarray) -> np.ndarray:
    """Every change of the score when one record is added to one of the tables."""
    moves = []
    for z, x in np.ndindex(*tables.shape[1:]):
        more = tables.copy()
        more[:, z, x] += 1
        moves.append(dependence(more) - dependence(tables))
    return np.concatenate(moves)


def test_one_record_moves_the_score_by_less_than_two_up_and_down():
    """Exhaustive over all small tables, then along two families that approach the supremum in both directions."""
    small = np.array(list(itertools.product(range(5), repeat=4))).reshape(-1, 2, 2)
    wide = np.array(list(itertools.product(range(3), repeat=6))).reshape(-1, 2, 3)
    assert max(np.abs(steps(small)).max(), np.abs(steps(wide)).max()) < 2
    up = np.array([[[10**6, 0], [0, 0]]])
    down = np.array([[[10**8, 10**5], [10**5, 0]]])
    assert 1.99 < steps(up).max() < 2
    assert -2 < steps(down).min() < -1.99


def test_the_spread_of_an_election_covers_moves_in_both_directions():
    draws = [draw for draw in plan_of(domain(2, 3, 2)).draws if draw.kind == "election"]
    assert draws and all(draw.sensitivity == SPREAD == 4 for draw in draws)


# --- the plan

SPECS = st.fixed_dictionaries({
    "sizes": st.lists(st.integers(1, 9), min_size=1, max_size=7),
    "epsilon": st.decimals("0.001", "20", places=3),
    "sets": st.integers(1, 4),
    "budget": st.sampled_from(["split", "shared"]),
    "neighbours": st.sampled_from(["add_remove", "substitute"]),
    "rows_per_person": st.integers(1, 3),
    "expected_rows": st.none() | st.integers(1, 10**6),
    "order": st.sampled_from([None, "elected"]),
})  # fmt: skip


def path_costs(plan) -> set[Fraction]:
    """What each kind of path costs, by elections held: draws of no tree, and of every tree one way down."""
    first = sum((draw.epsilon for draw in plan.draws if draw.tree is None), Fraction(0))
    costs = set()
    for held in range(LAYERS + 1):
        cost = first
        for layer in plan.layers:
            draws = tree_draws(plan, layer.attributes[0])
            number = max(min(held, len(draws.elections)), min(1, len(draws.elections)))
            cost += sum((d.epsilon for d in draws.elections[:number]), Fraction(0))
            cost += sum((d.epsilon for counts in draws.counts for d in counts if d.layer == number), Fraction(0))
        costs.add(cost)
    return costs


@settings(max_examples=60, deadline=None)
@given(SPECS)
def test_every_path_costs_epsilon_exactly_and_every_scale_fits_its_share(asked):
    unit = {"rows_per_person": asked["rows_per_person"]}
    of = domain(*asked["sizes"], unit=unit, expected_rows=asked["expected_rows"])
    budget = {"sets": asked["sets"], "budget": asked["budget"], "neighbours": asked["neighbours"]}
    plan = plan_of(of, str(asked["epsilon"]), order=asked["order"], **budget)
    assert path_costs(plan) == {Fraction(asked["epsilon"])}
    factor = asked["rows_per_person"] * (2 if asked["neighbours"] == "substitute" else 1)
    for draw in plan.draws:
        assert draw.sensitivity == factor * (SPREAD if draw.kind == "election" else 1)
        assert draw.scale == draw.sensitivity / draw.epsilon


def test_without_expected_rows_the_first_draw_is_the_total():
    assert plan_of(domain(2, 2)).draws[0].name == "total"
    assert all(draw.name != "total" for draw in plan_of(domain(2, 2, expected_rows=10)).draws)


def test_the_given_order_comes_first_and_the_rest_by_size():
    plan = plan_of(domain(2, 5, 3, 1), order=(("x1",),))
    assert [layer.attributes[0] for layer in plan.layers] == ["x1", "x0", "x2"]


def test_attributes_whose_names_contain_each_other_keep_their_own_draws():
    attributes = tuple({"name": name, "kind": "integer", "bounds": (0, 1)} for name in ("a", "a: b", "total"))
    of = Domain.model_validate({"name": "d", "population": "p", "attributes": attributes})
    plan = plan_of(of)
    parts = [tree_draws(plan, name) for name in of.names]
    assert sum(len(part.elections) + sum(map(len, part.counts)) for part in parts) + 1 == len(plan.draws)


def test_a_split_competes_only_if_its_table_fits_whatever_the_budget():
    of = domain(60, 60, 60, 60, 60, 60, 2)
    splits = ((), (0,), (3, 4), (3, 4, 5))
    root = AttributeTree(of, 6, splits, ())
    wide = AttributeTree(of, 6, (*splits, (0, 1, 2)), (np.array([4], dtype=np.int32),))
    assert cascade._eligible(root).tolist() == [[True, True, True, True]]  # 60³ · 2 cells
    assert cascade._eligible(wide).all(axis=0).tolist() == [
        True,
        False,
        False,
        False,
        False,
    ]  # 60³ nodes: 60³ · 60² · 2 and more


# --- an elected order


def chain(rows: int = 600) -> np.ndarray:
    """x2 decides x0 fully and x1 partly; x3 is on its own."""
    rng = np.random.default_rng(4)
    x2, x3 = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    return np.stack([x2 % 2, np.where(rng.random(rows) < 0.7, x2, rng.integers(0, 3, rows)), x2, x3], axis=1)


def table_of(codes: np.ndarray, i: int, j: int, sizes: tuple[int, ...]) -> np.ndarray:
    table = np.zeros((sizes[i], sizes[j]))
    np.add.at(table, (codes[:, i], codes[:, j]), 1)
    return table


def test_with_unlimited_budget_the_order_is_the_greedy_one():
    of, codes = domain(2, 3, 3, 2, expected_rows=600), chain()
    score = lambda j, others: np.mean([float(brute_dependence(table_of(codes, j, i, of.sizes))) for i in others])  # noqa: E731
    left, wanted = [0, 1, 2, 3], []
    while left:
        best = max(left, key=lambda j: score(j, wanted or [i for i in left if i != j]) if len(left) > 1 else 0)
        left.remove(best)
        wanted.append(best)
    assert elect_order(of, plan_of(of, LARGE, order="elected"), count_codes(codes), SeededRandomness(1)) == tuple(wanted)


def test_an_elected_order_gives_every_attribute_its_tree_and_keeps_the_dependence():
    of, codes = domain(2, 3, 3, 2, expected_rows=600), chain()
    plan, randomness = plan_of(of, LARGE, order="elected"), SeededRandomness(2)
    fitted = fit(of, plan, count_codes(codes), randomness)
    assert sorted(tree.attribute for tree in fitted.trees) == [0, 1, 2, 3]
    rows = walk(of, plan, fitted, 1, randomness)
    assert np.array_equal(rows[:, 0], rows[:, 2] % 2)


def test_only_a_cascade_elects_its_order_and_no_other_word_is_one():
    for method in ({"decomposition": "tree", "order": "elected"}, {"decomposition": "auto", "order": "elected"}):
        with pytest.raises(ValueError, match="needs decomposition: cascade"):
            method_spec(**method)
    with pytest.raises(ValueError, match="is elected; found 'best'"):
        method_spec(decomposition="cascade", order="best")


def order_moves(score) -> float:
    """The largest change of any candidate's score when a record is added, over all data sets of three in a 2 × 2 × 2 domain."""
    cells, worst = list(itertools.product(range(2), repeat=3)), 0.0
    for data in itertools.combinations_with_replacement(cells, 3):
        for more in cells:
            before, after = (score(np.array(rows)) for rows in (data, (*data, more)))
            worst = max(worst, float(np.abs(after - before).max()))
    return worst


def pair_matrix(codes: np.ndarray) -> np.ndarray:
    tables = {(i, j): dependence(table_of(codes, i, j, (2, 2, 2))) for i in range(3) for j in range(3) if i != j}
    return np.array([[tables.get((i, j), 0.0) for j in range(3)] for i in range(3)])


@pytest.mark.parametrize("placed", [[], [0], [0, 1]])
@pytest.mark.whole
def test_one_record_moves_an_order_score_by_less_than_half_the_spread(placed):
    left = [j for j in range(3) if j not in placed]
    assert order_moves(lambda codes: mean_dependence(pair_matrix(codes), left, placed)) < SPREAD / 2


def test_control_summed_dependence_moves_further_than_its_mean():
    heavy = np.array([[[10**6, 0], [0, 0]]])
    assert 2 * steps(heavy).max() > SPREAD / 2  # a sum over two placed attributes would need twice the spread


# --- what comes out


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("epsilon", ["0.1", "5"])
@pytest.mark.whole
def test_every_shape_keeps_its_rules_and_its_domain(name, epsilon):
    of = SHAPES[name]
    rows = made(of, records(of, 300), epsilon)
    assert set(map(tuple, rows.tolist())) <= set(allowed_cells(of))


def differences(of: Domain, codes: np.ndarray, rows: np.ndarray) -> tuple[int, int]:
    """The largest difference between the counts of a cell, and how many records lie in cells that were never drawn."""
    wanted, got = (np.bincount(Space(of).cells(each), minlength=of.all_cells) for each in (codes, rows))
    return int(np.abs(wanted - got).max()), int(wanted[got == 0].sum())


@pytest.mark.parametrize("name", ["one attribute", "one cell", "binary", "a rule", "rules that end branches early"])
def test_with_unlimited_budget_small_domains_come_back_but_for_cells_too_rare_to_be_drawn(name):
    of = SHAPES[name]
    codes = records(of, 500, seed=3)
    largest, undrawn = differences(of, codes, made(of, codes))
    assert undrawn < 20 and largest <= 2 + undrawn  # rounding in the sampling of rows


def test_with_unlimited_budget_a_strong_dependence_is_kept():
    of = domain(2, 3, 4, 5, expected_rows=2000)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 2000)
    codes = np.stack([first, first + (rng.random(2000) < 0.3), 2 * first, rng.integers(0, 5, 2000)], axis=1)
    rows = made(of, codes)
    assert np.array_equal(rows[:, 2], 2 * rows[:, 0])
    assert abs(np.mean(rows[:, 1] != rows[:, 0]) - np.mean(codes[:, 1] != codes[:, 0])) < 0.003


def test_no_records_give_a_plausible_set():
    for name, of in SHAPES.items():
        rows = made(of, np.zeros((0, len(of.sizes)), dtype=int), "1")
        assert len(rows) < 500, name


def test_a_known_total_is_kept_exactly():
    of = domain(2, 3, 2)
    assert len(made(of, records(of, 123), "0.5", total="invariant")) == 123


def test_missing_values_numbers_and_dates_come_back_as_records():
    attributes = (
        {"name": "c", "kind": "categorical", "categories": ("a", "b"), "missing": "category"},
        {"name": "w", "kind": "numeric", "bounds": (0, 1), "bins": 4, "missing": "category"},
        {"name": "d", "kind": "date", "bounds": ("2020-01-01", "2020-12-31"), "bins": 3},
    )
    attributes = tuple({**a, "bounds": tuple(map(Decimal, a["bounds"]))} if a["kind"] == "numeric" else a for a in attributes)
    of = Domain.model_validate({"name": "d", "population": "p", "attributes": attributes, "rules": (never(c=None, w=None),)})
    codes = np.random.default_rng(1).integers(0, (2, 4, 3), (400, 3))
    plan, randomness = plan_of(of, LARGE), SeededRandomness(5)
    table = together(synthesize_cascade(of, plan, fit(of, plan, count_codes(codes), randomness), 1, randomness))
    assert table.num_rows == 400
    again = encode(table.to_pandas(), of)
    assert np.abs(np.bincount(again[:, 1], minlength=5) - np.bincount(codes[:, 1], minlength=5)).max() <= 4


@pytest.mark.slow
def test_a_hundred_attributes_are_no_trouble():
    of = domain(*[2] * 100, expected_rows=1000)
    codes = np.repeat(np.random.default_rng(0).integers(0, 2, (1000, 50)), 2, axis=1)
    rows = made(of, codes, "1000")
    assert np.mean(rows[:, ::2] == rows[:, 1::2]) > 0.9


@pytest.mark.parametrize("budget", ["split", "shared"])
def test_sets_differ_and_a_shared_measurement_is_drawn_once(budget):
    of, randomness = domain(2, 3, 4, expected_rows=500), SeededRandomness(3)
    plan = plan_of(of, "2", 3, budget)
    fitted = fit(of, plan, counted(of, 500), randomness)
    assert all(len(noisy) == (3 if budget == "split" else 1) for noisy in fitted.noisy)
    tables = [count_codes(walk(of, plan, fitted, number, randomness)).to_table(of) for number in (1, 2, 3)]
    assert not tables[0].equals(tables[1]) and not tables[1].equals(tables[2])
    if budget == "shared":
        assert len({total_rows(plan, fitted, number) for number in (1, 2, 3)}) == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_an_alias_table_has_exactly_the_law_of_its_shares(categories, seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(categories, 0.4), 6) * (rng.random((6, categories)) < 0.8)
    shares[:, 0] += 0.01
    keep, alias = aliases(shares)
    law = keep / categories
    np.add.at(law, (np.arange(6)[:, None], alias), (1 - keep) / categories)
    assert np.allclose(law, shares / shares.sum(axis=1, keepdims=True), atol=1e-12)
    assert (keep[shares == 0] <= 0).all()  # what has no share is never drawn


def test_rows_follow_the_distribution_of_their_own_group():
    group, shares = np.repeat([0, 1], [40_000, 10_000]), np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5]])
    drawn = np.bincount(group * 3 + draw_categories(group, shares, SeededRandomness(1)), minlength=6).reshape(2, 3)
    expected = shares * [[40_000], [10_000]]
    assert (np.abs(drawn - expected) <= 4.5 * np.sqrt(expected * (1 - shares))).all()


def test_blocks_of_rows_agree_with_the_whole(monkeypatch):
    of = SHAPES["a rule"]
    codes = records(of, 500, seed=3)
    monkeypatch.setattr(walking, "LARGEST_BLOCK", 130)
    rows = made(of, codes, total="invariant")
    largest, undrawn = differences(of, codes, rows)
    assert len(rows) == 500 and undrawn < 20 and largest <= 8 + undrawn  # each of four blocks rounds for itself


def test_shares_are_those_of_the_nearest_histogram_that_the_rows_can_fill():
    rng = np.random.default_rng(3)
    values, totals, allowed = rng.normal(0, 5, (50, 4)), rng.uniform(1, 30, 50), rng.random((50, 4)) < 0.8
    allowed[:, 0] = True
    shares = nearest_shares(values, totals, allowed)
    assert np.allclose(shares.sum(axis=1), 1) and (shares >= 0).all() and (shares[~allowed] == 0).all()
    for row, total, mask, share in zip(values, totals, allowed, shares, strict=True):
        filled = min(total, np.maximum(row[mask], 0).sum()) or total
        others = rng.dirichlet(np.ones(mask.sum()), 200) * filled
        best = ((share * filled - row)[mask] ** 2).sum()
        assert best <= ((others - row[mask]) ** 2).sum(axis=1).min() + 1e-9


def test_an_empty_category_stays_empty_where_more_rows_come_than_were_counted():
    assert nearest_shares(np.array([[9.0, 0.0]]), np.array([12]), np.ones((1, 2), bool)).tolist() == [[1.0, 0.0]]


def test_a_histogram_without_negative_counts_keeps_its_noisy_total():
    tree = AttributeTree(domain(2, 3), 1, ((), (0,)), (np.array([1], dtype=np.int32),))
    nearest = nearest_histograms(tree, np.array([[10, -4, 4], [-3, 1, -2]]))
    assert nearest.tolist() == [[8.0, 0.0, 2.0], [0.0, 0.0, 0.0]]


# --- tables


@pytest.mark.parametrize("name", SHAPES)
def test_a_cascade_survives_its_tables(name):
    of, randomness = SHAPES[name], SeededRandomness(4)
    plan = plan_of(of, "20", 2, total="invariant")
    fitted = fit(of, plan, counted(of, 200), randomness)
    trees = read_trees(of, trees_table(of, fitted.trees))
    again = read_noisy(of, trees, noisy_table(fitted))
    assert again.total == 200 and all(np.array_equal(a, b) for a, b in zip(again.noisy, fitted.noisy, strict=True))
    assert [(t.attribute, t.splits) for t in again.trees] == [(t.attribute, t.splits) for t in fitted.trees]


def test_a_table_that_is_no_cascade_is_refused():
    of, randomness = domain(2, 2, 2, expected_rows=10**5), SeededRandomness(4)
    plan = plan_of(of, LARGE)
    same = np.repeat(np.arange(2), 500)[:, None].repeat(3, axis=1)
    trees = grow(of, plan, count_codes(same), randomness)
    table = trees_table(of, trees)
    texts = pa.array([text.replace("x0", "x2") for text in table["split"].to_pylist()]).dictionary_encode()
    forged = table.set_column(4, table.schema.field(4), texts)
    for broken in (table.slice(1), forged):
        with pytest.raises(ValueError):
            read_trees(of, broken)


def test_a_branch_that_breaks_a_rule_has_no_noise():
    of = domain(2, 2, rules=(never(x0=1, x1=0),), expected_rows=100)
    tree = AttributeTree(of, 1, ((), (0,)), (np.array([1], dtype=np.int32),))
    assert tree.allowed.tolist() == [[True, True], [False, True]]
    plan = plan_of(of, "0.001")
    noisy = sanitize(of, (tree,), plan, count_codes(np.zeros((0, 2), int)), SeededRandomness(1)).noisy[0][0]
    assert noisy[1, 0] == 0 and noisy[tree.allowed].all()


# --- nothing but elections and noise reads an exact count

CONFIDENTIAL = {"counts", "count", "codes", "prefix", "exact", "scores", "histograms", "histogram"}


def deciding_names(source: str) -> dict[str, set[str]]:
    """Per function: every name or attribute that a condition, a loop bound or a filter mentions."""
    found: dict[str, set[str]] = {}
    for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
        tests = [node.test for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert)]
        tests += [test for node in ast.walk(function) if isinstance(node, ast.comprehension) for test in node.ifs]
        names = {n.id for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)}
        found[function.name] = names | {n.attr for test in tests for n in ast.walk(test) if isinstance(n, ast.Attribute)}
    return found


@pytest.mark.parametrize("module", [cascade, sanitizing, contingency])
def test_no_branch_of_growth_or_election_reads_an_exact_count(module):
    decided = deciding_names(inspect.getsource(module))
    assert {name: names & CONFIDENTIAL for name, names in decided.items() if names & CONFIDENTIAL} == {}


def test_only_five_functions_touch_exact_counts():
    touching = {
        function.name
        for module in (cascade, sanitizing)
        for function in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in ("count", "codes")
    }
    assert touching == {"_prefixes", "_scores", "_histograms", "sanitize", "_rows_for_growing"}


def test_control_a_branch_on_an_exact_count_is_found():
    careless = "def grow(counts):\n    if counts.count.sum() < 5:\n        return None"
    assert deciding_names(careless)["grow"] & CONFIDENTIAL == {"counts", "count"}


TRIALS = 3000
PAIR = domain(2, 2, expected_rows=10**6)
SOMEBODY, NOBODY = np.array([[0, 0]] * 40 + [[1, 1]]), np.array([[0, 0]] * 40)


def evidence(codes: np.ndarray, seed: int) -> np.ndarray:
    """Log-likelihood ratio of what one person's path shows: whether x1's tree was split, and that person's own counts."""
    plan, randomness, counts = plan_of(PAIR), SeededRandomness(("audit", seed)), count_codes(codes)
    ratios = np.empty(TRIALS)
    for trial in range(TRIALS):
        fitted = fit(PAIR, plan, counts, randomness)
        first, second = fitted.noisy[0][0][0, 1], fitted.noisy[1][0][-1, 1]
        split = fitted.trees[1].leaves > 1
        ratios[trial] = np.sign(first - 0.5) + np.sign(second - 0.5) + 0.5 * split
    return ratios


@pytest.mark.slow
def test_a_whole_fit_keeps_its_epsilon():
    assert epsilon_lower_bound(evidence(SOMEBODY, 1), evidence(NOBODY, 2)) <= 1


@pytest.mark.slow
def test_control_a_tree_that_stops_on_exact_counts_is_caught(monkeypatch):
    def stopping(tree, rows, draw, price, randomness):
        split = rows.count.min() < 5 and len(tree.splits) > 1  # nobody is rare: no reason to split
        return AttributeTree(tree.domain, tree.attribute, tree.splits, (np.array([int(split)], dtype=np.int32),))

    monkeypatch.setattr(cascade, "_split", stopping)
    assert epsilon_lower_bound(evidence(SOMEBODY, 1), evidence(NOBODY, 2)) > 1
