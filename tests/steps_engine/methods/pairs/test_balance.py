"""What margins get under ε where pairs are elected, and how many are: from public inputs, what is predicted to leave least wrong."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from flows.output.plan_picture import tree_svg
from schemas.plan import Draw, Plan
from schemas.spec.analyses import TableAnalysis
from schemas.spec.method import method_spec
from steps_engine.accounting.plans import allowance_of
from steps_engine.methods.pairs import balance, plan
from steps_engine.methods.pairs.balance import balanced, predicted
from steps_engine.methods.pairs.division import DECAY, STRONGEST, candidates, division, elected_alone, margin_errors
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.methods.registry import method_of
from tests.steps_engine.shapes import domain, release

WIDE = domain(12, 8, 10, 9, 7, 11, 6, 8, expected_rows=10_000)
PAIRS = method_spec(decomposition="pairs")


def both(epsilon: str, **privacy):
    """As division.py has it, and as it is."""
    allowance = allowance_of(release(WIDE, PAIRS, epsilon, **privacy))
    before = division(WIDE, allowance, None)
    return allowance, before, balanced(WIDE, allowance, before, None, ())


@pytest.mark.parametrize("epsilon", ["0.1", "0.4", "1"])
def test_where_noise_is_large_part_and_number_are_those_that_leave_least_wrong(epsilon: str):
    allowance, before, found = both(epsilon)
    numbers = np.arange(1, len(candidates(WIDE)))
    wrong = {part: predicted(WIDE, allowance, numbers, float(part)) for part in balance.PARTS}
    assert found.error == min(map(min, wrong.values())) == wrong[found.margins][found.elected - 1]
    assert before.margins < found.margins < 1 and 0 < found.elected <= before.elected
    made = make_plan(release(WIDE, PAIRS, epsilon))
    first = [draw.cost for draw in made.draws if draw.tables and all(len(table) < 2 for table in draw.tables)]
    assert sum(first) / Fraction(made.cost) == found.margins != before.margins
    assert sum(draw.kind == "election" for draw in made.draws) == found.elected


def test_the_prediction_is_the_sum_over_pairs_of_what_noise_leaves_of_each():
    allowance, pairs = both("0.4")[0], len(candidates(WIDE))
    noise = 7 * elected_alone(WIDE, allowance, 0.4 * 0.3)
    strength = STRONGEST * np.exp(-DECAY * (np.arange(10**6) + 0.5) / 10**6)
    measured = np.arange(10**6) < 7 / pairs * 10**6
    left = np.where(measured, strength * noise / (strength + noise), strength).mean()
    margins = margin_errors(WIDE, allowance, 0.4 * 0.7).mean()
    assert predicted(WIDE, allowance, np.array([7]), 0.7)[0] == pytest.approx(margins + left, rel=1e-4)


def test_the_smaller_epsilon_the_more_for_margins_and_the_fewer_pairs():
    found = [both(epsilon)[2] for epsilon in ("0.05", "0.4", "2")]
    assert found[0].margins > found[1].margins > found[2].margins
    assert found[0].elected < found[1].elected < found[2].elected
    assert both("20")[2] == both("20")[1]  # in the end all pairs are measured


def test_a_number_that_was_asked_for_is_elected():
    asked = method_spec(decomposition="pairs", pairs=5)
    made = make_plan(release(WIDE, asked, "0.4"))
    assert sum(draw.kind == "election" for draw in made.draws) == 5 != both("0.4")[2].elected


def test_plans_under_rho_with_declared_tables_and_of_all_pairs_stay_as_they_are():
    _, before, found = both("0.5", delta=Decimal("1e-9"))
    assert found == before
    allowance, before, found = both("0.4")
    assert found != before and balanced(WIDE, allowance, before, None, ((0, 1),)) == before
    few = domain(4, 3, 5, expected_rows=50_000)
    allowance = allowance_of(release(few, PAIRS, "1"))
    every = division(few, allowance, None)
    assert not every.elected and balanced(few, allowance, every, None, ()) == every


def declaring(*tables: tuple[str, ...], epsilon: str = "0.4"):
    asked = release(WIDE, PAIRS, epsilon)
    spec = asked.spec.model_copy(update={"analyses": tuple(TableAnalysis(table=table) for table in tables)})
    return asked.model_copy(update={"spec": spec})


def of_tables(made: Plan) -> list[Draw]:
    return [draw for draw in made.draws if draw.tables and all(len(table) > 1 for table in draw.tables)]


def of_margins(made: Plan) -> Fraction:
    return sum((draw.cost for draw in made.draws if draw.tables and all(len(table) < 2 for table in draw.tables)), Fraction(0))


def test_a_declared_table_keeps_its_part_and_the_rest_is_divided_as_if_nothing_were_declared(monkeypatch: pytest.MonkeyPatch):
    """Before, margins fell to a quarter of what `division` gives them, for one small table that somebody named."""
    asked = declaring(("x0", "x1"))
    found, other = plan_with_analyses(asked), make_plan(release(WIDE, PAIRS, "0.4"))
    kept = sum(draw.cost for draw in of_tables(found))
    allowance, before, _ = both("0.4")
    rest = replace(allowance, total=allowance.total - kept)
    divided = balanced(WIDE, rest, before, None, ())
    assert of_margins(found) == divided.margins * rest.total > of_margins(other) * Fraction(4, 5)
    assert found.election and (found.election.layers, found.election.candidates) == (divided.elected, len(candidates(WIDE)) - 1)
    assert sum(draw.cost for draw in found.draws) == allowance.total
    votes = sum(draw.cost for draw in found.draws if draw.kind == "election")
    assert votes == found.election.share * allowance.total
    monkeypatch.setattr(plan, "of_analyses", lambda *_: [])
    unbalanced = plan_with_analyses(asked)
    assert [draw.cost for draw in of_tables(unbalanced)] == [draw.cost for draw in of_tables(found)]
    (narrow,), (wide,) = found.analyses, unbalanced.analyses
    assert narrow.expected_width < 0.7 * wide.expected_width and of_margins(unbalanced) < of_margins(found) / 2


def test_no_more_pairs_are_elected_than_are_left():
    tables = [tuple(f"x{j}" for j in pair) for pair in candidates(WIDE)[2:]]
    found = plan_with_analyses(declaring(*tables))
    assert found.election is None or found.election.layers <= found.election.candidates == 2


@pytest.mark.parametrize(("largest", "rows"), [(25, 10**6), (10, 10**4)], ids=["many tables", "few"])
def test_elected_pairs_are_one_line_of_the_plan_and_of_its_picture(largest: int, rows: int):
    plan = make_plan(release(domain(*range(3, largest), expected_rows=rows), PAIRS, "0.1"))
    lines = method_of(plan).sketch(plan).rows
    (elected,) = (row for row in lines if "elected" in row.what)
    assert plan.election and elected.what == f"{plan.election.layers} elected pairs"
    picture = tree_svg(plan)
    assert picture.count("<rect x") == len(lines) < 40 and f"{elected.what}<" in picture and f"{elected.share} of ε<" in picture
