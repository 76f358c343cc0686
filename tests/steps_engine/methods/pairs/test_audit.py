"""Pairs on worst neighbours, in ε and ρ: what a person loses stays below what is charged; what breaks the proof is caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Plan
from schemas.spec.analyses import TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.accounting.mechanisms import COUNTING, noise_of
from steps_engine.accounting.plans import Allowance
from steps_engine.domain.counting import Counts
from steps_engine.inference.one_way import joined
from steps_engine.methods.pairs import measure
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.planning import make_plan, plan_with_analyses
from tests.steps_engine.shapes import domain, release
from tests.steps_engine.test_zcdp_plans_audit import TIED, counts, shape
from tests.zcdp_audit import Count, Election, Evidence, Vector, breaks, keeps, price_of
from tests.zcdp_witness import Met, met

METHODS = {"all": {"pairs": "all"}, "elected": {"pairs": 2}, "elected, two sets": {"pairs": 2, "sets": {"count": 2}}}
SEEDS = (0, 2, 7)
RHO = {"delta": Decimal("1e-9")}
every_method = pytest.mark.parametrize("name", METHODS)
both_neighbours = pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
one_row_or_three = pytest.mark.parametrize("rows", [1, 3])


def planned(of: Domain, name: str, neighbours: str = "add_remove", epsilon: str = "1", **privacy) -> Plan:
    return make_plan(
        release(of, method_spec(decomposition="pairs", **METHODS[name]), epsilon, neighbours=neighbours, **privacy)
    )


def binary(rows: int) -> Domain:
    return domain(2, 2, 2, unit={"rows_per_person": rows}, expected_rows=40)


def with_rows(cell: tuple[int, ...], number: int) -> Counts:
    """Some records, and so many of one cell."""
    cells = [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1), cell]
    return Counts(np.array(cells), np.array([1500, 700, 900, 800, number]))


def tied(plan: Plan) -> tuple[Counts, Counts]:
    """A row moves one pair's misfit up and another's down."""
    rows = plan.rows_per_person
    return counts(TIED, rows, 0), counts(TIED, 0, rows if plan.neighbours == "substitute" else 0)


def loss_of(evidence: Evidence) -> float:
    """The largest change of a log-probability, exactly."""
    if isinstance(evidence, Count):
        return float(abs(evidence.shift) / evidence.scale)
    if isinstance(evidence, Vector):
        return float(max(map(abs, evidence.shift)) / evidence.scale)
    one, other = evidence.chances()
    return float(np.abs(np.log(one / other)).max())


def lost(found: list[Met]) -> float:
    return sum(loss_of(evidence) for each in found for evidence in each.evidence)


def near(rows: int) -> Domain:
    return shape(rows, sum(TIED.values()) // 100)


# --- what is charged is enough


@every_method
@both_neighbours
@one_row_or_three
def test_in_epsilon_no_outcome_loses_more_than_is_charged(name, neighbours, rows):
    of = near(rows)
    plan = planned(of, name, neighbours)
    for seed in SEEDS:
        found = met(of, plan, *tied(plan), seed)
        assert {each.draw.mechanism for each in found} <= {"two_sided_geometric", "max_norm", "permute_and_flip"}
        assert all(sum(map(loss_of, each.evidence)) <= float(each.draw.cost) * (1 + 1e-12) for each in found)
        assert lost(found) <= float(plan.cost) * (1 + 1e-12)


@every_method
@one_row_or_three
def test_in_epsilon_removed_rows_cost_all_that_counts_are_paid(name, rows):
    of = near(rows)
    plan = planned(of, name)
    for each in met(of, plan, *tied(plan), 0):
        if each.draw.kind == "count":
            assert sum(map(loss_of, each.evidence)) == pytest.approx(float(each.draw.cost))


@every_method
@one_row_or_three
@pytest.mark.parametrize("measure_", ["pure", "zcdp"])
def test_a_replaced_value_of_a_binary_attribute_costs_all_that_its_contrasts_are_paid(name, rows, measure_):
    """In ρ four times what a removal costs, not twice: contrasts are signed."""
    of = binary(rows)
    plan = planned(of, name, "substitute", **(RHO if measure_ == "zcdp" else {}))
    found = [m for m in met(of, plan, with_rows((0, 0, 1), rows), with_rows((1, 0, 1), rows), 0) if m.draw.kind == "count"]
    assert {each.draw.layer for each in found} == {0, 1}  # a margin, and pairs with it
    for each in found:
        paid = sum(float(price_of(e)) if measure_ == "zcdp" else loss_of(e) for e in each.evidence)
        assert paid == pytest.approx(float(each.draw.cost))


@one_row_or_three
@both_neighbours
def test_elections_of_the_worst_pair_cost_all_that_they_are_paid(rows, neighbours):
    of = near(rows)
    plan = planned(of, "elected", neighbours, **RHO)
    elections = [each for each in met(of, plan, *tied(plan), 0) if each.draw.kind == "election"]
    assert elections
    (first,) = elections[0].evidence
    moved = np.subtract(first.one, first.other)
    assert moved.max() - moved.min() == first.sensitivity == rows * (2 if neighbours == "substitute" else 1)
    assert price_of(first) == pytest.approx(float(elections[0].draw.cost), rel=1e-4)


ALL_THREE = TableAnalysis(table=("x0", "x1", "x2"))


def of_three(measure_: str, neighbours: str, rows: int, sizes: tuple[int, ...]) -> tuple[Domain, Plan]:
    """A plan that measures all three attributes together as well: because it pays, or because an analysis needs it."""
    of = domain(*sizes, unit={"rows_per_person": rows}, expected_rows=1_000_000)
    privacy = {"neighbours": neighbours, **(RHO if measure_ == "zcdp" else {})}
    asked = release(of, method_spec(decomposition="pairs"), "4", **privacy)
    plan = plan_with_analyses(asked.model_copy(update={"spec": asked.spec.model_copy(update={"analyses": (ALL_THREE,)})}))
    assert any(len(table) == 3 for draw in plan.draws for table in draw.tables)
    return of, plan


def moved(rows: int, neighbours: str) -> tuple[Counts, Counts]:
    """A person's rows are taken away, or moved to a cell that differs in one attribute: the contrast of three turns its sign."""
    return with_rows((0, 0, 1), rows), with_rows((1, 0, 1), rows) if neighbours == "substitute" else with_rows((0, 0, 1), 0)


@pytest.mark.parametrize("measure_", ["pure", "zcdp"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 4)])
@both_neighbours
@one_row_or_three
@pytest.mark.whole
def test_tables_of_three_lose_no_more_than_they_are_paid(measure_, sizes, neighbours, rows):
    of, plan = of_three(measure_, neighbours, rows, sizes)
    found = met(of, plan, *moved(rows, neighbours), 0)
    three = [each for each in found if any(len(table) == 3 for table in each.draw.tables)]
    assert three
    for each in found:
        paid = sum(float(price_of(e)) if measure_ == "zcdp" else loss_of(e) for e in each.evidence)
        assert paid <= float(each.draw.cost) * (1 + 1e-12)
    if measure_ == "zcdp":
        assert keeps([evidence for each in found for evidence in each.evidence], Fraction(plan.cost))
    else:
        assert lost(found) <= float(plan.cost) * (1 + 1e-12)


# --- controls: too little noise


@pytest.mark.parametrize("measure_", ["pure", "zcdp"])
@both_neighbours
def test_control_a_halved_sensitivity_of_tables_of_three_is_caught(measure_, neighbours, monkeypatch):
    less_paid(monkeypatch, halved)
    of, plan = of_three(measure_, neighbours, 1, (2, 2, 2))
    found = met(of, plan, *moved(1, neighbours), 0)
    three = [each for each in found if any(len(table) == 3 for table in each.draw.tables)]
    assert three
    for each in three:
        if measure_ == "zcdp":
            assert not keeps(each.evidence, each.draw.cost)
        else:
            assert sum(map(loss_of, each.evidence)) > 1.9 * float(each.draw.cost)


def less_paid(monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Allowance], Fraction]) -> None:
    """The planner believes in another sensitivity of contrasts."""

    def believing(right):
        def drawn(self, name, cost, **said):
            draw, believed = right(self, name, cost, **said), wrong(self)
            return draw.model_copy(update={"sensitivity": believed, "scale": draw.scale * believed / draw.sensitivity})

        return drawn

    for kind in (Allowance.interaction, Allowance.joint):
        monkeypatch.setattr(Allowance, kind.__name__, believing(kind))


def halved(allowance: Allowance) -> Fraction:
    square = 2 if allowance.measure.name == "zcdp" else 1
    return Fraction((2 if allowance.replaced else 1) * allowance.rows, 2) ** square


@every_method
@one_row_or_three
@both_neighbours
def test_control_a_halved_sensitivity_is_caught(name, rows, neighbours, monkeypatch):
    less_paid(monkeypatch, halved)
    of, replaced = binary(rows), neighbours == "substitute"
    neighbour = with_rows((1, 0, 1), rows) if replaced else with_rows((0, 0, 1), 0)
    known = {"total": "invariant"} if replaced else {}  # a replacement does not meet the draw of the number of rows
    pure, zcdp = planned(of, name, neighbours, **known), planned(of, name, neighbours, **RHO, **known)
    found = [each for each in met(of, pure, with_rows((0, 0, 1), rows), neighbour, 0) if each.draw.kind == "count"]
    assert found and all(sum(map(loss_of, each.evidence)) > 1.9 * float(each.draw.cost) for each in found)
    found = [each for each in met(of, zcdp, with_rows((0, 0, 1), rows), neighbour, 0) if each.draw.kind == "count"]
    assert found and not any(keeps(each.evidence, each.draw.cost) for each in found)
    together = [evidence for each in found for evidence in each.evidence]
    assert breaks(together, Fraction(zcdp.cost))


@every_method
def test_control_a_replacement_paid_for_as_that_of_disjoint_counts_is_caught(name, monkeypatch):
    """2k² where lengths add up to (2k)²."""
    less_paid(monkeypatch, lambda allowance: COUNTING["zcdp"].sensitivity(allowance.rows, allowance.replaced))
    of = binary(1)
    plan = planned(of, name, "substitute", **RHO)
    found = [e for e in met(of, plan, with_rows((0, 0, 1), 1), with_rows((1, 0, 1), 1), 0) if e.draw.kind == "count"]
    assert found and not any(keeps(each.evidence, each.draw.cost) for each in found)


@every_method
def test_control_noise_that_forgets_the_length_of_a_contrast_is_caught(name, monkeypatch):
    monkeypatch.setattr(measure, "contrast_noise", lambda draw, sizes: noise_of(draw))
    of = near(1)
    plan = planned(of, name, **RHO)
    with pytest.raises(AssertionError, match="0 costs for a draw"):
        met(of, plan, *tied(plan), 0)


def test_control_noise_left_out_where_nobody_is_is_caught(monkeypatch):
    def skipping(structure, counts, randomness):
        (structure, noisy), exact = honest(structure, counts, randomness), measure._table(counts, (0, 1), structure.sizes)
        noisy[0][:, exact == 0] = 0
        return structure, noisy

    honest = measure.sanitize
    monkeypatch.setattr("steps_engine.methods.pairs.method.sanitize", skipping)
    of = near(1)
    plan = planned(of, "all")
    with pytest.raises(AssertionError, match="without noise"):
        met(of, plan, counts({(0, 0, 0): 30}, 1, 0), counts({(0, 0, 0): 30}, 0, 0), 0)


# --- controls: what is chosen before the noise

WIDE = domain(8, 2, expected_rows=40)


def at_the_edge(more: int) -> Counts:
    """The first category holds just enough rows to stand alone, or one less."""
    return Counts(np.array([[k, k % 2] for k in range(8)]), np.array([499 + more, *[400] * 7]))


@pytest.mark.parametrize("privacy", [{}, RHO], ids=["pure", "zcdp"])
def test_groups_follow_from_noisy_margins_and_those_of_exact_counts_are_caught(privacy, monkeypatch):
    plan = make_plan(release(WIDE, method_spec(decomposition="pairs"), **privacy))
    met(WIDE, plan, at_the_edge(1), at_the_edge(0), 0)

    def build(of, plan, counts, randomness):
        structure = measure.build(of, plan, counts, randomness)
        exact = tuple(joined(measure._table(counts, (j,), of.sizes).astype(float), 500) for j in range(len(of.sizes)))
        return Structure(structure.margins, exact, structure.tables)

    monkeypatch.setattr("steps_engine.methods.pairs.method.build", build)
    with pytest.raises(AssertionError, match="the structure differs"):
        met(WIDE, plan, at_the_edge(1), at_the_edge(0), 0)


@pytest.mark.parametrize("privacy", [{}, RHO], ids=["pure", "zcdp"])
def test_control_pairs_chosen_by_exact_scores_are_caught(privacy, monkeypatch):
    of = near(1)
    plan = planned(of, "elected", "substitute", **privacy)

    def best(structure, counts, possible, randomness):
        scores = measure.misfits(structure, counts, possible)
        return tuple(possible[i] for i in np.argsort(-np.array(scores), kind="stable")[:1])

    monkeypatch.setattr(measure, "elect_pairs", best)
    with pytest.raises(AssertionError, match="the structure differs"):
        for more in range(-40, 41):  # somewhere the two best change places
            base = {**TIED, (0, 1, 1): 20 + max(more, 0), (2, 0, 2): 20 + max(-more, 0)}
            met(of, plan, counts(base, 1, 0), counts(base, 0, 1), 0)


def exact_misfits(structure: Structure, records: Counts, pairs) -> list[float]:
    """The score against the exact margins: one row moves what it is compared with as well."""
    rows = records.count.sum()

    def score(pair) -> float:
        table = measure._table(records, pair, structure.sizes)
        model = np.outer(table.sum(axis=1), table.sum(axis=0)) / rows
        return float(np.abs(table - model).sum()) / 2

    return [score(pair) for pair in pairs]


@both_neighbours
def test_control_a_misfit_from_exact_margins_is_caught(neighbours, monkeypatch):
    monkeypatch.setattr(measure, "misfits", exact_misfits)
    of = near(1)
    plan = planned(of, "elected", neighbours, "6", **RHO)
    elections = [each for each in met(of, plan, *tied(plan), 0) if each.draw.kind == "election"]
    assert max(price_of(each.evidence[0]) / each.draw.cost for each in elections) > 2
    assert any(not keeps(each.evidence, each.draw.cost) for each in elections)


def test_the_sides_of_an_election_are_those_of_the_score():
    """So that the controls of elections are no accident of the witness."""
    of = near(1)
    plan = planned(of, "elected")
    for each in met(of, plan, *tied(plan), 0):
        for evidence in each.evidence:
            if isinstance(evidence, Election):
                moved = np.subtract(evidence.one, evidence.other)
                assert set(np.abs(moved)) == {0.5} and all(math.modf(2 * score)[0] == 0 for score in evidence.one)
