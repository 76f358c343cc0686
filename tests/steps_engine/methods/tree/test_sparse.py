"""Cells too many to list: what is kept has the law of drawing every cell, and everything below the tree adds up."""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from schemas.errors import SpecError
from schemas.spec.method import MethodSpec, method_spec
from steps_engine import noise
from steps_engine.accounting.mechanisms import TWO_SIDED_GEOMETRIC, CountNoise, noise_of
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.prefixes import categories_left, complete, completions
from steps_engine.laws import Law, chance_of_reaching, excess_tables, gap_tables
from steps_engine.methods.blocks import together
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.tree import plan as planning
from steps_engine.methods.tree import sparse
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.sanitize import NoisyCounts, sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.synthesize import synthesize
from steps_engine.methods.tree.tables import read_tree, tree_table
from steps_engine.noise import SeededRandomness
from tests.privacy_audit import epsilon_lower_bound
from tests.steps_engine.shapes import SHAPES, allowed_cells, counted, domain, never, release

REJECTED, ACCEPTED = 1e-9, 1e-5
TRIALS = int(os.environ.get("STEPS_AUDIT_TRIALS", 4000)) // 4
BELOW = sparse.BELOW
SHAPE = domain(2, 3, 4, rules=(never(x0=1, x1=0), never(x0=0, x1=1, x2=(0, 1, 2))))
METHODS = {
    "flat": method_spec(decomposition="flat"),
    "a layer given": method_spec(decomposition="tree", order=("x0",), sets={"count": 2}),
    "a layer that ends a branch": method_spec(decomposition="tree", order=("x0", "x1")),
    "a layer elected": method_spec(decomposition="tree", elect={"layers": 1}),
    "one measurement shared": method_spec(decomposition="tree", order=("x1",), sets={"count": 3, "budget": "shared"}),
    "uh": method_spec(decomposition="uh", layers=1),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
MEASURES = {"pure": {}, "zcdp": {"delta": Decimal("1e-9")}}
every_measure = pytest.mark.parametrize("privacy", MEASURES.values(), ids=MEASURES)


@pytest.fixture(autouse=True)
def few_cells_fit(monkeypatch):
    """Memory for six nodes, so that small domains are sampled; about three empty cells may reach the threshold."""
    monkeypatch.setattr(planning, "MOST_BYTES", planning.bytes_of(6, 1))
    monkeypatch.setattr(planning, "MOST_KEPT", 3)


def planned(method: MethodSpec, shape=SHAPE, epsilon="1", **privacy):
    plan = make_plan(release(shape, method, epsilon, **privacy), SeededRandomness(3))
    assert sparse.is_sampled(plan)
    return plan


def released(method: MethodSpec, counts: Counts, seed=1, **privacy):
    plan, randomness = planned(method, **privacy), SeededRandomness(seed)
    tree = build_tree(SHAPE, plan, counts, randomness)
    noisy = sanitize(tree, counts, plan, randomness)
    return plan, tree, noisy, correct(tree, noisy, plan, randomness)


# The law


def patterns(draw, cells: int, trials: int) -> Counter:
    """How often each set of cells is hit, with the excess of the first hit as far as it matters."""
    seen: Counter = Counter()
    for _ in range(trials):
        where, values = draw()
        seen[tuple(where.tolist()), min(int(values[0]), 4) if len(values) else None] += 1
    return seen


def two_samples(one: Counter, other: Counter) -> float:
    """p-value of both being draws of one law; rare outcomes are put together."""
    keys = [key for key in one | other if one[key] + other[key] >= 10]
    rest = [sum(c.values()) - sum(c[key] for key in keys) for c in (one, other)]
    table = np.array([[c[key] for key in keys] + [r] for c, r in zip((one, other), rest, strict=True)])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


@pytest.mark.whole
def test_what_is_kept_has_the_law_of_drawing_for_every_cell_and_controls_are_caught():
    scale, threshold, cells, trials = Fraction(3, 2), 2, 4, 8_000
    randomness = SeededRandomness("law")

    def every_cell():
        drawn = noise.two_sided_geometric(scale, cells, randomness)
        hit = np.flatnonzero(drawn >= threshold)
        return hit, drawn[hit]

    def one_place_late():
        where, values = noise.zeros_that_reach(threshold, scale, cells, randomness)
        return where[where < cells - 1] + 1, values[where < cells - 1]

    def a_lower_threshold():
        where, values = noise.zeros_that_reach(threshold - 1, scale, cells, randomness)
        return where, values + 1

    dense = patterns(every_cell, cells, trials)
    sampled = lambda: noise.zeros_that_reach(threshold, scale, cells, randomness)  # noqa: E731
    assert two_samples(dense, patterns(sampled, cells, trials)) > ACCEPTED
    for control in (one_place_late, a_lower_threshold):
        assert two_samples(dense, patterns(control, cells, trials)) < REJECTED


def test_as_many_are_kept_as_the_law_says_far_beyond_memory():
    scale, threshold, cells = Fraction(2), 25, 10**9
    where, values = noise.zeros_that_reach(threshold, scale, cells, SeededRandomness(5))
    expected = cells * chance_of_reaching(scale, threshold)
    assert abs(len(where) - expected) < 5 * expected**0.5
    assert (np.diff(where) > 0).all() and 0 <= where[0] and where[-1] < cells
    assert stats.kstest(where / cells, "uniform").pvalue > ACCEPTED
    observed = np.bincount(np.minimum(values - threshold, 8), minlength=9)
    alpha = np.exp(-1 / 2)
    law = np.append((1 - alpha) * alpha ** np.arange(8), alpha**8)
    assert stats.chisquare(observed, law * len(values)).pvalue > ACCEPTED


@pytest.mark.parametrize("threshold, scale", [(1, Fraction(1, 40)), (40, Fraction(3, 7)), (9, Fraction(1, 9))])
def test_a_chance_that_doubles_cannot_tell_from_nought_is_drawn_all_the_same(threshold, scale):
    where, _ = noise.zeros_that_reach(threshold, scale, 2**61, SeededRandomness(2))
    assert len(where) <= 5 + 10 * 2**61 * chance_of_reaching(scale, threshold)


def test_thresholds_of_gaps_and_excesses_are_exact():
    scale, threshold = Fraction(5, 3), 3
    with_digits = 60
    for tables, power in (
        (excess_tables(scale), lambda k: np.exp(-k / float(scale))),
        (gap_tables(scale, threshold, 10**9), lambda k: (1 - chance_of_reaching(scale, threshold)) ** k),
    ):
        law: Law = tables[0].law
        for k in (1, 2, 7):
            assert float(law.tail(k, with_digits)) == pytest.approx(power(k), rel=1e-12)
            assert law.floor(k, 64) == int(tables[0].floors[k - 1])


def outcomes(draw, trials: int) -> Counter:
    randomness = SeededRandomness(draw.__name__)
    return Counter(draw(randomness) for _ in range(trials))


@pytest.mark.slow
@every_measure
def test_sanitizing_sampled_cells_is_sanitizing_all_of_them_and_keeping_what_reaches_the_threshold(privacy):
    shape = domain(2, 2, 2, rules=(never(x0=1, x1=0, x2=0),))
    plan = planned(METHODS["flat"], shape, "9" if privacy else "1.5", **privacy)
    counts = count_codes(np.array([[0, 0, 0]] * 2 + [[1, 1, 1]]))
    tree, draw = build_tree(shape, plan, None, None), plan.count_draw(2, 1, "leaves")
    space, law = Space(shape), noise_of(draw)
    everywhere = space.allowed()
    exact = np.zeros(shape.all_cells, int)
    exact[space.cells(counts.codes)] = counts.count

    def kept(cells, values):
        high = np.flatnonzero(values >= draw.threshold)
        return tuple(zip(cells[high].tolist(), np.minimum(values[high], draw.threshold + 1).tolist(), strict=True))

    def all_cells(randomness):
        return kept(everywhere, exact[everywhere] + law.draw(len(everywhere), randomness))

    def sampled(randomness):
        found = sparse.sanitize_cells(tree, counts, plan, randomness)
        return kept(found.cells, found.noisy[0])

    def forgetting_the_rule(randomness):
        return kept(np.arange(8), exact + law.draw(8, randomness))

    def a_second_chance_for_the_occupied(randomness):
        where, values = law.zeros_that_reach(draw.threshold, 8, randomness)
        noisy = exact[everywhere] + law.draw(len(everywhere), randomness)
        again = np.isin(everywhere, where) & (exact[everywhere] > 0)
        return kept(everywhere, np.where(again, np.maximum(noisy, draw.threshold + 1), noisy))

    dense = outcomes(all_cells, 3000)
    assert two_samples(dense, outcomes(sampled, 3000)) > ACCEPTED
    assert two_samples(dense, outcomes(forgetting_the_rule, 3000)) < REJECTED
    assert two_samples(dense, outcomes(a_second_chance_for_the_occupied, 3000)) < REJECTED


@pytest.mark.slow
def test_sampled_cells_keep_their_epsilon_and_a_control_with_half_the_noise_is_caught():
    somebody, nobody = count_codes(np.array([[1, 2, 3]])), count_codes(np.zeros((0, 3), int))
    plan = planned(METHODS["flat"], epsilon="1")
    mine = int(Space(SHAPE).cells(np.array([[1, 2, 3]]))[0])

    def evidence(plan, counts, seed):
        tree, randomness = build_tree(SHAPE, plan, None, None), SeededRandomness(("audit", seed))
        scales = [float(plan.count_draw(d, 1, kind).scale) for d, kind in ((1, "inner"), (2, "leaves"))]
        ratios = np.empty(TRIALS)
        for trial in range(TRIALS):
            noisy = sanitize(tree, counts, plan, randomness)
            total = np.sign(noisy.layers[0][0, 0] - 0.5) / scales[0]
            ratios[trial] = total + (1 if mine in noisy.cells.cells else -0.2) / scales[1]
        return ratios

    def bound(plan):
        return epsilon_lower_bound(evidence(plan, somebody, 1), evidence(plan, nobody, 2))

    half = plan.model_copy(
        update={"draws": tuple(d.model_copy(update={"scale": d.scale / 3, "threshold": d.threshold and 1}) for d in plan.draws)}
    )
    assert bound(plan) <= 1 < bound(half)


# Below a prefix


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_what_the_rules_leave_below_a_prefix_is_what_a_list_of_cells_shows(shape):
    space, listed = Space(shape), allowed_cells(shape)
    for number in range(2 ** len(shape.sizes)):
        fixed = frozenset(j for j in range(len(shape.sizes)) if number >> j & 1)
        shown = [tuple(c if j in fixed else 0 for j, c in enumerate(cell)) for cell in np.ndindex(*shape.sizes)]
        prefixes = sorted(set(shown))
        below = [[cell for cell in listed if all(cell[j] == prefix[j] for j in fixed)] for prefix in prefixes]
        cells = space.cells(np.array(prefixes))
        assert completions(space, cells, fixed).tolist() == [len(found) for found in below]
        for j in range(len(shape.sizes)):
            left = [len({cell[j] for cell in found}) for found in below]
            where = np.array(left) > 0
            assert categories_left(space, cells, fixed, j)[where].tolist() == np.array(left)[where].tolist()
        some = np.array([bool(found) for found in below])
        first = complete(space, cells[some], fixed, np.zeros_like)
        assert all(tuple(row) in found for row, found in zip(space.codes(first), [f for f in below if f], strict=True))


def test_cells_that_nothing_is_known_of_are_drawn_evenly_among_those_that_the_rules_allow():
    plan = planned(METHODS["a layer given"])
    tree = build_tree(SHAPE, plan, None, None)
    drawn = sparse.draw_below(tree, np.array([0, 8000]), SeededRandomness(4))
    allowed = Space(SHAPE).cells(np.array([cell for cell in allowed_cells(SHAPE) if cell[0] == 1]))
    found, times = np.unique(drawn, return_counts=True)
    assert found.tolist() == sorted(allowed.tolist()) and stats.chisquare(times).pvalue > ACCEPTED


# Adding up


@every_method
@every_measure
@pytest.mark.parametrize("total", ["estimated", "invariant"])
def test_sampled_cells_sum_to_the_nodes_above_them_and_rows_break_no_rule(method, total, privacy):
    counts = counted(SHAPE, 400, seed=2)
    plan, tree, _, made = released(method, counts, total=total, **privacy)
    rows, parent = sparse.cells_below(tree, Space(SHAPE).codes(made.cells.cells))
    assert len(rows) == len(made.cells.cells)
    opened = tree.layers[-1].cell < 0
    for whole, above in zip(made.cells.whole, made.whole[-1], strict=True):
        assert np.array_equal(np.bincount(parent, weights=whole, minlength=len(opened)), np.where(opened, above, 0))
    for which in range(1, plan.sets + 1):
        records = together(synthesize(tree, made, which, SeededRandomness(1))).to_pydict()
        rows = list(zip(*records.values(), strict=True))
        assert len(rows) == made.whole[0][which - 1, 0] and set(rows) <= set(allowed_cells(SHAPE))
        if total == "invariant":
            assert len(rows) == 400


@every_method
def test_the_tables_of_a_sampled_release_can_be_read_again(method):
    plan, tree, noisy, made = released(method, counted(SHAPE, 90))
    assert [len(layer) for layer in read_tree(SHAPE, tree_table(tree), sparse=True).layers] == list(tree.widths()[1:])
    again = NoisyCounts.from_table(noisy.to_table(), sparse=True)
    assert np.array_equal(again.cells.noisy, noisy.cells.noisy) and np.array_equal(again.cells.cells, noisy.cells.cells)
    assert noisy.to_table().schema == method_of(plan).schemas(plan)["noisy-counts"]
    read = ConsistentCounts.from_table(made.to_table(), sparse=True)
    assert np.array_equal(read.cells.whole, made.cells.whole) and len(read.whole) == len(made.whole)
    assert made.to_table().schema == method_of(plan).schemas(plan)["consistent-counts"]


def test_kept_counts_that_fit_stay_and_those_that_do_not_are_projected():
    parent, counts = np.array([0, 0, 2, 2]), np.array([5, 9, 7, 3])
    whole, rest = sparse.fit_to_parents(parent, counts, np.array([20, 6, 6]), SeededRandomness(1))
    assert whole.tolist() == [5, 9, 5, 1] and rest.tolist() == [6, 6, 0]
    nothing, left = sparse.fit_to_parents(np.zeros(0, int), np.zeros(0, int), np.array([4]), SeededRandomness(1))
    assert not len(nothing) and left.tolist() == [4]


def test_a_record_that_breaks_a_rule_is_refused_without_saying_which():
    plan = planned(METHODS["flat"])
    tree = build_tree(SHAPE, plan, None, None)
    with pytest.raises(ValueError, match="rules exclude"):
        sanitize(tree, count_codes(np.array([[1, 0, 3]])), plan, SeededRandomness(1))


# The plan


@every_method
@every_measure
def test_every_way_down_costs_exactly_what_is_charged(method, privacy):
    plan = planned(method, **privacy)
    for served in plan.served:
        counts = [d.cost for d in plan.draws if d.kind == "count" and d.set == served and (d.nodes == "inner" or d.threshold)]
        elections = sum((d.cost for d in plan.draws if d.kind == "election"), Fraction(0))
        assert sum(counts) * plan.measurements + elections == Fraction(plan.cost)
    assert all((d.threshold is not None) == (d.kind == "count" and d.layer == len(plan.layers)) for d in plan.draws)


@every_measure
def test_a_threshold_is_the_lowest_that_few_enough_empty_cells_reach(privacy):
    for method in METHODS.values():
        plan = planned(method, **privacy)
        draw = plan.count_draw(len(plan.layers), 1, "leaves")
        values = np.arange(draw.threshold - 1, draw.threshold + 2000)
        chance = noise_of(draw).probability(values)
        reach = [SHAPE.all_cells * plan.measurements * float(tail) for tail in (chance[1:].sum(), chance.sum())]
        assert reach[0] <= 3 and (reach[1] > 3 or draw.threshold == 1)


def test_a_million_million_cells_are_planned_within_memory_and_more_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.undo()
    wide = domain(*[10] * 12)
    plan = make_plan(release(wide, method_spec(decomposition="tree", order=("x0", "x1"))))
    assert sparse.is_sampled(plan) and plan.cells == 10**12 and plan.memory_bytes < 2**30  # of the whole run
    assert not sparse.is_sampled(make_plan(release(domain(*[10] * 6), method_spec(decomposition="flat"))))
    with pytest.raises(SpecError, match="can be numbered.*cascade"):
        make_plan(release(domain(*[10] * 19), method_spec(decomposition="flat")))
    with pytest.raises(SpecError, match="above its cells.*cascade"):
        make_plan(release(wide, method_spec(decomposition="tree", order=tuple([f"x{j}" for j in range(8)]))))


def test_the_censored_prior_finds_what_the_whole_table_would_show():
    """Many empty cells and some full ones: kept noise is recognised as such although only its far end is seen."""
    from steps_engine.inference.posterior import Prior

    scale, empty, threshold = Fraction(2), 200_000, 18
    _, reached = noise.zeros_that_reach(threshold, scale, empty, SeededRandomness(1))
    full = np.full(300, 40) + noise.two_sided_geometric(scale, 300, SeededRandomness(2))
    kept = np.concatenate([reached, full[full >= threshold]])
    prior = Prior.fit(kept, CountNoise(TWO_SIDED_GEOMETRIC, scale), unseen=empty + 300 - len(kept), threshold=threshold)
    drawn = np.mean([prior.draw(kept, SeededRandomness(seed)) for seed in range(20)], axis=0)
    blind = np.mean(
        [Prior.fit(kept, CountNoise(TWO_SIDED_GEOMETRIC, scale)).draw(kept, SeededRandomness(seed)) for seed in range(20)],
        axis=0,
    )
    assert abs(drawn[len(reached) :].mean() - 40) < 1 and drawn[: len(reached)].mean() < 8
    assert blind[: len(reached)].mean() > 16  # the control that does not know of the others believes what it sees
