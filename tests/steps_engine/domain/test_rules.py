"""Comparisons as structural zeros: what they allow is what a loop over all pairs allows, missing values beside anything."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from schemas import tables
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.encoding import decode
from steps_engine.domain.rules import breaking
from steps_engine.noise import SeededRandomness
from tasks.verify.records import record_problems


def domain(*rules: str, missing: str = "category", **said) -> Domain:
    ages = {"kind": "integer", "bounds": (0, 29), "bins": 3, **said}
    attributes = tuple({"name": name, **ages, "missing": missing if name == "a" else "forbid"} for name in "abc")
    flag = {"name": "flag", "kind": "categorical", "categories": ("no", "yes")}
    asked = {
        "name": "d",
        "population": "p",
        "attributes": (*attributes, flag),
        "rules": tuple({"always": rule} for rule in rules),
    }
    return Domain.model_validate(asked)


HOLDS = {"<=": lambda a, b: a <= b, "==": lambda a, b: a == b}


def allowed_by_hand(of: Domain, rules: tuple[str, ...]) -> set[tuple[int, ...]]:
    found = set()
    for cell in itertools.product(*(range(size) for size in of.sizes)):
        known = {name: code for name, code, each in zip(of.names, cell, of.attributes, strict=True) if code < each.present}
        parts = [rule.split() for rule in rules]
        if all(HOLDS[sign](known[a], known[b]) for a, sign, b in parts if a in known and b in known):
            found.add(cell)
    return found


@pytest.mark.parametrize("rules", [("a <= b",), ("b <= a",), ("a == c",), ("a <= b", "b <= c"), ("c <= a", "a == b")], ids=str)
def test_allowed_cells_are_those_of_a_loop_over_all(rules):
    of = domain(*rules)
    space, expected = Space(of), allowed_by_hand(of, rules)
    assert set(map(tuple, space.codes(space.allowed()).tolist())) == expected and space.count() == len(expected)
    every = np.array(list(itertools.product(*(range(size) for size in of.sizes))))
    broken = np.any([breaking(zero, every) for zero in of.zeros], axis=0)
    assert set(map(tuple, every[~broken].tolist())) == expected


@pytest.mark.parametrize(
    "rules", [("a <= b",), ("a == b",), ("c <= b", "b <= a"), ("b <= c", "a <= b"), ("a == b", "b <= c")], ids=str
)
@pytest.mark.parametrize("said", [{}, {"above": {"shape": "exponential", "mean": 40}}], ids=["bins", "an open end"])
def test_values_of_one_bin_keep_what_their_bins_cannot_tell(rules, said):
    of = domain(*rules, **said)
    cells = Space(of).codes(Space(of).allowed())
    records = decode(np.repeat(cells, 40, axis=0), of, SeededRandomness(5)).to_pandas()
    for a, sign, b in (rule.split() for rule in rules):
        both = records.dropna(subset=[a, b])
        assert HOLDS[sign](both[a], both[b]).all()
        assert (both[a] == both[b]).mean() < 1 or sign == "=="


def test_without_the_rule_values_of_one_bin_would_break_it():
    of = domain()
    records = decode(np.zeros((400, 4), dtype=int), of, SeededRandomness(5)).to_pandas()
    assert (records["a"] > records["b"]).any() and (records["a"] != records["b"]).any()


@pytest.mark.parametrize("rule", ["a <= b", "a == b"])
def test_the_check_of_published_rows_finds_what_breaks_a_comparison_within_a_bin(rule):
    of = domain(rule)
    rows = pa.table({"a": [None, 3, 5], "b": [0, 3, 5], "c": [0, 0, 0], "flag": ["no"] * 3}).cast(tables.records(of))
    assert list(record_problems(of, rows, None)) == []
    rows = rows.set_column(0, rows.schema.field(0), pa.array([None, 3, 6]))
    assert list(record_problems(of, rows, None)) == ["has a row whose a and b break a rule"]


def test_an_ordered_pair_is_a_pair_of_draws_in_their_order():
    """Given a ≤ b within a bin of ten numbers, E[a] = E[min] of two draws."""
    of = domain("a <= b", missing="forbid")
    records = decode(np.zeros((40_000, 4), dtype=int), of, SeededRandomness(5)).to_pandas()
    expected = sum(min(i, j) for i in range(10) for j in range(10)) / 100
    assert records["a"].mean() == pytest.approx(expected, abs=0.06)
    assert records["b"].mean() == pytest.approx(9 - expected, abs=0.06)
