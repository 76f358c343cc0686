"""One text per value, and identities that later versions keep."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import canonical, canonical_1, canonical_flat, digest, ledger_canonical_1, spec_hash
from schemas.plan import Plan, read_plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing import bundle
from tests.tasks.publishing.making import ELECTED, GIVEN, POLL, a_release
from tests.test_frozen import unpacked

# Of RFC 8785: the numbers of its appendix B, and the order of keys of its section 3.2.3.
NUMBERS = {
    -0.0: "0", 5e-324: "5e-324", 1.7976931348623157e308: "1.7976931348623157e+308", 9007199254740992.0: "9007199254740992",
    295147905179352830000.0: "295147905179352830000", 1e21: "1e+21", 1e-7: "1e-7", 0.000001: "0.000001", 1.0: "1",
    333333333.3333333: "333333333.3333333",
}  # fmt: skip
KEYS = {
    "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
    "\U0001f600": "Emoji: Grinning Face", "\x80": "Control", "\u00f6": "Latin Small Letter O With Diaeresis",
}  # fmt: skip


@pytest.mark.parametrize(("number", "text"), NUMBERS.items())
def test_numbers_are_written_as_the_standard_writes_them(number: float, text: str):
    assert canonical(number) == text


def test_keys_are_sorted_as_the_standard_sorts_them():
    assert list(json.loads(canonical(KEYS)).values()) == [
        "Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign", "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [2**53 - 1, 1 - 2**53, 2**53, -(2**53), 2**53 + 1, 2 * 10**18])
def test_no_whole_number_is_rounded(value: int):
    assert int(json.loads(canonical(value))) == value
    assert len({canonical(value), canonical(value + 1), canonical(value - 1)}) == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, "\ud800", b"x", {1, 2}])
def test_what_has_no_text_is_refused(value: Any):
    with pytest.raises(ValueError):
        canonical(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=20,
)


@given(JSON)
@pytest.mark.whole
def test_a_canonical_text_is_accepted_and_every_other_text_of_its_value_refused(value: Any):
    text = canonical(value).encode()
    bundle.canonical_json(text)
    with pytest.raises(ValueError, match="canonical"):
        bundle.canonical_json(b" " + text)


def test_the_old_forms_stay_what_they_were():
    value = {"b": 1.0, "a": "ε", "c": 2 * 10**18}
    assert canonical_1(value) == '{"a":"ε","b":1.0,"c":2000000000000000000}'
    assert ledger_canonical_1(value) == '{"a":"\\u03b5","b":1.0,"c":2000000000000000000}'


@pytest.mark.parametrize("bounds", [(0, 10), (-(2**53), 2**53), (1, 2**53 - 1)])
def test_a_domain_is_read_back_as_it_was(bounds: tuple[int, int]):
    numbers = {"name": "a", "kind": "integer", "bounds": bounds, "bins": 2}
    rational = {"name": "b", "kind": "numeric", "bounds": (Decimal("-1e22"), Decimal("10.0")), "bins": 3}
    days = {"name": "c", "kind": "date", "bounds": ("2000-01-01", "2000-12-31"), "bins": 2}
    rule = {"never": {"a": {"from": bounds[0]}, "b": {"below": Decimal("10.0")}}}
    domain = Domain.model_validate(
        {"name": "d", "population": "p", "attributes": (numbers, rational, days), "rules": (rule,), "expected_rows": 10**12}
    )
    read = bundle.read_domain(bundle.domain_bytes(domain))
    assert read == domain and [a.labels for a in read.attributes] == [a.labels for a in domain.attributes]


# Plans


def a_plan(method: dict[str, Any] = GIVEN) -> Plan:
    return make_plan(a_release(POLL, method), SeededRandomness(1))


def test_a_new_plan_is_of_the_new_format_and_hashed_by_it():
    plan = a_plan()
    document = json.loads(plan.model_dump_json())
    assert plan.format == 2 and read_plan(document) == plan and read_plan(document).hash == plan.hash
    for estimate in ("seconds", "memory_bytes"):
        document.pop(estimate)
    assert plan.hash == digest(document)


def test_a_plan_with_more_cells_than_a_float_counts_is_published_and_read_exactly():
    plan = a_plan().model_copy(update={"cells": 2 * 10**18 + 1})
    content = bundle.plan_bytes(plan)
    assert b'"cells":"2000000000000000001"' in content
    assert bundle.read_plan(content) == plan and bundle.read_plan(content).hash == plan.hash


@pytest.mark.parametrize("name", ["tree-elected", "cascade-split", "sampled-wide"])
def test_an_old_plan_keeps_its_hash_whatever_is_added_to_plans(name: str, tmp_path: Path):
    folder = unpacked(name, tmp_path, "bundles")
    document, manifest = (json.loads((folder / f"{which}.json").read_bytes()) for which in ("plan", "manifest"))
    plan = read_plan(document)
    assert plan.format == 1 and plan.document == document and plan.hash == manifest["plan_hash"]
    assert plan.model_copy(update={"unit": "household"}).hash != plan.hash
    assert read_plan({**document, "format": 2}).hash != plan.hash


# Specs

SPEC_HASHES_1 = [
    "d506df066530bd542eb58b737813d03400b3e9e554a3d860040c86c8cd86a9aa",
    "83214ad15f4915f73d2f07c6aae333a7f25f66dd7f16703e25240c5017addd2a",
]


def changed(release: Release, **unit: Any) -> Release:
    domain = Domain.model_validate(release.domain.model_dump() | {"attributes": release.domain.attributes, "unit": unit})
    return release.model_copy(update={"domain": domain})


def test_the_hash_of_a_spec_in_the_old_format_has_the_keys_of_then():
    """Computed by version 0.1.0 for these very specs."""
    hashes = [spec_hash(a_release(POLL, method), 1) for method in (GIVEN, ELECTED)]
    assert hashes == SPEC_HASHES_1


@pytest.mark.parametrize("format", [1, 2])
def test_a_spec_has_another_hash_in_every_format_as_soon_as_it_says_something_else(format: int):
    release = a_release(POLL, GIVEN)
    others = [
        a_release(POLL, GIVEN, epsilon="2"), a_release(POLL, ELECTED), a_release(POLL, GIVEN, formats=("parquet",)),
        changed(release, rows_per_person=2), changed(release, who="household"),
    ]  # fmt: skip
    hashes = {spec_hash(each, format) for each in (release, *others)}
    assert len(hashes) == len(others) + 1
    assert spec_hash(release, 3 - format) not in hashes
    assert spec_hash(changed(release, who="person"), format) == spec_hash(release, format)


@given(
    st.dictionaries(st.text(st.characters(codec="ascii")), st.none() | st.integers() | st.text(st.characters(codec="utf-8")))
)
def test_the_quick_text_of_one_level_is_the_canonical_one(value: dict[str, str | int | None]):
    assert canonical_flat(value) == canonical(value)
