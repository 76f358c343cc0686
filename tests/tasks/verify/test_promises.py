"""ε at δ, proved again: what the planner says holds, whatever says less is found, and no number is too hostile to look at."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.budget import UNIT, show_nanos
from steps_engine.accounting.conversion import epsilon_of
from tasks.verify.accounts import domain_problems
from tasks.verify.promises import promise_problems, proved_epsilon, written_delta
from tests.tasks.verify.methods import domain_of
from tests.tasks.verify.test_accounts import must_say, plan_of, problems

PLAN = plan_of("flat", rho="0.02", delta="1e-9")


@given(st.integers(1, 10**13), st.sampled_from(["1e-300", "3.7e-30", "1e-9", "9.99999999999999e-1", "5e-1"]))
def test_every_epsilon_that_the_planner_finds_is_proved_and_hardly_less_would_be(nanos, delta):
    rho = Fraction(nanos, UNIT)
    found = epsilon_of(rho, float(delta))
    said = {"rho": show_nanos(nanos), "delta": delta, "epsilon": show_nanos(int(found.value * UNIT)), "order": found.order}
    assert list(promise_problems(PLAN.model_copy(update=said))) == []
    tight = found.value - Fraction(10, UNIT) * max(1, found.value / 100)
    assert found.value == 0 or delta.startswith("9.99") or proved_epsilon(rho, Decimal(delta), found.order) > tight


@given(st.fractions(0, 100), st.floats(1, 1e6, exclude_min=True), st.floats(1e-300, 0.999))
def test_the_formula_is_the_one_of_the_theorem(rho, order, chance):
    """δ = exp((α − 1)(αρ − ε))·(1 − 1/α)^α/(α − 1), solved for ε."""
    proved = proved_epsilon(rho, Decimal(chance), order)
    with localcontext(Context(prec=200)):
        alpha, delta = Decimal(order), Decimal(chance)
        loss = alpha * rho.numerator / rho.denominator - proved
        reached = (alpha - 1) * loss + alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()
        assert 0 <= delta.ln() - reached <= (alpha - 1) * (2 + abs(proved)) * Decimal("1e-36")


@pytest.mark.parametrize(
    "lie", [{"epsilon": "1.163287325"}, {"epsilon": "0.02"}, {"epsilon": "0"}, {"delta": "9.9e-10"}, {"delta": "1e-12"}]
)
def test_an_epsilon_or_delta_that_is_understated_is_found(lie):
    must_say(PLAN.model_copy(update=lie), "is promised at δ=")


def test_the_problem_says_what_is_promised_and_what_is_proved():
    (text,) = problems(PLAN.model_copy(update={"epsilon": "1"}))
    assert text.startswith("ε=1 is promised at δ=1e-9; of ρ=0.02 the order 30.4") and "proves ε=1.16328732" in text


@pytest.mark.parametrize("order", [2.0, 1.0000000000000002, 20.0, 60.0, 1e6, 1e300, 1.7976931348623157e308])
def test_an_order_that_proves_less_is_found(order):
    must_say(PLAN.model_copy(update={"order": order}), f"the order {order} proves ε=")


@pytest.mark.parametrize("order", [1.0, 1 + 1e-300, 0.5, 0.0, -3.0, math.inf, -math.inf, math.nan])
def test_an_order_that_proves_nothing_is_found(order):
    must_say(PLAN.model_copy(update={"order": order}), "only a finite one above 1 proves an ε")


def test_any_order_that_proves_as_much_will_do():
    assert problems(PLAN.model_copy(update={"order": 28.0, "epsilon": "1.2"})) == []


@pytest.mark.parametrize("delta", ["1e-999", "9.99999999999999e-999", "1e-300"])
def test_a_chance_beyond_double_precision_is_looked_at_all_the_same(delta):
    must_say(PLAN.model_copy(update={"delta": delta}), f"is promised at δ={delta}")
    assert problems(PLAN.model_copy(update={"delta": delta, "epsilon": "100"})) == []


@pytest.mark.parametrize(
    "text",
    [
        "1e-9999",
        "1e-999999999",
        "1e9",
        "0",
        "1",
        "0.1",
        "nan",
        "inf",
        "-1e-9",
        " 1e-9",
        "1E-9",
        "0e-9",
        "1." + "1" * 10**5 + "e-9",
    ],
)
def test_a_delta_that_is_not_written_as_a_chance_is_refused(text):
    with pytest.raises(ValueError, match="δ is not written as a chance"):
        written_delta(text)


@pytest.mark.parametrize("text", ["nan", "1e0", "9" * 10**5, "", "-1"])
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_figures_that_are_not_digits_are_refused(name, text):
    with pytest.raises(ValueError, match="decimal digits"):
        problems(PLAN.model_copy(update={name: text}))


@pytest.mark.parametrize("missing", [{"rho": None}, {"delta": None}, {"order": None}, {"format": 2}, {"format": 1}])
def test_a_plan_in_rho_that_does_not_say_all_is_found(missing):
    assert list(promise_problems(PLAN.model_copy(update=missing))) == [
        "a plan in ρ has rho, delta and order, and the format that knows them, 3"
    ]


@pytest.mark.parametrize("more", [{"rho": "1"}, {"delta": "1e-9"}, {"order": 2.0}, {"delta_why": "so"}, {"format": 3}])
def test_a_pure_plan_that_says_more_is_found(more):
    must_say(plan_of("flat").model_copy(update=more), "a plan in ε has no rho, delta or order")


# δ beside the number of rows


def _delta_problems(delta: str, rows: int | None, why: str | None = None) -> list[str]:
    domain = domain_of("flat").model_copy(update={"expected_rows": rows})
    return list(domain_problems(PLAN.model_copy(update={"delta": delta, "delta_why": why}), domain))


@pytest.mark.parametrize(
    ("delta", "rows"), [("2.5e-6", 4000), ("1e-9", None), ("1e-12", 10**10), ("1e-999", 10**15), ("1e-2", 1)]
)
def test_a_delta_far_below_one_in_all_rows_is_sound(delta, rows):
    assert _delta_problems(delta, rows) == []


@pytest.mark.parametrize(
    ("delta", "rows"), [("2.50000000000001e-6", 4000), ("1.1e-9", None), ("1e-11", 10**10), ("9e-1", 1), ("1e-16", 2**53)]
)
def test_a_delta_not_far_below_one_in_all_rows_is_found_unless_the_plan_says_why(delta, rows):
    (text,) = _delta_problems(delta, rows)
    assert f"δ={delta}" in text and "not far below one in all" in text and str(rows or "not said how many") in text
    assert _delta_problems(delta, rows, "a study of public records") == []
