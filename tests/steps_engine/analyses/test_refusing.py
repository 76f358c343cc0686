"""What cannot be had is refused before data, with the budget that would do; and the inverse question is answered."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from schemas.errors import SpecError
from steps_engine.analyses.refusing import budget_for, shortfall
from steps_engine.analyses.wanted import budget_wanted, parse_wanted
from steps_engine.methods.planning import make_plan, plan_with_analyses
from tests.steps_engine.analyses.asking import FLAT, PEOPLE, asking

MEASURES = {
    "ε": {"epsilon": "0.1"},
    "ρ": {"rho": "0.00001", "delta": "1e-9"},
    "ε at δ": {"epsilon": "0.02", "delta": "1e-9"},
}
CANNOT = {
    "a table within": {"table": ("voted", "age"), "within": "0.9%"},
    "a model within": {"model": "voted ~ age + region", "within": Decimal("0.12")},
    "a table of noise": ("wage", "age"),
    "a logistic model of noise": "voted ~ wage",
    "a linear model of noise": "wage ~ region",
}
TINY = {"ε": {"epsilon": "0.001"}, "ρ": {"rho": "0.0000001", "delta": "1e-9"}, "ε at δ": {"epsilon": "0.001", "delta": "1e-9"}}


def asked_as(privacy: dict[str, str], amount: str) -> dict[str, str]:
    return privacy | {"rho" if "rho" in privacy else "epsilon": amount}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("what", CANNOT)
@pytest.mark.whole
def test_what_cannot_be_had_is_refused_and_can_be_had_at_the_budget_that_is_named(what, measure):
    analysis = CANNOT[what]
    privacy = MEASURES[measure] if isinstance(analysis, dict) else TINY[measure]
    with pytest.raises(SpecError) as refused:
        make_plan(asking(analysis, **privacy))
    amount = re.search(r"[ερ] = ([0-9.]+) would do", str(refused.value))[1]
    enough = make_plan(asking(analysis, **asked_as(privacy, amount)))
    assert shortfall(enough.analyses[0], PEOPLE) is None
    with pytest.raises(SpecError):  # a tenth less would not do
        make_plan(asking(analysis, **asked_as(privacy, f"{0.88 * float(amount):.9f}")))


def test_more_than_sampling_allows_is_refused_whatever_the_budget():
    with pytest.raises(SpecError, match="No ε would do: sampling people alone gives ± 0.4"):
        make_plan(asking({"table": ("voted", "age"), "within": "0.1%"}))


def test_what_is_not_measured_is_refused_where_an_accuracy_is_asked_and_told_otherwise():
    cascade = {"decomposition": "cascade"}
    with pytest.raises(SpecError, match="does not measure voted × age. Use decomposition: pairs"):
        make_plan(asking({"table": ("voted", "age"), "within": "50%"}, method=cascade))
    assert not make_plan(asking(("voted", "age"), method=cascade)).analyses[0].measured


def test_an_accuracy_without_expected_rows_is_refused():
    domain = PEOPLE.model_copy(update={"expected_rows": None})
    with pytest.raises(SpecError, match="expected_rows"):
        make_plan(asking({"table": ("voted", "age"), "within": "1%"}, domain=domain))


def test_a_table_that_can_be_had_is_planned():
    plan = make_plan(asking({"table": ("voted", "age"), "within": "5%"}))
    assert plan.analyses[0].expected_width <= 0.05


def test_the_budget_for_an_analysis_is_about_the_least():
    release = asking({"table": ("voted", "age"), "within": "1%"}, method=FLAT)
    found = budget_for(release, plan_with_analyses, "voted × age")
    assert 0.0095 < found.analyses[0].expected_width <= 0.01


@pytest.mark.parametrize("said", ["voted by age ±1%", "voted by age +-1 %", "voted  by age +/- 1%"])
def test_what_is_wanted_reads_as_a_person_writes_it(said):
    assert parse_wanted(said).model_dump() == {"table": ("voted", "age"), "within": "1/100"}


def test_a_model_may_be_wanted():
    assert parse_wanted("voted ~ age + region ±0.2").model == "voted ~ age + region"


@pytest.mark.parametrize("said", ["voted by age", "±1%", "voted ± much", "voted by voted ±1%", "voted ±0%"])
def test_what_is_not_said_clearly_is_refused(said):
    with pytest.raises(SpecError, match="wanted"):
        parse_wanted(said)


def test_the_budget_that_is_wanted_is_the_one_that_the_plan_accepts():
    plan, analysis = budget_wanted(asking(epsilon="7"), "voted by age ±1%", plan_with_analyses)
    assert analysis.expected_width <= 0.01 and float(plan.epsilon) < 7
    accepted = make_plan(asking({"table": ("voted", "age"), "within": "1%"}, epsilon=plan.epsilon))
    assert accepted.analyses[0] == analysis


def test_what_cannot_be_wanted_is_refused_with_its_reason():
    with pytest.raises(SpecError, match="sampling people alone"):
        budget_wanted(asking(), "voted by age ±0.01%", plan_with_analyses)
    with pytest.raises(SpecError, match="does not measure"):
        budget_wanted(asking(method={"decomposition": "cascade"}), "voted by age ±1%", plan_with_analyses)


def test_a_budget_of_a_few_billionths_is_found_too():
    crowd = PEOPLE.model_copy(update={"expected_rows": 10**11})
    release = asking({"table": ("voted", "age"), "within": "12%"}, domain=crowd, rho="0.1", delta="1e-20")
    found = budget_for(release, plan_with_analyses, "voted × age")
    assert float(found.rho) < 1e-6
