"""What may be asked for, and which tables it needs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pydantic import ValidationError

from schemas.errors import SpecError
from steps_engine.analyses.needed import needed_by, needed_tables
from steps_engine.analyses.questions import questions_of, terms_of
from tests.steps_engine.analyses.asking import PEOPLE, asking


def questions(*analyses):
    return questions_of(asking(*analyses).spec.analyses, PEOPLE)


def test_a_list_is_a_table_and_a_text_a_model():
    table, model = questions(("voted", "age"), "voted ~ age")
    assert (table.kind, table.table, table.name) == ("table", ("voted", "age"), "voted × age")
    assert (model.kind, model.formula, model.where) == ("logistic", "voted ~ age", {})


def test_the_kind_follows_from_the_outcome():
    assert [each.kind for each in questions("wage ~ age", "voted ~ age", {"model": "age ~ wage"})] == [
        "linear",
        "logistic",
        "linear",
    ]


def test_within_is_a_number_or_a_percentage():
    table, model = questions({"table": ("voted", "age"), "within": "1.5%"}, {"model": "voted ~ age", "within": 1})
    assert (table.within, model.within) == (Fraction(3, 200), 1)


@pytest.mark.parametrize("within", [1, "100%", 250])
def test_all_rows_and_more_are_no_accuracy_of_a_share(within):
    with pytest.raises(ValidationError, match="within of a table is a part of all rows, such as 1% or 0.01"):
        asking({"table": ("voted", "age"), "within": within})


@pytest.mark.parametrize("within", ["little", "-1%", 0, True, "1e3%"])
def test_a_within_that_is_no_positive_number_is_refused(within):
    with pytest.raises(ValidationError, match="within"):
        asking({"table": ("voted", "age"), "within": within})


WRONG = {
    "no such attribute in a table": (("voted", "aeg"), "no attribute 'aeg'"),
    "no such attribute in a model": ("voted ~ aeg", "no attribute 'aeg'"),
    "no such attribute in where": ({"model": "voted ~ age", "where": {"town": "x"}}, "no attribute 'town'"),
    "no such category in where": ({"model": "voted ~ age", "where": {"region": "east"}}, "no category 'east'"),
    "where of a predictor": ({"model": "voted ~ age", "where": {"age": 18}}, "fixes 'age'"),
    "an outcome of three categories": ("region ~ age", "cannot be the outcome"),
    "a linear model of words": ({"model": "voted ~ age", "kind": "linear"}, "cannot be the outcome"),
    "a logistic model of numbers": ({"model": "wage ~ age", "kind": "logistic"}, "cannot be the outcome"),
    "no formula": ("voted by age", "must be: name ~ names"),
    "a call": ("voted ~ exp(age)", "must be: name ~ names"),
    "brackets": ("voted ~ (age + wage) * region", "brackets"),
    "a sum as category": ("voted ~ C(age + wage)", "one name"),
    "more terms than anybody reads": ("voted ~ " + "*".join(["age"] * 12), "more than 200 terms"),
}


@pytest.mark.parametrize(("asked", "why"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_asked_is_refused_with_its_reason(asked, why):
    with pytest.raises(SpecError, match=why.replace("(", r"\(")):
        questions(asked)


def test_an_analysis_that_stands_twice_is_refused():
    with pytest.raises(SpecError, match="stands twice"):
        questions(("voted", "age"), ("voted", "age"))


def test_a_table_of_too_many_cells_is_refused():
    large = PEOPLE.model_copy(update={"attributes": (*PEOPLE.attributes, _many("a"), _many("b"))})
    with pytest.raises(SpecError, match="40,000 cells"):
        questions_of(asking(("a", "b"), domain=large).spec.analyses, large)


def _many(name: str):
    from schemas.spec.attributes import Integer

    return Integer(name=name, kind="integer", bounds=(1, 200))


def test_a_table_needs_itself():
    assert needed_tables(asking(("age", "voted"))) == (("voted", "age"),)


def test_a_margin_needs_nothing_beside_margins():
    assert needed_tables(asking(("age",))) == ()


def test_a_model_needs_every_term_with_the_outcome_and_every_two_terms_together():
    (model,) = questions("wage ~ voted + age")
    assert set(needed_by(model, PEOPLE)) == {("voted", "wage"), ("age", "wage"), ("voted", "age")}


def test_a_product_needs_its_attributes_together():
    (model,) = questions("wage ~ voted * region + C(age)")
    assert set(needed_by(model, PEOPLE)) == {("voted", "region", "wage"), ("age", "wage"), ("voted", "region", "age")}
    assert [sorted(term) for term in terms_of(model)] == [[], ["voted"], ["region"], ["region", "voted"], ["age"]]


def test_where_joins_every_table():
    (model,) = questions({"model": "voted ~ age + wage", "where": {"region": ("north", "west")}})
    assert model.where == {"region": ("north", "west")}
    assert all("region" in table for table in needed_by(model, PEOPLE)) and len(needed_by(model, PEOPLE)) == 3


def test_a_model_of_an_intercept_needs_the_outcomes_margin():
    (model,) = questions("wage ~ 1")
    assert needed_by(model, PEOPLE) == (("wage",),)


def test_tables_within_others_are_not_named_twice():
    release = asking(("voted", "age"), ("voted", "age", "region"), "wage ~ voted")
    assert needed_tables(release) == (("voted", "region", "age"), ("voted", "wage"))
