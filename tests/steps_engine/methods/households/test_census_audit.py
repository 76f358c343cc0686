"""Households in places on worst neighbours, in ε and ρ: a household, with everybody in it, loses no more than is charged.

Household rows are witnessed by the code of places that draws them, members by that of pairs.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Plan
from steps_engine.domain import linked
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import measured_parts
from steps_engine.inference.place_tables import is_of_places
from steps_engine.methods.households.parts import parts_of
from tests.steps_engine.methods.households.census import Placed, census, counted_in, some_placed
from tests.steps_engine.methods.households.small import AT_MOST, plan
from tests.steps_engine.methods.pairs.test_audit import loss_of
from tests.zcdp_audit import breaks, keeps, price_of
from tests.zcdp_witness import Met, met

OF = census(missing="category")
MEASURES = {"pure": {}, "zcdp": {"delta": Decimal("1e-9")}}
every_measure = pytest.mark.parametrize("measure", MEASURES)
both_neighbours = pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
MEMBERS = [(0, 1, 2)] * (AT_MOST - 1)  # all in one cell
HERE: Placed = (0, (1, 1, 2, MEMBERS))
NOWHERE: Placed = (12, (1, 1, 2, MEMBERS))  # in no place that is known
EMPTY: Placed = (11, (1, 1, 2, MEMBERS))  # where nobody else lives
ELSEWHERE: Placed = (6, (0, 0, 0, [(1, 0, 0)] * (AT_MOST - 1)))  # another region, another category of everything
LARGE: Placed = (0, (1, 1, 2, [(0, 1, 2)] * AT_MOST))  # one person too many
ASKED = (("county", "tenure", "n_child"), ("region", "grade"), ("relation", "sex"))


def paid_for(measure: str, neighbours: str = "add_remove", asked: tuple = ()) -> Plan:
    return plan(OF, asked, neighbours=neighbours, epsilon=Decimal(8), **MEASURES[measure])


def with_home(*homes: Placed) -> Counts:
    return counted_in(OF, [*some_placed(60), *homes])


def neighbours_of(paid: Plan, home: Placed) -> tuple[Counts, Counts]:
    return with_home(home), with_home(ELSEWHERE) if paid.neighbours == "substitute" else with_home()


def lost(paid: Plan, one: Counts, other: Counts) -> dict[str, list[Met]]:
    """Of both parts every draw that tells the neighbours apart."""
    found = {}
    for part, mine, theirs in zip(parts_of(OF, paid), measured_parts(OF, one), measured_parts(OF, other), strict=True):
        found[part.name] = met(part.domain, part.plan.model_copy(update={"decomposition": part.done_by}), mine, theirs, 0)
    return found


def together(found: dict[str, list[Met]]) -> list:
    return [evidence for part in found.values() for each in part for evidence in each.evidence]


def price(each: Met, paid: Plan) -> float:
    return sum(float(price_of(e)) if paid.measure == "zcdp" else loss_of(e) for e in each.evidence)


def total(found: dict[str, list[Met]], paid: Plan) -> float:
    return sum(price(each, paid) for part in found.values() for each in part)


def is_caught(found: dict[str, list[Met]], paid: Plan) -> bool:
    if paid.measure == "pure":
        return total(found, paid) > float(paid.cost) * 1.1
    return breaks(together(found), Fraction(paid.cost), deltas=(1e-9, 1e-6))


@every_measure
@both_neighbours
@pytest.mark.parametrize(
    ("home", "asked"),
    [(HERE, ()), (HERE, ASKED), (NOWHERE, ()), (EMPTY, ()), ((3, (0, 1, 1, [])), ())],
    ids=["here", "analyses", "nowhere", "empty", "alone"],
)
@pytest.mark.whole
def test_a_household_loses_no_more_than_is_charged_wherever_it_lies(measure, neighbours, home, asked):
    paid = paid_for(measure, neighbours, asked)
    found = lost(paid, *neighbours_of(paid, home))
    for each in (each for part in found.values() for each in part):
        assert price(each, paid) <= float(each.draw.cost) * (1 + 1e-12), each.draw.name
    assert total(found, paid) <= float(paid.cost) * (1 + 1e-12)
    assert measure == "pure" or keeps(together(found), Fraction(paid.cost))


@every_measure
def test_every_level_and_every_members_table_meets_the_household_at_its_whole_price(measure):
    """So that no draw is dearer than it must be, and none is left out of the sum."""
    paid = paid_for(measure)
    found = lost(paid, *neighbours_of(paid, HERE))
    assert len([each for each in found["household"] if is_of_places(each.draw)]) == sum(map(is_of_places, paid.draws))
    assert len(found["person"]) == sum(draw.rows_of is not None for draw in paid.draws)
    assert all(price(each, paid) == pytest.approx(float(each.draw.cost)) for part in found.values() for each in part)


def test_a_household_that_moves_is_one_replaced():
    paid = paid_for("pure", "substitute")
    for there in (1, 3, 6):  # within its county, its region, and to another: of members only the last is seen
        found = lost(paid, with_home(HERE), with_home((there, HERE[1])))
        assert 0 < total(found, paid) <= float(paid.cost) * (1 + 1e-12)
        assert any(price(each, paid) > 0 for each in found["person"]) == (there == 6)


# --- controls


def with_less_noise(paid: Plan, chosen, times: int) -> Plan:
    draws = (draw.model_copy(update={"scale": draw.scale / times}) if chosen(draw) else draw for draw in paid.draws)
    return paid.model_copy(update={"draws": tuple(draws)})


@pytest.mark.whole
@every_measure
def test_control_levels_charged_as_if_they_were_disjoint_are_caught(measure):
    paid = paid_for(measure)
    assert not is_caught(lost(paid, *neighbours_of(paid, HERE)), paid)
    assert is_caught(lost(with_less_noise(paid, is_of_places, 3), *neighbours_of(paid, HERE)), paid)


@pytest.mark.whole
@every_measure
def test_control_members_charged_as_if_each_were_a_household_are_caught(measure):
    paid = paid_for(measure)
    k = (AT_MOST - 1) ** (1 if measure == "pure" else 2)
    lie = with_less_noise(paid, lambda draw: draw.rows_of is not None, k)
    assert is_caught(lost(lie, *neighbours_of(paid, HERE)), paid)


@every_measure
def test_control_a_household_with_one_person_too_many_is_caught(measure):
    paid = paid_for(measure)
    found = lost(paid, *neighbours_of(paid, LARGE))
    assert all(price(each, paid) > float(each.draw.cost) * 1.1 for each in found["person"])
    assert total(found, paid) > float(paid.cost)


def test_control_members_of_a_place_that_is_not_known_counted_everywhere_are_caught(monkeypatch):
    """A member of a household without a place, counted in every region: three cells change, and two were not paid for."""
    right, paid = linked.CoarseCounts.blocks, paid_for("pure")

    def everywhere(self):
        for block in right(self):
            unknown = block.codes[:, 1] == 2
            more = [block.codes[unknown].copy() for _ in range(2)]
            for region, codes in enumerate(more):
                codes[:, 1] = region
            yield Counts(np.concatenate([block.codes, *more]), np.concatenate([block.count, *(block.count[unknown],) * 2]))

    monkeypatch.setattr(linked.CoarseCounts, "blocks", everywhere)
    found = lost(paid, *neighbours_of(paid, NOWHERE))
    assert any(price(each, paid) > float(each.draw.cost) * 1.1 for each in found["person"])
