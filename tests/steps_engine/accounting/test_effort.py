"""What a plan tells of time and memory is that of a whole run."""

from __future__ import annotations

from schemas.spec.method import method_spec
from steps_engine.accounting import effort
from steps_engine.accounting.effort import seconds_around
from steps_engine.accounting.plans import allowance_of
from steps_engine.evaluation.measures import margins
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named
from tasks.stages import evaluate
from tests.steps_engine.shapes import domain, release


def test_a_plan_tells_what_the_whole_run_takes_and_not_the_method_alone():
    asked = release(domain(2, 3, 4, expected_rows=10**6), method_spec("tree", order=("x0",)))
    alone = method_named("tree").outline(asked, allowance_of(asked), None)
    plan = make_plan(asked)
    assert plan.memory_bytes == max(alone.memory_bytes, effort.bytes_around(asked.domain)) + effort.START_BYTES
    assert plan.seconds > alone.seconds + effort.START_SECONDS + 1


def test_more_rows_more_sets_and_more_attributes_take_longer():
    few = seconds_around(domain(2, 3, 4, expected_rows=10**6), 1)
    assert few < seconds_around(domain(2, 3, 4, expected_rows=10**7), 1)
    assert few < seconds_around(domain(2, 3, 4, expected_rows=10**6), 2)
    assert few < seconds_around(domain(2, 3, 4, 5, expected_rows=10**6), 1)


def test_the_estimate_knows_how_much_an_evaluation_looks_at():
    assert effort.MOST_TRIPLES == margins.MOST_TRIPLES
    assert effort.MOST_COMPARED == evaluate.MOST_VALUES
