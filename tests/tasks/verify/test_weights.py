"""The verifier reckons by itself what a row with a weight can change; a plan that says less does not pass."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from schemas.manifest import guarantee_of
from schemas.plan import Plan, read_plan
from schemas.spec.method import method_spec
from steps_engine.domain.encoding import decode
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing.bundle import domain_bytes, read_domain
from tasks.publishing.descriptions.analysis_r import analysis_r
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.records import record_problems
from tests.steps_engine.methods.households.small import plan as plan_of_households
from tests.steps_engine.methods.households.surveyed import surveyed
from tests.steps_engine.shapes import domain, release

WEIGHT = {"column": "w", "bounds": (Decimal("0.3"), Decimal("12.1")), "total": 4000, "step": Decimal("2.5")}
OF = domain(2, 3, unit={"rows_per_person": 2}, expected_rows=800, weight=WEIGHT)


def planned(**privacy) -> Plan:
    return make_plan(release(OF, method_spec(decomposition="tree", order=("x0",)), **privacy))


def problems(plan: Plan, of=OF) -> list[str]:
    return [*domain_problems(plan, of), *plan_problems(plan, None)]


@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_a_plan_with_weights_holds_and_is_read_again(neighbours):
    plan = planned(neighbours=neighbours)
    assert plan.units_per_person == 2 * 5 and plan.format == 3  # ⌈12.1/2.5⌉
    assert problems(plan) == [] and read_plan(plan.document).hash == plan.hash
    assert problems(plan, read_domain(domain_bytes(OF))) == []


LIES = {
    "a lower weight": ({"highest": Fraction(10)}, "the domain allows weights up to 12.1; the plan counts on at most 10"),
    "fewer units": ({"units_per_row": 4}, "makes up to 5 units of 5/2; the plan says 4"),
    "a larger step": (
        {"step": Fraction(12), "units_per_row": 2},
        "a unit stands for 5/2 people by the domain, for 12 by the plan",
    ),
    "narrow intervals": ({"inflation": Fraction(1)}, "inflates variances by another factor"),
}


def test_of_households_a_unit_is_said_to_stand_for_households():
    of = surveyed()
    plan = plan_of_households(of)
    told = plan.model_copy(update={"weight": plan.weight.model_copy(update={"step": Fraction(12), "units_per_row": 1})})
    assert "a unit stands for 4 households by the domain, for 12 by the plan" in problems(told, of)


@pytest.mark.parametrize("lie", LIES)
def test_a_plan_that_says_less_is_found(lie):
    plan = planned()
    said, sentence = LIES[lie]
    told = plan.model_copy(update={"weight": plan.weight.model_copy(update=said)})
    assert any(sentence in found for found in problems(told))


def test_a_draw_that_pays_for_a_row_as_one_unit_is_found():
    plan = planned()
    cheap = [draw.model_copy(update={"sensitivity": Fraction(2), "scale": draw.scale / 5}) for draw in plan.draws]
    found = problems(plan.model_copy(update={"draws": tuple(cheap)}))
    assert sum("has sensitivity 2; one person can change it by 10" in problem for problem in found) == len(cheap)


def test_weights_must_be_in_both_or_in_neither():
    plain = OF.model_copy(update={"weight": None})
    assert "plan and domain do not agree on whether records have weights" in problems(planned(), plain)
    unweighted = make_plan(release(plain, method_spec(decomposition="tree", order=("x0",))))
    assert "plan and domain do not agree on whether records have weights" in problems(unweighted)
    assert unweighted.weight is None and "weight" not in unweighted.document
    assert "weight" not in guarantee_of(unweighted).model_dump(mode="json")


def test_the_guarantee_says_what_a_weight_may_be():
    said = guarantee_of(planned())
    assert "all of at most 2 rows, each of a weight of at most 12.1" in said.sentence
    assert any("adjusted to all records together" in text for text in said.unprotected)


def test_a_row_with_another_weight_is_found():
    rows = decode(np.array([[0, 1], [1, 2]]), OF, SeededRandomness("rows"))
    assert rows["w"].to_pylist() == [2.5, 2.5] and list(record_problems(OF, rows, None)) == []
    heavier = rows.set_column(2, rows.schema.field("w"), pa.array([2.5, 5.0]))
    assert list(record_problems(OF, heavier, None)) == ["has a row whose w is not the step of the domain's weights"]


def test_the_program_in_r_inflates_variances_where_there_are_weights():
    plain = make_plan(release(domain(2, 3), method_spec(decomposition="tree", order=("x0",))))
    assert b"inflation" not in analysis_r(domain(2, 3), plain)
    made = analysis_r(OF, planned())
    assert made.count(b"within <- steps_release$inflation * colMeans(variances)") == 1 and b"inflation = 10.68" in made
