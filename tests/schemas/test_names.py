"""What a name is: the same in a spec, in the ledger and for a sealed artifact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.spec.unit import plain_name
from tasks.stores.entries import must_be_name

REFUSED = ["", "-a", "_a", "A", "a b", "a/b", "../a", "a" * 65, "ä", "a\n", "é", "１"]


def accepted(name: str) -> tuple[bool, bool]:
    def by(check) -> bool:
        try:
            return check() == name
        except (ValueError, SpecError):
            return False

    return by(lambda: plain_name(name)), by(lambda: must_be_name("population", name))


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "2026q4", "a" * 64])
def test_a_name_of_a_spec_is_one_of_the_ledger(name: str):
    assert accepted(name) == (True, True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_name_in_a_spec_is_none_in_the_ledger(name: str):
    assert accepted(name) == (False, False)


@given(st.text("aA0-_. \n", max_size=66))
def test_spec_and_ledger_never_differ_about_a_name(name: str):
    assert len(set(accepted(name))) == 1
