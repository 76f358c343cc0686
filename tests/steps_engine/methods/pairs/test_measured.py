"""What pairs measures and what it makes of it: estimates, groups, tables, shares of the budget."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from schemas.errors import SpecError
from schemas.spec.method import method_spec
from schemas.spec.release import ReleaseSpec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.records import codes_of
from steps_engine.inference.raking import raked
from steps_engine.methods.pairs import measure
from steps_engine.methods.pairs.estimate import estimate, told
from steps_engine.methods.pairs.predict import candidate
from steps_engine.methods.pairs.tables import noisy_table, read_measured, read_structure, structure_table
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tasks.verify.analyses import planned_problems
from tests.steps_engine.methods.pairs.test_synthesize import PLENTY, made
from tests.steps_engine.shapes import SHAPES, counted, domain, release

RHO = {"delta": Decimal("1e-9")}
either_measure = pytest.mark.parametrize("privacy", [{}, RHO], ids=["pure", "zcdp"])


def exact_table(counts, pair, of) -> np.ndarray:
    return measure._table(counts, pair, of.sizes) / counts.count.sum()


@either_measure
@pytest.mark.parametrize("which", SHAPES)
@pytest.mark.whole
def test_without_noise_estimates_are_the_exact_tables(which, privacy):
    of = SHAPES[which]
    counts = counted(of, 3000)
    released = made(of, counts, PLENTY, privacy=privacy)
    structure, noisy = read_measured(of, released.plan, released.tables)
    found = estimate(structure, noisy, 0, None)
    assert found.total == 3000
    for j in range(len(of.sizes)):
        assert found.fine[j] == pytest.approx(exact_table(counts, (j,), of), abs=1e-6)
    for pair, table in zip(structure.tables, found.tables, strict=True):
        if structure.shape(pair) == tuple(of.sizes[j] for j in pair):
            assert table == pytest.approx(exact_table(counts, pair, of), abs=2e-3)


@either_measure
def test_sets_have_as_many_rows_as_everything_that_was_counted_tells(privacy):
    of, off, alone = domain(3, 4, 3, 5, expected_rows=3000), [], []
    counts = counted(of, 3000)
    for seed in range(12):
        released = made(of, counts, "1", seed, privacy)
        structure, noisy = read_measured(of, released.plan, released.tables)
        rows = told(structure, noisy)[()]
        assert len(released.frames[0]) == round(float(rows.value))
        off.append((float(rows.value) - 3000) / rows.variance**0.5)
        alone.append((structure.margins.total[0] - 3000) / rows.variance**0.5)
    by_sums = rows.variance < structure.margins.total_variance
    assert by_sums == (not privacy)  # under ρ what was measured beside the number of rows says nothing of it
    assert 0.3 < np.mean(np.square(off)) < 3  # its variance is what it says; chance alone is outside once in ten thousand
    assert not by_sums or np.mean(np.square(alone)) > 3  # control: its own noisy count is off by more


@pytest.mark.whole
def test_tables_counted_in_few_passes_are_those_counted_one_by_one(monkeypatch):
    of = domain(3, 4, 2, 3, 2, 40, expected_rows=5000)
    counts = counted(of, 5000)
    released = made(of, counts, "0.5")
    structure, _ = read_measured(of, released.plan, released.tables)
    assert structure.sizes[5] < 40  # groups are counted, not categories
    passes, joint = [], measure.joint_table
    monkeypatch.setattr(measure, "joint_table", lambda *given: (passes.append(given[3]), joint(*given))[1])
    tables = (*combinations(range(6), 2), (0, 2, 5))
    found = measure.exact_tables(structure, counts, tables)
    assert 0 < len(passes) < len(tables) / 2
    for table, counted_ in zip(tables, found, strict=True):
        assert counted_.dtype == np.int64
        cells = tuple(structure.group[j][counts.codes[:, j]] for j in table)
        expected = np.zeros(structure.shape(table), dtype=np.int64)
        np.add.at(expected, cells, counts.count)
        np.testing.assert_array_equal(counted_, expected)


@either_measure
@pytest.mark.whole
def test_a_draw_of_what_the_noise_leaves_open_scatters_about_the_estimate_as_wide_as_its_noise(privacy):
    of = domain(3, 2, 2, expected_rows=3000)
    known = {**privacy, "total": "invariant"}  # the noise of a number of rows moves shares too
    released = made(of, counted(of, 3000), "1", privacy=known, sets={"count": 2, "budget": "shared"})
    structure, noisy = read_measured(of, released.plan, released.tables)
    drawn = np.array([estimate(structure, noisy, 0, SeededRandomness(("draw", i))).fine[0] for i in range(300)]) * 3000
    assert drawn.mean(axis=0) == pytest.approx(3000 * estimate(structure, noisy, 0, None).fine[0], abs=40)
    assert drawn.var(axis=0).mean() == pytest.approx(structure.margins.variance(0), rel=0.5)


def test_raking_keeps_margins_and_forbidden_cells_empty():
    rows, columns = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4])
    allowed = np.array([[True, False], [True, True], [True, True]])
    for mask in (None, allowed):
        found = raked(np.random.default_rng(1).uniform(-0.02, 0.5, (3, 2)).clip(0.01), [((0,), rows), ((1,), columns)], mask)
        assert found.min() >= 0 and found.sum(axis=1) == pytest.approx(rows, abs=1e-4)
        assert found.sum(axis=0) == pytest.approx(columns, abs=1e-4) and (mask is None or not found[~mask].any())


# --- groups


@either_measure
@pytest.mark.whole
def test_a_hundred_and_twenty_categories_are_grouped_as_far_as_noise_demands(privacy):
    of = domain(120, 3, 2, expected_rows=5000)
    counts = counted(of, 5000)
    sizes = []
    for epsilon in ("0.1", "1", "30"):
        released = made(of, counts, epsilon, privacy=privacy)
        structure, _ = read_measured(of, released.plan, released.tables)
        sizes.append(structure.sizes[0])
        assert structure.sizes[1:] == (3, 2)
        assert released.records[0].num_rows > 0
    assert 1 <= sizes[0] <= sizes[1] <= sizes[2] <= 120 and sizes[0] < 20 < sizes[2]


def test_attributes_that_rules_tie_are_not_grouped():
    of = domain(40, 40, 2, rules=({"never": {"x0": 1, "x2": 1}},), expected_rows=500)
    released = made(of, counted(of, 500), "0.1")
    structure, _ = read_measured(of, released.plan, released.tables)
    assert structure.sizes[0] == 40 and structure.sizes[1] < 40


# --- tables


@either_measure
@pytest.mark.parametrize("method", [{"pairs": "all"}, {"pairs": 1}, {"pairs": "all", "sets": {"count": 2}}], ids=str)
@pytest.mark.parametrize("which", [*SHAPES, "wide"])
@pytest.mark.whole
def test_tables_are_read_as_they_were_written(which, method, privacy):
    of = SHAPES.get(which, domain(120, 2, 1, 5, expected_rows=4000))
    released = made(of, counted(of, 400), "1", privacy=privacy, **method)
    structure, noisy = read_measured(of, released.plan, released.tables)
    assert structure_table(structure).equals(released.tables["tree"])
    assert noisy_table(structure, noisy).equals(released.tables["noisy-counts"])


@pytest.mark.parametrize("place", ["attributes", "category", "group"])
def test_a_structure_of_another_domain_is_refused(place):
    of = domain(3, 4)
    released = made(of, counted(of, 100), "1")
    columns = released.tables["tree"].to_pydict()
    columns[place][2] = [3] if place == "attributes" else 3
    forged = type(released.tables["tree"]).from_pydict(columns, released.tables["tree"].schema)
    with pytest.raises(ValueError, match="domain|neighbouring"):
        read_structure(of, released.plan, forged)


# --- the plan


def shares(**method) -> dict:
    of = domain(3, 3, 3, 3, expected_rows=3000)
    plan = make_plan(release(of, method_spec(decomposition="pairs", pairs="all", **method)))
    return {draw.of: draw.cost for draw in plan.draws}


def test_importance_gives_an_attribute_more_of_the_budget_and_costs_nothing():
    even, more = shares(), shares(importance={"x1": Decimal(3)})
    assert sum(even.values()) == sum(more.values()) == 1
    assert len({even["x0",], even["x1",], even["x2",]}) == 1
    ratio = more["x1",] / more["x0",], more["x0", "x1"] / more["x0", "x2"]
    assert ratio[0] == ratio[1] == pytest.approx(Fraction(3) ** Fraction(1, 2), rel=1e-5)


def test_importance_of_an_attribute_that_is_not_there_is_refused():
    with pytest.raises(SpecError, match="importance names 'x9'; the domain has x0, x1"):
        shares(importance={"x9": Decimal(2)})


@either_measure
def test_much_budget_measures_all_pairs_of_few_attributes_and_no_fewer_than_little_of_many(privacy):
    def pairs(attributes: int, epsilon: str) -> int:
        of = domain(*[6] * attributes, expected_rows=5000)
        plan = make_plan(release(of, method_spec(decomposition="pairs"), epsilon, **privacy))
        return sum(draw.of == "elected" or len(draw.of or ()) == 2 for draw in plan.draws)

    assert 1 <= pairs(20, "1") <= pairs(20, "50") <= 190
    assert pairs(4, "50") == 6


def test_a_price_that_no_number_of_rows_repays_does_not_end_the_run():
    """Attributes that a rule ties are not grouped, and noise in all of their cells may be beyond what a score may be."""
    of = domain(90, 90, 2, rules=({"never": {"x0": 1, "x1": 1}},), expected_rows=500)
    assert made(of, counted(of, 500), "0.00000001", pairs=2).records


# --- what analyses need


def asking(of, analyses, epsilon="1", **privacy):
    usual = release(of, method_spec(decomposition="pairs", sets={"count": 3, "budget": "shared"}), epsilon, **privacy)
    return usual.model_copy(update={"spec": ReleaseSpec.model_validate({**dict(usual.spec), "analyses": analyses})})


@either_measure
@pytest.mark.parametrize("rules", [(), ({"never": {"x0": 1, "x1": 3}},)], ids=["no rule", "a rule"])
@pytest.mark.whole
def test_a_larger_table_that_an_analysis_needs_is_measured_in_all_its_categories_and_kept_to(rules, privacy):
    of = domain(2, 12, 2, 3, rules=rules, expected_rows=3000)
    counts = counted(of, 3000)
    released = run(asking(of, (("x0", "x1", "x2"),), **privacy), counts, SeededRandomness(1))
    structure, noisy = read_measured(of, released.plan, released.tables)
    assert structure.sizes[:3] == (2, 12, 2) and (0, 1, 2) in structure.tables
    assert all(each.measured for each in released.plan.analyses)
    assert released.method.check(of, released.plan, released.tables).findings == ()
    exact = exact_table(counts, (0, 1, 2), of)
    for randomness in (None, SeededRandomness(2)):
        found = estimate(structure, noisy, 0, randomness)
        assert np.abs(found.tables[structure.tables.index((0, 1, 2))] - exact).sum() / 2 < 0.1
    released.method.view(of, released.plan, released.tables)


@either_measure
@pytest.mark.whole
def test_what_is_declared_gets_more_of_the_budget_and_nothing_is_voted_on_twice(privacy):
    of = domain(*[3] * 8, expected_rows=3000)
    asked = asking(of, (("x0", "x1"),), **privacy)
    elected = asked.asking(asked.spec.method.model_copy(update={"pairs": 27}))
    plan = make_plan(elected)
    named = [draw for draw in plan.draws if draw.of == ("x0", "x1")]
    others = [draw.cost for draw in plan.draws if draw.of == "elected"]
    assert len(named) == 1 and named[0].cost > max(others) and len(others) == 27
    structure, _ = read_measured(of, plan, run(elected, counted(of, 3000), SeededRandomness(0)).tables)
    assert sorted(structure.tables) == sorted(combinations(range(8), 2))


def test_an_interaction_that_rules_tell_of_is_not_paid_for_and_the_rows_have_it():
    of = domain(2, 3, 2, 3, rules=({"never": {"x0": 1, "x2": 0}},), expected_rows=3000)
    counts = counted(of, 3000)
    asked = asking(of, (("x0", "x1", "x2"), ("x1", "x2", "x3")), "20", **RHO)
    released = run(asked, counts, SeededRandomness(1))
    drawn = {table for draw in released.plan.draws for table in draw.tables}
    assert ("x0", "x1", "x2") not in drawn and {("x0", "x1"), ("x0", "x2"), ("x1", "x2", "x3")} <= drawn
    assert all(each.measured for each in released.plan.analyses) and not list(planned_problems(released.plan, of))
    rows = count_codes(codes_of(released.records[0], of))
    shares = [exact_table(each, (0, 1, 2), of) for each in (rows, counts)]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.02


@either_measure
def test_the_control_without_its_rule_is_drawn_and_not_called_measured_otherwise(privacy):
    of = domain(2, 3, 2, 3, expected_rows=3000)
    plan = make_plan(asking(of, (("x0", "x1", "x2"),), **privacy))
    assert any(("x0", "x1", "x2") in draw.tables for draw in plan.draws)
    without = plan.model_copy(update={"draws": tuple(draw for draw in plan.draws if ("x0", "x1", "x2") not in draw.tables)})
    assert any("is not measured" in each for each in planned_problems(without, of))


# --- what is met at the door


@pytest.mark.whole
def test_more_pairs_than_can_get_their_noise_together_are_refused_before_the_charge():
    wide = domain(*[2] * 514, expected_rows=1000)
    with pytest.raises(SpecError, match="131,841 tables would get their noise together; at most 131,072 can"):
        make_plan(release(wide, method_spec(decomposition="pairs", pairs="all"), "1"))
    predicted = candidate(release(wide, method_spec(), "1"))
    assert predicted is not None and predicted.predicted_error == 1


@pytest.mark.parametrize("weight", ["1e300", "1e-200", "0"])
def test_importance_beyond_all_measure_is_refused(weight):
    with pytest.raises(ValueError, match="from a millionth to a million"):
        method_spec(decomposition="pairs", importance={"x0": Decimal(weight)})


def test_what_cannot_be_planned_is_no_reason_to_refuse_what_can():
    """Of the methods after the best some cannot be planned at all; no method measures this model."""
    of = domain(*[10] * 25, 2, expected_rows=10**5)
    usual = release(of, method_spec(), "1")
    spec = ReleaseSpec.model_validate({**dict(usual.spec), "analyses": ("x25 ~ x0*x1*x2 + x3*x4",)})
    plan = plan_with_analyses(usual.model_copy(update={"spec": spec}))
    assert not plan.analyses[0].measured
