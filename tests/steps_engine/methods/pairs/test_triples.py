"""Tables of three attributes that nobody asked for: measured where noise is below what sampling rows puts there."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from schemas.spec.analyses import TableAnalysis
from schemas.spec.method import method_spec
from schemas.spec.release import ReleaseSpec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.records import codes_of
from steps_engine.inference.reweighting import tables_of
from steps_engine.methods.pairs import synthesize
from steps_engine.methods.pairs.triples import by_chance
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.methods.registry import method_of
from tests.steps_engine.methods.pairs.test_synthesize import made
from tests.steps_engine.shapes import domain, release

RHO = {"delta": Decimal("1e-9")}
SIX = domain(2, 2, 3, 2, 2, 4, expected_rows=50_000)


def planned(of, epsilon, **method):
    return make_plan(release(of, method_spec(decomposition="pairs", **method), epsilon, **RHO))


def larger(plan) -> list[tuple[str, ...]]:
    return [table for draw in plan.draws for table in draw.tables if len(table) > 2]


@pytest.mark.whole
def test_triples_are_measured_where_they_pay_and_nowhere_else():
    assert len(larger(planned(SIX, "4"))) == 20  # all of them
    assert not larger(planned(SIX, "0.1"))
    assert not larger(planned(domain(2, 2, 3, 2, 2, 4, expected_rows=500), "4"))
    assert not larger(planned(domain(*[2] * 80, expected_rows=50_000), "4"))  # 500 of 82,160 would change nothing


def test_whoever_gives_the_number_of_pairs_gets_pairs_alone():
    assert not larger(planned(SIX, "4", pairs="all"))


def test_where_an_analysis_names_every_triple_that_pays_nothing_is_set_aside_for_others():
    three = domain(2, 2, 2, expected_rows=50_000)
    assert larger(planned(three, "4")) == [("x0", "x1", "x2")]
    asked = release(three, method_spec(decomposition="pairs"), "4", **RHO)
    spec = asked.spec.model_copy(update={"analyses": (TableAnalysis(table=("x0", "x1", "x2")),)})
    plan = plan_with_analyses(asked.model_copy(update={"spec": spec}))
    assert larger(plan) == [("x0", "x1", "x2")] and sum(draw.cost for draw in plan.draws) == Fraction(plan.cost)


def test_triples_are_paid_from_the_tables_part():
    plan = planned(SIX, "4")
    assert sum(draw.cost for draw in plan.draws) == Fraction(plan.cost)
    assert (
        0
        < sum(draw.cost for draw in plan.draws if any(len(table) > 2 for table in draw.tables))
        < Fraction(7, 10) * Fraction(plan.cost)
    )


@pytest.mark.parametrize("privacy", [{}, RHO], ids=["ε", "ρ"])
@pytest.mark.parametrize("declared", [("x0", "x1", "x2", "x3", "x4", "x5"), ("x0", "x1", "x2")], ids=["all", "three"])
def test_triples_that_a_declared_table_tells_of_leave_their_part_to_it(declared, privacy):
    usual = release(SIX, method_spec(decomposition="pairs", sets={"count": 3, "budget": "shared"}), "20", **privacy)
    asked = usual.model_copy(update={"spec": ReleaseSpec.model_validate({**dict(usual.spec), "analyses": (declared,)})})
    plan = make_plan(asked)
    drawn = [table for table in larger(plan) if len(table) == 3]
    assert sum(draw.cost for draw in plan.draws) == Fraction(plan.cost) and len(drawn) == len(set(drawn))
    if len(declared) > 3:
        assert len(drawn) == (20 if privacy else 0)  # under ε the counts of all six tell of every three


@pytest.mark.whole
def test_what_three_attributes_have_in_common_reaches_the_rows():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, 50_000) for size in SIX.sizes], axis=1)
    codes[:, 3] = codes[:, 0] ^ codes[:, 1]  # of any two of these nothing is to be seen
    agree = {
        asked: np.mean(rows[:, 3] == rows[:, 0] ^ rows[:, 1])
        for asked in (None, "all")
        for rows in [codes_of(made(SIX, count_codes(codes), "4", privacy=RHO, pairs=asked).records[0], SIX)]
    }
    assert agree[None] > 0.97 and agree["all"] < 0.6


def test_what_chance_puts_into_triples_is_the_mean_over_all_of_them():
    of, sizes = domain(2, 3, 5, 2, expected_rows=10_000), [2, 3, 5, 2]
    triples = [(2, 3, 5), (2, 3, 2), (2, 5, 2), (3, 5, 2)]
    one_by_one = [0.4 * np.sqrt(np.prod([size - 1 for size in triple]) / 10_000) for triple in triples]
    assert by_chance(of, sizes) == pytest.approx(np.mean(one_by_one))


def test_weighted_tables_are_those_counted_one_by_one():
    rng, sizes = np.random.default_rng(1), (2, 3, 4)
    codes, weight = np.stack([rng.integers(0, size, 1000) for size in sizes], axis=1), rng.random(1000)
    tables = [(0, 1), (1, 2), (0, 1, 2)]
    for table, found in zip(tables, tables_of(codes, sizes, tables, weight), strict=True):
        expected = np.zeros([sizes[j] for j in table])
        np.add.at(expected, tuple(codes[:, j] for j in table), weight)
        assert found == pytest.approx(expected / weight.sum())


@pytest.mark.whole
def test_rows_are_brought_back_to_what_their_weights_had_settled_on(monkeypatch):
    of, rng = domain(*[2, 3, 4, 2] * 3, expected_rows=20_000), np.random.default_rng(2)
    codes = np.stack([rng.integers(0, size, 20_000) for size in of.sizes], axis=1)
    for j in range(1, 12):  # everyone follows the one before
        codes[:, j] = np.where(rng.random(20_000) < 0.5, codes[:, j - 1] % of.sizes[j], codes[:, j])
    counts, pairs, even, away = count_codes(codes), list(combinations(range(12), 2)), np.ones(20_000), []
    monkeypatch.setattr(synthesize, "is_exchanged", lambda _: False)
    for times in (0, synthesize.BROUGHT_BACK):
        monkeypatch.setattr(synthesize, "BROUGHT_BACK", times)
        rows = codes_of(made(of, counts, "100000", pairs="all").records[0], of)
        both = (tables_of(each, of.sizes, pairs, even) for each in (rows, codes))
        away.append(np.mean([np.abs(a - b).sum() for a, b in zip(*both, strict=True)]))
    assert away[1] < 0.9 * away[0]


def test_a_plan_of_hundreds_of_tables_is_told_in_a_few_lines():
    plan = planned(domain(*[2] * 9, 3, 4, expected_rows=10**6), "4")
    rows = method_of(plan).sketch(plan).rows
    assert len(plan.layers) > 200 and len(rows) < 20
    assert sum(float(row.share[:-1]) for row in rows) == pytest.approx(100, abs=0.2)
    assert any("triples of 8 cells" in row.what for row in rows) and any("pairs of 4 cells" in row.what for row in rows)
