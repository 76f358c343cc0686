"""Analyses of linked tables: of household rows as of any table, of persons as the sum of reference persons and members."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.errors import SpecError
from schemas.plan import AnalysisPlan
from schemas.spec.domain import Domain
from steps_engine.analyses.results import results_of
from steps_engine.domain.linked_records import everybody_table
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.households.small import counted, domain, plan, release, some_homes

OF = domain()
ASKED = (("tenure", "n_person"), ("relation", "sex"), ("tenure", "grade"), "n_person ~ tenure", ("relation",))
both_measures = pytest.mark.parametrize("privacy", [{}, {"delta": Decimal("1e-9")}], ids=["pure", "zcdp"])


def planned(*asked, of: Domain = OF, **privacy) -> tuple[AnalysisPlan, ...]:
    return plan(of, asked, **({"epsilon": Decimal(8)} | privacy)).analyses


@both_measures
def test_a_table_of_persons_needs_reference_persons_and_members(privacy):
    found = {each.name: each for each in planned(*ASKED, **privacy)}
    assert [table.of for table in found["tenure × grade"].needs] == [("tenure", "reference_grade"), ("tenure", "grade")]
    assert [table.of for table in found["relation × sex"].needs] == [("reference_sex",), ("relation", "sex")]
    assert [table.of for table in found["relation"].needs] == [("relation",)]  # of households it is their number
    assert all(each.measured and each.expected_width and 0 < each.share < 1 for each in found.values())
    persons = {name for name, each in found.items() if each.rows_of == "person"}
    assert persons == {"relation × sex", "tenure × grade", "relation"}


def test_what_is_asked_of_persons_is_paid_in_both_parts():
    """A table of three is counted nowhere unless somebody asks; asked of persons, it is in household rows and in members'."""
    wanted, reference = ("tenure", "sex", "grade"), ("tenure", "reference_sex", "reference_grade")
    without, asked = (plan(OF, of, epsilon=Decimal(8)) for of in ((), (wanted,)))
    drawn = {(draw.rows_of, of) for draw in asked.draws for of in draw.tables}
    assert {("person", wanted), (None, reference)} <= drawn
    assert not {wanted, reference} & {of for draw in without.draws for of in draw.tables}
    assert sum(draw.cost for draw in asked.draws) == 8 == sum(draw.cost for draw in without.draws)


def test_what_cannot_be_had_is_refused_with_what_would_do():
    table = {"table": ("tenure", "grade"), "within": Fraction(1, 20)}
    with pytest.raises(
        SpecError, match=r"'tenure × grade': ± 5% is asked and ± .* is to be expected. ε = [0-9.]+ would do"
    ) as told:
        planned(table, epsilon=Decimal("0.1"))
    enough = Decimal(str(told.value).split("ε = ")[1].split(" would")[0])
    assert planned(table, epsilon=enough)[0].expected_width <= 0.05


def test_a_model_of_persons_is_refused_in_words():
    with pytest.raises(SpecError, match="names 'grade', of a person; of persons tables alone can be planned"):
        planned("grade ~ tenure")


def test_shares_of_persons_are_those_of_the_records_where_the_budget_is_large():
    """And nothing of persons is called honest: members of one household are not independent."""
    homes = some_homes(300)
    asked = release(OF, ASKED, epsilon=Decimal(2000))
    several = asked.asking(type(asked.spec.method).model_validate({"sets": {"count": 2, "budget": "shared"}}))
    made = run(several, counted(OF, homes), SeededRandomness(2))
    persons = [everybody_table(OF, made.tables[f"synthetic-{i}"], made.tables[f"person-{i}"]) for i in (1, 2)]
    found = {each.name: each for each in results_of(make_plan(several), OF, made.records, persons)}
    exact = np.zeros((3, 2))  # relation × sex
    for _, sex, _, others in homes:
        exact[0, sex] += 1
        np.add.at(exact, ([1 + kind for kind, _, _ in others], [each for _, each, _ in others]), 1)
    assert [each.estimate for each in found["relation × sex"].estimates] == pytest.approx(
        (exact / exact.sum()).ravel(), abs=0.02
    )
    assert not found["relation × sex"].honest and "not known whether intervals cover" in found["relation × sex"].why
    assert all(each.achieved_width / each.expected_width < 2 for each in found.values())
