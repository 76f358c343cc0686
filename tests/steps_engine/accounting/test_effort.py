"""What a plan tells of time and memory is that of a whole run."""

from __future__ import annotations

from schemas.spec.method import method_spec
from steps_engine.accounting import effort
from steps_engine.accounting.effort import seconds_around
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain import blocks
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
    assert effort.BLOCK == blocks.BLOCK


def test_memory_is_the_larger_of_counting_and_evaluation_and_not_their_sum():
    """As it was measured: DuckDB gives back what it held, and what the allocator keeps of blocks stays."""
    told = {rows: effort.bytes_around(domain(*[30] * 12, expected_rows=rows)) for rows in (10**6, 10**7, 3 * 10**8)}
    counting = effort.counting_bytes(domain(*[30] * 12, expected_rows=3 * 10**8))
    assert told[10**6] < told[10**7] < told[3 * 10**8] == 2**27 + counting
    assert told[10**7] == 2**27 + effort.MOST_COMPARED * effort.COMPARED_BYTES + 2**28


def test_many_attributes_leave_more_behind():
    """Two runs of 100 attributes peaked at 2.13 and 2.41 GiB; as if a row left as much as one of twelve, 1.74 would be told."""
    told = {n: effort.bytes_around(domain(*[5] * n, expected_rows=10**7)) + effort.START_BYTES for n in (12, 30, 100)}
    assert told[12] == told[30] < 1.8 * 2**30 and 2.13 * 2**30 < told[100] < 2.41 * 2**30
