from __future__ import annotations

from pathlib import Path

import pytest

from tasks.specs import load_release
from tasks.stages.foresee import needs
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tests.flows.small import Small, make_small

UNIT = 10**9


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return make_small(tmp_path, rows=20)


@pytest.fixture
def home(small: Small) -> Home:
    return Home(small.home)


@pytest.fixture
def ledger(home: Home) -> Ledger:
    return open_ledger(home)


def due(small: Small, *names: str, epsilon: str = "0.5"):
    return [load_release(small.write(name=name, epsilon=epsilon)) for name in names]


def test_what_is_due_is_added_up_against_what_is_left(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    (enough,) = needs(home, due(small, "a", "b"))
    assert (enough.needed, enough.left, enough.is_short) == (UNIT, UNIT, False)
    (short,) = needs(home, due(small, "a", "b", "c"))
    assert short.is_short and short.releases == ("a", "b", "c")
    assert 'population "small-people": ε = 1.5 is scheduled (a, b, c), 1 is left' in short.text


def test_a_name_is_paid_once_however_often_it_is_due(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    assert needs(home, due(small, "a", "a", "a"))[0].needed == UNIT // 2


def test_what_was_charged_asks_nothing(small: Small):
    from tests.flows.small import drawn

    home, asked, *_ = drawn(small)
    assert needs(home, [asked]) == []


def test_without_a_grant_nothing_is_left(small: Small, home: Home):
    (need,) = needs(home, due(small, "a"))
    assert (need.needed, need.left, need.is_short) == (UNIT // 2, 0, True)


def test_a_budget_in_rho_is_asked_in_rho(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test", measure="zcdp", delta="1e-9")
    (need,) = needs(home, due(small, "a", epsilon="1"))
    assert need.needed == UNIT // 2 and "ρ = 0.5 is scheduled" in need.text
