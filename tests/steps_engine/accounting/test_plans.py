"""Plans are made and checked in one place: what is charged is what is drawn, and everything planned can be drawn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import SpecError, StepsError
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release
from steps_engine.accounting import plans
from steps_engine.accounting.composition import composition_of, ways_of
from steps_engine.accounting.plans import allowance_of, plan_of
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named, method_of
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.households import small
from tests.steps_engine.shapes import counted, domain, release

OPTIONS = {
    "flat": {},
    "tree": {"order": ("x0",)},
    "uh": {"layers": 1},
    "cascade": {},
    "privbayes": {},
}
every_method = pytest.mark.parametrize("name", OPTIONS)
SHAPE = domain(2, 3, 4, expected_rows=1000)
MANY_ROWS = domain(2, 3, 4, expected_rows=1000, unit={"rows_per_person": 100})


def asked(name: str, epsilon: str = "1", of=SHAPE, sets: dict | None = None, **privacy):
    return release(of, method_spec(name, sets=sets or {}, **OPTIONS[name]), epsilon, **privacy)


def outline_of(name: str):
    return method_named(name).outline(asked(name), allowance_of(asked(name)), None)


@every_method
def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_charged(name):
    with pytest.raises(SpecError, match="more than can be drawn. Raise epsilon"):
        make_plan(asked(name, "0.000000001", MANY_ROWS, {"count": 100}))


def test_auto_refuses_noise_that_cannot_be_drawn_too():
    with pytest.raises(SpecError, match="more than can be drawn"):
        make_plan(release(MANY_ROWS, method_spec(sets={"count": 100}), "0.000000001"))


@every_method
def test_a_draw_too_many_is_refused(name):
    outline = outline_of(name)
    extra = outline.draws[-1].model_copy(update={"name": "once more"})
    with pytest.raises(StepsError, match="would be charged"):
        plan_of(asked(name), replace(outline, draws=(*outline.draws, extra)), "-")


@every_method
def test_a_draw_too_few_is_refused(name):
    outline = outline_of(name)
    with pytest.raises(StepsError, match="would be charged"):
        plan_of(asked(name), replace(outline, draws=outline.draws[1:]), "-")


@every_method
def test_a_draw_that_its_share_does_not_pay_is_refused(name):
    outline = outline_of(name)
    cheap = outline.draws[0].model_copy(update={"scale": outline.draws[0].scale / 2})
    with pytest.raises(StepsError, match="not paid by its share"):
        plan_of(asked(name), replace(outline, draws=(cheap, *outline.draws[1:])), "-")


def test_a_plan_that_no_machine_holds_is_refused(monkeypatch):
    monkeypatch.setattr(plans, "MOST_MEMORY", 2**20)
    with pytest.raises(SpecError, match="would need 0 GiB and 0 hours; at most 0 GiB"):
        make_plan(asked("flat"))


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(list(OPTIONS)), nanos=st.integers(10_000, 10**10), count=st.integers(1, 5), rows=st.integers(1, 4),
    budget=st.sampled_from(["split", "shared"]), neighbours=st.sampled_from(["add_remove", "substitute"]),
    known=st.booleans(),
)  # fmt: skip
def test_the_dearest_way_costs_what_is_charged(name, nanos, count, rows, budget, neighbours, known):
    of = domain(2, 3, 4, unit={"rows_per_person": rows}, expected_rows=1000 if known else None)
    epsilon = f"{nanos // 10**9}.{nanos % 10**9:09d}"
    plan = make_plan(asked(name, epsilon, of, {"count": count, "budget": budget}, neighbours=neighbours))
    assert ways_of(plan.draws).dearest == Fraction(nanos, 10**9) == composition_of(plan).total
    least = rows * (2 if neighbours == "substitute" else 1)
    assert all(draw.sensitivity >= least and draw.scale == draw.sensitivity / draw.epsilon for draw in plan.draws)


def test_an_end_that_spends_less_than_others_is_refused():
    outline = outline_of("cascade")
    early = next(d for d in outline.draws if d.kind == "count" and d.layer == 1 and any(
        e.tree == d.tree and e.kind == "count" and e.layer == 2 for e in outline.draws))  # fmt: skip
    lazy = early.model_copy(update={"epsilon": early.epsilon / 2, "scale": early.scale * 2})
    draws = tuple(lazy if draw == early else draw for draw in outline.draws)
    with pytest.raises(StepsError, match=f"end in layer 1 of the tree of {early.tree} spend less"):
        plan_of(asked("cascade"), replace(outline, draws=draws), "-")


def test_cells_too_many_to_list_at_an_epsilon_beyond_all_protection_are_refused():
    wide = domain(*[10] * 12, expected_rows=1000)
    for name in ("flat", "tree", "uh"):
        assert any(draw.threshold for draw in make_plan(asked(name, "400", wide)).draws)
        with pytest.raises(SpecError, match="less than can be sampled. Lower epsilon"):
            make_plan(asked(name, "5000", wide))


@every_method
@pytest.mark.parametrize("epsilon", ["0.000001", "2000", "1000000"])
@pytest.mark.whole
def test_what_is_planned_can_be_carried_out_at_either_end_of_epsilon(name, epsilon):
    counts = counted(SHAPE, 500)
    made = run(asked(name, epsilon), counts, SeededRandomness((name, epsilon)))
    assert made.records[0].num_rows <= 100 * 1000


def test_auto_and_stopping_trees_plan_and_run_at_a_huge_epsilon():
    assert make_plan(release(SHAPE, method_spec(), "2000")).considered
    stopping = method_spec("tree", elect={"layers": 2, "utility": "uneven", "stop": True})
    assert run(release(SHAPE, stopping, "2000"), counted(SHAPE, 500), SeededRandomness(1)).records[0].num_rows == 500


PLACE = {"name": "t", "kind": "categorical", "geography": {"levels": ("r", "t"), "table": (("r0", "t0"), ("r0", "t1"))}}


def of_places(rows: int) -> Release:
    attributes = ({"name": "x", "kind": "integer", "bounds": (0, 2)}, PLACE)
    known = {"name": "d", "population": "p", "expected_rows": rows, "attributes": attributes}
    return release(Domain.model_validate(known), method_spec("places"))


def of_households(rows: int) -> Release:
    return small.release(small.domain(expected_rows=3 * rows).model_copy(update={"expected_rows": rows}))


def test_memory_of_places_is_that_of_a_block_and_of_the_tables():
    few, many = (make_plan(of_places(rows)) for rows in (10**7, 3 * 10**8))
    assert few.memory_bytes == many.memory_bytes < 2**31 and many.seconds > 10 * few.seconds
    small = make_plan(of_places(10**5))
    assert small.memory_bytes < few.memory_bytes  # control: less than a block takes less


def test_memory_of_households_is_that_of_a_block_however_many_there_are():
    """Of a set of one block all members are drawn together; of a larger one no more than some."""
    one, few, many = (make_plan(of_households(rows)).memory_bytes for rows in (10**6, 10**7, 10**8))
    assert few <= many < few + 2**30 and few < one + 2**30 < 4 * 2**30


def test_estimates_grow_with_rows_and_attributes():
    for name in OPTIONS:
        few, many = (make_plan(asked(name, of=domain(2, 3, 4, expected_rows=rows))) for rows in (10**3, 10**9))
        assert many.seconds > few.seconds + 10
        in_blocks = getattr(method_of(many), "blocks_apart", False)  # which hold a block of rows, however many there are
        assert (many.memory_bytes > few.memory_bytes + 10**9) is not in_blocks and many.memory_bytes > few.memory_bytes
