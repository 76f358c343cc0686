"""Many processes at once, and processes killed anywhere: never an ε too much, never an acknowledged charge lost."""

from __future__ import annotations

import json

import pytest

from tasks.stores.ledger import open_ledger
from tests.tasks.stores import children

pytestmark = pytest.mark.slow
CAP, EACH = 10**9, 5 * 10**7  # room for exactly twenty


def _must_spend_exactly_the_cap(outcomes: list[str]) -> None:
    assert outcomes.count("charged") == CAP // EACH
    assert outcomes.count("BudgetRefused") == len(outcomes) - CAP // EACH


def test_64_processes_racing_for_the_last_epsilon_spend_exactly_the_cap(any_home):
    ledger = open_ledger(any_home)
    ledger.grant(children.POPULATION, CAP, "race")
    _must_spend_exactly_the_cap(children.run("race", any_home, processes=64, nanos=EACH))
    account = ledger.account(children.POPULATION)
    assert (account.charged, account.balance) == (CAP, 0)
    assert ledger.verify(ledger.anchor) == []


def test_a_control_that_looks_first_and_pays_later_overspends_and_is_caught(home):
    open_ledger(home).grant(children.POPULATION, CAP, "race")
    outcomes = children.run("careless_race", home, processes=64, nanos=EACH)
    assert outcomes.count("charged") * EACH > CAP
    with pytest.raises(AssertionError):
        _must_spend_exactly_the_cap(outcomes)


def test_many_processes_asking_for_one_release_pay_once(any_home):
    ledger = open_ledger(any_home)
    ledger.grant(children.POPULATION, CAP, "race")
    outcomes = children.run("race_for_one", any_home, processes=16, nanos=EACH)
    assert sorted(outcomes) == [False] * 15 + [True]
    assert ledger.account(children.POPULATION).charged == EACH


def test_a_first_use_by_many_processes_makes_one_ledger(any_home):
    outcomes = children.run("race", any_home, processes=16, nanos=EACH)
    assert outcomes == ["BudgetRefused"] * 16
    assert open_ledger(any_home).entries() == []


def test_an_entry_that_is_written_while_others_open_and_read_the_ledger_is_not_lost(home):
    ledger = open_ledger(home)
    ledger.grant(children.POPULATION, CAP, "race")
    assert children.run("write_while_read", home, opened="ledger") == [2, 2]
    assert ledger.verify(ledger.anchor) == []


def test_a_control_that_gives_up_the_locks_of_the_ledger_loses_the_entry_and_is_caught(home):
    ledger = open_ledger(home)
    ledger.grant(children.POPULATION, CAP, "race")
    assert children.run("write_while_read", home, opened="file") == [2, 1]
    assert "this ledger ends at entry 1: it is an old copy" in ledger.verify(ledger.anchor)[0]


def test_kill_9_anywhere_overspends_nothing_and_loses_no_acknowledged_charge(any_home):
    ledger = open_ledger(any_home)
    room = 120
    ledger.grant(children.POPULATION, room * EACH, "kills")
    acknowledged = children.run("killed_while_charging", any_home, kills=60, nanos=EACH, seed=7)
    charged = [entry.release for entry in ledger.entries() if entry.kind == "charge"]
    assert len(acknowledged) > 20, "the children hardly ran; the test shows nothing"
    assert set(acknowledged) <= set(charged)
    assert len(charged) == len(set(charged)) <= room
    account = ledger.account(children.POPULATION)
    assert account.charged == len(charged) * EACH <= account.granted
    assert ledger.verify(ledger.anchor) == []
    ledger.must_be_current(ledger.anchor)


@pytest.mark.parametrize("side", ["public", "confidential"])
def test_a_writer_killed_at_any_step_leaves_the_same_draw_or_none(home, side):
    lives = children.run("killed_while_writing", home, stage="noisy", side=side)
    assert len(lives) > 6 and [life["survived"] for life in lives] == [False] * (len(lives) - 1) + [True]
    for life in lives:
        seen_before = life["visible"]
        assert seen_before in ([], [[1]])  # whole or absent
        assert life["value"] == life["again"] == ([1] if seen_before else [2])  # what was linked is never drawn again
        assert (life["files"], life["temporaries"], life["charges"], life["problems"]) == (1, 0, 1, [])
    assert {json.dumps(life["value"]) for life in lives} == {"[1]", "[2]"}


@pytest.mark.parametrize("side", ["public", "confidential"])
def test_concurrent_writers_of_a_draw_all_read_the_same_one(home, ask, side):
    ledger = open_ledger(home)
    ledger.grant("youth", CAP, "pilot")
    ledger.charge(ask("voter"))
    said = children.run("write_at_once", home, processes=8, stage="noisy", side=side)
    assert len({json.dumps(answer) for answer in said}) == 1
    assert len(list(home.path.rglob("*.parquet"))) == 1
    assert len(list(home.path.rglob(".writing-*"))) == 0
    assert sum(entry.kind == "seal" for entry in ledger.entries()) == 1


def test_processes_that_need_a_key_at_once_get_the_same(home):
    said = children.run("make_keys_at_once", home, processes=16)
    assert len({json.dumps(keys) for keys in said}) == 1


def test_a_full_disk_under_the_ledger_charges_nothing_and_is_worth_a_retry(home, ask):
    ledger = open_ledger(home)
    ledger.grant("youth", CAP, "pilot")
    assert children.run("charge_on_full_disk", home, limit=1024) == ["InfrastructureFault"]
    assert ledger.account("youth").charged == 0
    assert ledger.verify(ledger.anchor) == []
    assert ledger.charge(ask()).new
