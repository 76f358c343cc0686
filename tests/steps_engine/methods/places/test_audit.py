"""Places on worst neighbours, in ε and ρ: what a person loses stays below what is charged; what breaks the proof is caught."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Plan
from schemas.spec.analyses import TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import Counts
from steps_engine.domain.places import Places
from steps_engine.inference.place_tables import PlaceTable, is_of_places
from steps_engine.methods.places import measure as places_measure
from steps_engine.methods.planning import make_plan
from tests.steps_engine.methods.pairs.test_audit import loss_of, lost
from tests.steps_engine.shapes import PLACED, RULED, release
from tests.zcdp_audit import breaks, keeps
from tests.zcdp_witness import Met, met

RHO = {"delta": Decimal("1e-9")}
MEASURES = {"pure": {}, "zcdp": RHO}
every_measure = pytest.mark.parametrize("measure", MEASURES)
both_neighbours = pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
one_row_or_three = pytest.mark.parametrize("rows", [1, 3])
HERE, ELSEWHERE = (0, 0, 1, 0), (1, 5, 2, 0)  # another region, another category of everything


def of(rows: int) -> Domain:
    unit = PLACED.unit.model_copy(update={"rows_per_person": rows})
    return PLACED.model_copy(update={"unit": unit, "expected_rows": 30_000})


TOGETHER = (TableAnalysis(table=("county", "x0", "x2")),)


def planned(domain: Domain, measure: str, neighbours: str = "add_remove", analyses: tuple = (), **sets) -> Plan:
    asked = release(domain, method_spec("places", sets=sets), "1", neighbours=neighbours, **MEASURES[measure])
    return make_plan(asked.model_copy(update={"spec": asked.spec.model_copy(update={"analyses": analyses})}))


def neighbours_of(plan: Plan) -> tuple[Counts, Counts]:
    """Some records with all rows of a person in one place; without them, or with as many in another region."""
    others, number = [(0, 1, 0, 0), (1, 2, 1, 0), (0, 4, 2, 0)], plan.rows_per_person
    with_them = Counts(np.array([*others, HERE, ELSEWHERE]), np.array([900, 700, 800, number, 0]))
    left = number if plan.neighbours == "substitute" else 0
    return with_them, Counts(np.array([*others, HERE, ELSEWHERE]), np.array([900, 700, 800, 0, left]))


def evidence(found: list[Met]) -> list:
    return [each for one in found for each in one.evidence]


def of_places(found: list[Met]) -> list[Met]:
    return [each for each in found if is_of_places(each.draw)]


# --- what is charged is enough, and all of it is needed


@both_neighbours
@one_row_or_three
@pytest.mark.parametrize("sets", [{}, {"count": 2}, {"analyses": TOGETHER}], ids=["one", "two sets", "two attributes by place"])
def test_in_epsilon_no_outcome_loses_more_than_is_charged(neighbours, rows, sets):
    domain = of(rows)
    plan = planned(domain, "pure", neighbours, **sets)
    found = met(domain, plan, *neighbours_of(plan), 0)
    assert all(sum(map(loss_of, each.evidence)) <= float(each.draw.cost) * (1 + 1e-12) for each in found)
    assert lost(found) <= float(plan.cost) * (1 + 1e-12)
    for each in of_places(found):  # every table of places meets the person, at its whole price
        assert sum(map(loss_of, each.evidence)) == pytest.approx(float(each.draw.cost))


@both_neighbours
@one_row_or_three
@pytest.mark.parametrize("analyses", [(), TOGETHER], ids=["plain", "two attributes by place"])
@pytest.mark.whole
def test_in_rho_all_draws_together_keep_what_is_charged(neighbours, rows, analyses):
    domain = of(rows)
    plan = planned(domain, "zcdp", neighbours, analyses)
    found = met(domain, plan, *neighbours_of(plan), 0)
    assert len(of_places(found)) == sum(map(is_of_places, plan.draws))
    assert keeps(evidence(found), Fraction(plan.cost))


# --- a person whose place is not known, or in which rules allow few: all cells get noise, whatever rules say of them

UNKNOWN, RARE = (0, 6, 1, 0), (0, 1, 2, 0)  # in no place that is known; in a tract that has one category of x2


def of_rules(rows: int = 1) -> Domain:
    unit = RULED.unit.model_copy(update={"rows_per_person": rows})
    return RULED.model_copy(update={"unit": unit, "expected_rows": 3000})


def ruled_neighbours(plan: Plan, cell: tuple[int, ...]) -> tuple[Counts, Counts]:
    others = np.array([(0, 0, 1, 0), (1, 4, 1, 0), cell, (1, 5, 0, 0)])
    number, left = plan.rows_per_person, plan.rows_per_person if plan.neighbours == "substitute" else 0
    return Counts(others, np.array([900, 700, number, 0])), Counts(others, np.array([900, 700, 0, left]))


@every_measure
@both_neighbours
@one_row_or_three
@pytest.mark.parametrize("cell", [UNKNOWN, RARE], ids=["not known", "ruled"])
@pytest.mark.whole
def test_places_not_known_and_places_under_rules_lose_no_more_than_is_charged(measure, neighbours, rows, cell):
    domain = of_rules(rows)
    plan = planned(domain, measure, neighbours)
    found = met(domain, plan, *ruled_neighbours(plan, cell), 0)
    if measure == "pure":
        assert lost(found) <= float(plan.cost) * (1 + 1e-12)
        assert all(sum(map(loss_of, each.evidence)) == pytest.approx(float(each.draw.cost)) for each in of_places(found))
    else:
        assert keeps(evidence(found), Fraction(plan.cost))


def met_with(monkeypatch, changed: Callable[[Places, PlaceTable, np.ndarray], np.ndarray], measure: str) -> list[Met]:
    """Tables of places counted in another way, of a person whose place is not known."""
    exact = places_measure.exact_tables
    counted = lambda places, tables, counts: [  # noqa: E731
        changed(places, *each) for each in zip(tables, exact(places, tables, counts), strict=True)
    ]
    monkeypatch.setattr(places_measure, "exact_tables", counted)
    plan = planned(of_rules(), measure)
    return met(of_rules(), plan, *ruled_neighbours(plan, UNKNOWN), 0)


@every_measure
def test_control_whoever_is_nowhere_counted_everywhere_is_caught(measure, monkeypatch):
    everywhere = lambda places, table, exact: np.concatenate([exact[:-1] + exact[-1:], exact[-1:]])  # noqa: E731
    found, plan = met_with(monkeypatch, everywhere, measure), planned(of_rules(), measure)
    if measure == "pure":
        assert lost(found) > float(plan.cost) * 1.2
    else:
        assert breaks(evidence(found), Fraction(plan.cost), deltas=(1e-9, 1e-6))


def test_control_noughts_by_what_is_counted_in_place_of_what_rules_say_are_caught(monkeypatch):
    """A cell without noise wherever nobody was found tells that nobody is there."""
    noised = places_measure._noised
    silent = lambda table, exact, randomness: np.where(exact == 0, 0, noised(table, exact, randomness))  # noqa: E731
    monkeypatch.setattr(places_measure, "_noised", silent)
    plan = planned(of_rules(), "pure")
    with pytest.raises(AssertionError, match="a number is published without noise"):
        met(of_rules(), plan, *ruled_neighbours(plan, UNKNOWN), 0)


# --- controls


def with_less_noise(plan: Plan, times: dict[str, int]) -> Plan:
    """A plan that draws as if a tree's levels cost so many times less."""
    draws = (
        draw.model_copy(update={"scale": draw.scale / times[draw.tree]}) if is_of_places(draw) and draw.tree in times else draw
        for draw in plan.draws
    )
    return plan.model_copy(update={"draws": tuple(draws)})


@every_measure
@both_neighbours
def test_control_levels_charged_as_if_they_were_disjoint_are_caught(measure, neighbours):
    """Every level at the price of all: a person lies in a place of each of them."""
    domain = of(1)
    plan = planned(domain, measure, neighbours)
    trees = {draw.tree: sum(d.tree == draw.tree for d in plan.draws) for draw in plan.draws if is_of_places(draw)}
    found = met(domain, with_less_noise(plan, trees), *neighbours_of(plan), 0)
    if measure == "pure":
        assert lost(found) > float(plan.cost) * 1.2
    else:
        assert breaks(evidence(found), Fraction(plan.cost), deltas=(1e-9, 1e-6))


@every_measure
def test_control_attributes_by_place_at_one_price_for_all_are_caught(measure):
    """Tables of different attributes read the same records."""
    domain = of(1)
    plan = planned(domain, measure)
    trees = {draw.tree for draw in plan.draws if is_of_places(draw)} - {"tract"}
    found = met(domain, with_less_noise(plan, dict.fromkeys(trees, 4 * len(trees))), *neighbours_of(plan), 0)
    if measure == "pure":
        assert lost(found) > float(plan.cost) * 1.2
    else:
        assert breaks(evidence(found), Fraction(plan.cost), deltas=(1e-9, 1e-6))


@every_measure
def test_control_two_attributes_by_place_drawn_as_if_each_of_both_had_paid_are_caught(measure):
    """A table by two attributes reads the records once more, whatever is known of each of them."""
    domain = of(1)
    plan = planned(domain, measure, analyses=TOGETHER)
    found = met(domain, with_less_noise(plan, {"tract × x0 × x2": 8}), *neighbours_of(plan), 0)
    assert any(each.draw.tree == "tract × x0 × x2" for each in met(domain, plan, *neighbours_of(plan), 0))
    if measure == "pure":
        assert lost(found) > float(plan.cost) * 1.2
    else:
        assert breaks(evidence(found), Fraction(plan.cost), deltas=(1e-9, 1e-6))


@every_measure
def test_control_rows_of_a_person_that_are_not_counted_are_caught(measure):
    """A plan for one row each, and a person with three."""
    plan, domain = planned(of(1), measure), of(3)
    found = met(domain, plan.model_copy(update={"rows_per_person": 3}), *neighbours_of(planned(domain, measure)), 0)
    if measure == "pure":
        assert lost(found) > float(plan.cost) * 1.2
    else:
        assert breaks(evidence(found), Fraction(plan.cost), deltas=(1e-9, 1e-6))
