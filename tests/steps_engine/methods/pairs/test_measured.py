"""What pairs measures and what it makes of it: estimates, groups, tables, shares of the budget."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.errors import SpecError
from schemas.spec.method import method_spec
from steps_engine.methods.pairs import measure
from steps_engine.methods.pairs.estimate import estimate, raked
from steps_engine.methods.pairs.tables import noisy_table, read_measured, read_structure, structure_table
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.pairs.test_synthesize import PLENTY, made
from tests.steps_engine.shapes import SHAPES, counted, domain, release

RHO = {"delta": Decimal("1e-9")}
either_measure = pytest.mark.parametrize("privacy", [{}, RHO], ids=["pure", "zcdp"])


def exact_table(counts, pair, of) -> np.ndarray:
    return measure._table(counts, pair, of.sizes) / counts.count.sum()


@either_measure
@pytest.mark.parametrize("which", SHAPES)
def test_without_noise_estimates_are_the_exact_tables(which, privacy):
    of = SHAPES[which]
    counts = counted(of, 3000)
    released = made(of, counts, PLENTY, privacy=privacy)
    structure, noisy = read_measured(of, released.plan, released.tables)
    found = estimate(structure, noisy, 0, None)
    assert found.total == 3000
    for j in range(len(of.sizes)):
        assert found.fine[j] == pytest.approx(exact_table(counts, (j,), of), abs=1e-6)
    for pair, table in zip(structure.pairs, found.tables, strict=True):
        if structure.shape(pair) == tuple(of.sizes[j] for j in pair):
            assert table == pytest.approx(exact_table(counts, pair, of), abs=2e-3)


@either_measure
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
        found = raked(np.random.default_rng(1).uniform(-0.02, 0.5, (3, 2)).clip(0.01), rows, columns, mask)
        assert found.min() >= 0 and found.sum(axis=1) == pytest.approx(rows, abs=1e-4)
        assert found.sum(axis=0) == pytest.approx(columns, abs=1e-4) and (mask is None or not found[~mask].any())


# --- groups


@either_measure
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
def test_tables_are_read_as_they_were_written(which, method, privacy):
    of = SHAPES.get(which, domain(120, 2, 1, 5, expected_rows=4000))
    released = made(of, counted(of, 400), "1", privacy=privacy, **method)
    structure, noisy = read_measured(of, released.plan, released.tables)
    assert structure_table(structure).equals(released.tables["tree"])
    assert noisy_table(structure, noisy).equals(released.tables["noisy-counts"])


@pytest.mark.parametrize("place", ["first", "category", "group"])
def test_a_structure_of_another_domain_is_refused(place):
    of = domain(3, 4)
    released = made(of, counted(of, 100), "1")
    columns = released.tables["tree"].to_pydict()
    columns[place][2] = 3
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
    with pytest.raises(SpecError, match="importance names 'x9'"):
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
