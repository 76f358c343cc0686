"""Models whose outcome the rules settle: told before any record is read, and refused where nothing is left to estimate."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.analyses.ruled_out import always_alike, remarks_on
from steps_engine.analyses.wanted import budget_wanted
from steps_engine.methods.planning import make_plan, plan_with_analyses
from tests.steps_engine.analyses.asking import PEOPLE, asking


def ruled(*never: dict) -> Domain:
    said = {"name": "people", "population": "town", "expected_rows": 20_000, "attributes": PEOPLE.attributes}
    return Domain.model_validate(said | {"rules": tuple({"never": each} for each in never)})


WEST_NEVER_VOTES = ruled({"voted": "yes", "region": "west"})


def remarks(formula: str, domain: Domain = WEST_NEVER_VOTES, **more) -> tuple[str, ...]:
    return remarks_on(plan_with_analyses(asking({"model": formula, **more}, domain=domain)).analyses, domain)


def test_a_coefficient_that_the_rules_make_infinite_is_told_with_the_rule_and_what_to_do():
    (said,) = remarks("voted ~ age + region")
    assert "by the rules voted is always no where region = west" in said and "leave region out" in said
    assert remarks("voted ~ age + region", PEOPLE) == ()  # control: without the rule


def test_the_smallest_term_that_settles_the_outcome_is_named():
    (said,) = remarks("voted ~ age * region")
    assert "coefficients of region," in said
    of_two = ruled({"voted": "yes", "region": "west", "age": 18}, {"voted": "no", "region": "south", "age": 19})
    (said,) = remarks("voted ~ region * C(age)", of_two)
    assert "always no where region = west and age = 18" in said and "always yes where region = south and age = 19" in said


def test_numbers_along_a_line_and_rows_that_are_not_asked_for_settle_nothing():
    young = ruled({"voted": "yes", "age": 18})
    assert remarks("voted ~ age", young) == ()
    assert len(remarks("voted ~ C(age)", young)) == 1
    assert remarks("voted ~ age", WEST_NEVER_VOTES, where={"region": ["north", "south"]}) == ()
    assert remarks("voted ~ age", WEST_NEVER_VOTES, where={"region": ["south", "west"]}) == ()
    assert remarks("wage ~ region", WEST_NEVER_VOTES) == ()  # a linear model has its coefficients


def test_a_model_of_rows_with_one_outcome_is_refused():
    with pytest.raises(SpecError, match="by the rules voted is always no where region = west. There is nothing to estimate"):
        make_plan(asking({"model": "voted ~ age", "where": {"region": "west"}}, domain=WEST_NEVER_VOTES))
    others = asking({"model": "voted ~ age", "where": {"region": ["north", "west"]}}, domain=WEST_NEVER_VOTES)
    assert always_alike(make_plan(others).analyses[0], WEST_NEVER_VOTES) is None


def test_so_is_one_that_is_wanted():
    nobody = ruled({"voted": "yes"})
    with pytest.raises(
        SpecError, match="wanted 'voted ~ age ±1': by the rules voted is always no. There is nothing to estimate"
    ):
        budget_wanted(asking(domain=nobody), "voted ~ age ±1", plan_with_analyses)
