"""What margins get under ε where pairs are elected: from public inputs, more than if noise could leave ever more wrong."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from schemas.spec.analyses import TableAnalysis
from schemas.spec.method import method_spec
from steps_engine.accounting.plans import allowance_of
from steps_engine.methods.pairs import balance, plan
from steps_engine.methods.pairs.balance import balanced, predicted
from steps_engine.methods.pairs.division import division
from steps_engine.methods.planning import make_plan, plan_with_analyses
from tests.steps_engine.shapes import domain, release

WIDE = domain(12, 8, 10, 9, 7, 11, 6, 8, expected_rows=10_000)
PAIRS = method_spec(decomposition="pairs")


def both(epsilon: str, **privacy):
    """As division.py has it, and as it is."""
    allowance = allowance_of(release(WIDE, PAIRS, epsilon, **privacy))
    before = division(WIDE, allowance, None)
    return allowance, before, balanced(WIDE, allowance, before, ())


@pytest.mark.parametrize("epsilon", ["0.1", "0.4", "1"])
def test_where_noise_is_large_margins_get_half_of_the_way_to_the_least_error(epsilon: str):
    allowance, before, found = both(epsilon)
    least = 2 * found.margins - before.margins
    error = {part: predicted(WIDE, allowance, before.elected, float(part)) for part in balance.PARTS}
    assert before.margins < found.margins < 1 and error[least] == min(error.values())
    assert found.elected == before.elected and found.error == before.error
    made = make_plan(release(WIDE, PAIRS, epsilon))
    first = [draw.cost for draw in made.draws if draw.tables and all(len(table) < 2 for table in draw.tables)]
    assert sum(first) / Fraction(made.cost) == found.margins != before.margins


def test_what_is_left_wrong_has_a_bound_so_that_the_smallest_epsilon_gives_margins_most():
    parts = [both(epsilon)[2].margins - both(epsilon)[1].margins for epsilon in ("0.05", "1", "20")]
    assert parts[0] > parts[1] > parts[2] == 0  # in the end all pairs are measured


def test_plans_under_rho_with_declared_tables_and_of_all_pairs_stay_as_they_are():
    _, before, found = both("0.5", delta=Decimal("1e-9"))
    assert found == before
    allowance, before, found = both("0.4")
    assert found != before and balanced(WIDE, allowance, before, ((0, 1),)) == before
    few = domain(4, 3, 5, expected_rows=50_000)
    allowance = allowance_of(release(few, PAIRS, "1"))
    every = division(few, allowance, None)
    assert not every.elected and balanced(few, allowance, every, ()) == every


def test_a_declared_analysis_keeps_its_plan(monkeypatch: pytest.MonkeyPatch):
    asked = release(WIDE, PAIRS, "0.4")
    spec = asked.spec.model_copy(update={"analyses": (TableAnalysis(table=("x0", "x1")),)})
    declared = asked.model_copy(update={"spec": spec})
    found, other = plan_with_analyses(declared), make_plan(asked)
    monkeypatch.setattr(plan, "balanced", lambda _domain, _allowance, divided, _declared: divided)
    assert plan_with_analyses(declared).draws == found.draws
    assert make_plan(asked).draws != other.draws  # control: what declares nothing has another plan
