"""Comparisons within a household hold value by value, though nothing finer than bins was counted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.domain import Domain
from steps_engine.answers.sample import Sampling
from steps_engine.domain import beside
from steps_engine.domain.encoding import decode
from steps_engine.domain.linked_records import link_problems, member_table
from steps_engine.domain.rules import put_in_order
from steps_engine.domain.values import values_between, values_of_codes
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.households import synthesize
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tasks.verify.records import record_problems
from tests.steps_engine.methods.households.small import counted, domain, release, some_homes, tables

CHILD = {"relation": "child"}
NAMED = tables()["person"]["attributes"][:2]  # relation and sex
MISSING = 3  # the code behind three bins


def ages(*names: str, **said: Any) -> tuple[dict[str, Any], ...]:
    """Attributes of three bins of twenty years, which may be missing."""
    kept = {"kind": "integer", "bounds": (0, 59), "bins": 3, "missing": "category", **said}
    return (*NAMED, *({"name": name, **kept} for name in names))


def of(always: str, when: dict[str, Any] | None = CHILD, **said: Any) -> Domain:
    rule = {"always": always} | ({"when": when} if when else {})
    return domain(attributes=ages("age", **said), rules=(rule,))


def lawful(always: str, number: int = 300) -> list:
    """Households by bins: of children as the rule says, of some persons nothing is known."""
    kept, unknown = [], np.random.default_rng(1)
    for tenure, sex, age, others in some_homes(number):
        head = MISSING if unknown.random() < 0.1 else max(age, 1)
        allowed = {"<": head - 1, "<=": head, "==": head}[always.split()[1]]
        members = []
        for kind, s, a in others:
            known = a if kind or head == MISSING else allowed if "==" in always else min(a, allowed)
            members.append((kind, s, MISSING if unknown.random() < 0.1 else known))
        kept.append((tenure, sex, head, members))
    return kept


def made(flat: Domain, homes: list) -> Synthetic:
    return run(release(flat, epsilon=20), counted(flat, homes), SeededRandomness(3))


def side_by_side(found: Synthetic) -> tuple[np.ndarray, np.ndarray]:
    """Ages of children and of their reference persons, NaN where missing."""
    persons, rows = (found.tables[f"{name}-1"].to_pandas() for name in ("person", "synthetic"))
    children = persons[persons["relation"] == "child"]
    return children["age"].to_numpy(float), rows["reference_age"].to_numpy(float)[children["household"] - 1]


def problems(found: Synthetic) -> list[str]:
    """What a verifier finds in the members' rows."""
    flat = found.domain
    rows, persons = found.tables["synthetic-1"], found.tables["person-1"]
    assert not list(link_problems(flat, rows, persons))
    return list(record_problems(flat.counted, member_table(flat, rows, persons), None, flat.member_conditionals))


HOLDS = {"<": np.less, "<=": np.less_equal, "==": np.equal}


@pytest.mark.whole
@pytest.mark.parametrize("sign", ["<", "<=", "=="])
def test_children_stand_beside_their_parents_as_the_rule_says(sign):
    flat = of(f"age {sign} reference_age")
    found = made(flat, lawful(f"age {sign} reference_age"))
    child, parent = side_by_side(found)
    there = ~np.isnan(child) & ~np.isnan(parent)
    assert there.sum() > 100 and (~there).sum() > 10  # beside a missing value everything is allowed
    assert HOLDS[sign](child[there], parent[there]).all() and not problems(found)
    assert bool(flat.member_conditionals) == (sign != "<")  # a lower bin has lower values
    if sign == "<=":
        same = there & (child // 20 == parent // 20)
        assert same.sum() > 50 and (child[same] < parent[same]).mean() > 0.5  # ordered, not put equal


@pytest.mark.whole
def test_without_putting_in_order_children_are_older_and_the_check_finds_it(monkeypatch):
    monkeypatch.setattr(synthesize, "in_order", lambda domain, rows, codes, home, drawn, own, randomness: own)
    found = made(of("age <= reference_age"), lawful("age <= reference_age"))
    child, parent = side_by_side(found)
    assert (child > parent).sum() > 20
    assert problems(found) == ["has a row whose age and reference_age break a rule"]


@pytest.mark.whole
def test_rows_follow_from_what_was_drawn_and_further_households_keep_the_rule():
    flat = of("age <= reference_age")
    found = made(flat, lawful("age <= reference_age"))
    drawn = Drawn(flat, found.plan, found.tables["tree"], found.tables["noisy-counts"])
    consistent = found.tables["consistent-counts"]
    [again] = drawn.linked(found.method, consistent, drawn.blocks(found.method, consistent, 1), 1)
    assert again["person"].equals(found.tables["person-1"])
    [more] = Sampling(flat, found.plan, found.tables, {}, 5).linked(1, 400)
    members = member_table(flat, more["sample"], more["person"])
    assert len(members) > 100 and not list(record_problems(flat.counted, members, None, flat.member_conditionals))


def test_what_holds_for_some_holds_for_reference_persons_among_them():
    """A comparison of a person's own attributes: of members in their rows, of reference persons in household rows."""
    rule = {"always": "began <= age", "when": {"sex": "f"}}
    flat = domain(attributes=ages("began", "age"), rules=(rule,))
    assert len(flat.conditionals) == len(flat.member_conditionals) == 1
    codes = np.zeros((600, len(flat.sizes)), dtype=np.int64)
    codes[:, flat.index("n_person")], codes[:, flat.index("n_child")] = 1, 1
    codes[300:, flat.index("reference_sex")] = 1
    rows = decode(codes, flat, SeededRandomness(1)).to_pandas()
    wrong = rows["reference_began"] > rows["reference_age"]
    assert not wrong[:300].any() and wrong[300:].sum() > 50  # women, whom it is of, and men
    assert not list(record_problems(flat, decode(codes, flat, SeededRandomness(1)), None, flat.conditionals))
    turned = rows.assign(reference_sex="f")
    lie = pa.Table.from_pandas(turned, preserve_index=False).cast(decode(codes, flat, SeededRandomness(1)).schema)
    said = ["has a row whose reference_began and reference_age break a rule"]
    assert list(record_problems(flat, lie, None, flat.conditionals)) == said


def members_in(flat: Domain, rows: int, bins: dict[str, int]) -> dict[str, np.ndarray]:
    """Values of one member in each of so many households, all in the first bin but where another is given."""
    codes = np.zeros((rows, len(flat.sizes)), dtype=np.int64)
    codes[:, flat.index("n_person")], codes[:, flat.index("n_child")] = 1, 1
    drawn = np.zeros((rows, len(flat.own.sizes)), dtype=np.int64)
    for name, code in bins.items():
        drawn[:, flat.own.index(name)] = code
    source, home = SeededRandomness(2), np.arange(rows)
    household = decode(codes, flat, source)
    own = beside.in_order(flat, household, codes, home, drawn, decode(drawn, flat.own, source), source)
    both = household.to_pandas().join(own.to_pandas())
    return {name: both[name].to_numpy() for name in both}


def test_several_rules_hold_together():
    """x ≤ y among themselves; x beside the household from below, y from above: bounds of one are bounds of the other."""
    rules = (
        {"always": "x <= y"},
        {"always": "reference_x <= x", "when": CHILD},
        {"always": "y <= reference_y", "when": CHILD},
    )
    found = members_in(domain(attributes=ages("x", "y"), rules=rules), 2000, {})
    assert (found["x"] <= found["y"]).all() and (found["y"] <= found["reference_y"]).all()
    assert (found["reference_x"] <= found["x"]).all()
    assert (found["x"] < found["y"]).mean() > 0.5


def test_what_a_member_needs_of_its_household_is_put_there():
    """Between a and b there is nobody unless a ≤ b: no rule of households says so, and their rows keep it."""
    rules = ({"always": "reference_a <= x", "when": CHILD}, {"always": "x <= reference_b", "when": CHILD})
    flat = domain(attributes=ages("a", "b", "x"), rules=rules)
    found = members_in(flat, 2000, {})
    assert (found["reference_a"] <= found["x"]).all() and (found["x"] <= found["reference_b"]).all()
    alone = np.zeros((400, len(flat.sizes)), dtype=np.int64)
    rows = decode(alone, flat, SeededRandomness(1)).to_pandas()
    assert (rows["reference_a"] > rows["reference_b"]).any()  # where nobody else lives, nothing is asked


def test_rules_that_run_in_a_circle_make_values_equal():
    rules = ({"always": "x <= y", "when": CHILD}, {"always": "y <= x", "when": {"relation": ["child", "other"]}})
    found = members_in(domain(attributes=ages("x", "y"), rules=rules), 200, {})
    assert (found["x"] == found["y"]).all() and len(set(found["x"])) > 5


def test_whom_a_rule_is_not_of_is_left_alone():
    flat = of("age <= reference_age")
    untouched = members_in(flat, 2000, {"relation": 1})
    assert (untouched["age"] > untouched["reference_age"]).mean() > 0.4
    assert (members_in(flat, 2000, {"age": MISSING})["age"] != members_in(flat, 2000, {"age": MISSING})["age"]).all()  # NaN


def test_a_member_is_a_draw_of_its_bin_given_its_household():
    """Of twenty values as likely as each other those up to the parent's are so: E[child] is half the parent's."""
    found = members_in(of("age <= reference_age", missing="forbid"), 40_000, {})
    for parent in (0, 5, 19):
        here = found["age"][found["reference_age"] == parent]
        assert here.mean() == pytest.approx(parent / 2, abs=0.35) and set(here) == set(range(parent + 1))


SHAPES = [
    {"kind": "integer", "bounds": (0, 59), "bins": 3},
    {"kind": "integer", "bounds": (0, 59), "bins": 3, "within": "triangular"},
    {"kind": "numeric", "bounds": (Decimal(1), Decimal(61)), "bins": 3, "within": "geometric"},
    {"kind": "integer", "bounds": (0, 59), "bins": 3, "multiples_of": 5},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.get("within", shape.get("multiples_of", "even"))))
def test_values_between_are_those_that_rejection_would_leave(shape):
    attribute = domain(attributes=(*NAMED, {"name": "v", **shape})).tables.person.attribute("v")
    codes, shares = np.ones(20_000, dtype=np.int64), (np.arange(20_000) + 0.5) / 20_000
    every = values_of_codes(codes, attribute, shares)
    low, high = np.quantile(every, 0.2, method="lower"), np.quantile(every, 0.7, method="lower")
    kept = every[(every >= low) & (every <= high)]
    drawn = values_between(codes, attribute, np.full(len(codes), low), np.full(len(codes), high), shares)
    assert np.quantile(drawn, [0, 0.25, 0.5, 0.75, 1]) == pytest.approx(np.quantile(kept, [0, 0.25, 0.5, 0.75, 1]), rel=1e-3)


def test_no_order_leaves_values_as_they_are():
    numbers = {0: np.array([2.0, 1.0])}
    put_in_order([], [], numbers)
    assert numbers[0].tolist() == [2.0, 1.0]
