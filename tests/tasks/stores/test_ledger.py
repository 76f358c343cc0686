"""What the ledger promises to whoever grants, charges and decides."""

from __future__ import annotations

import dataclasses
import sqlite3
import stat
import threading
from contextlib import closing

import psycopg
import pytest
import sqlalchemy as sql

from schemas.budget import LARGEST
from schemas.errors import BudgetRefused, EvidenceBroken, InfrastructureFault, SpecError, StepsError
from tasks.stores.files import alone
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger

ONE = 10**9


def _seal(ledger, release, stage="noisy"):
    return ledger.seal(release, stage, "public", "0" * 32, "f" * 64, 10)


def test_a_charge_lowers_the_balance_by_exactly_what_was_asked(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    charge = ledger.charge(ask(nanos=300_000_001))
    assert (charge.new, charge.attempt) == (True, 1)
    account = ledger.account("youth")
    assert (account.granted, account.charged, account.balance) == (ONE, 300_000_001, 699_999_999)
    assert ledger.accounts() == [account]


def test_a_retry_never_pays_twice(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    first, again = ledger.charge(ask()), ledger.charge(ask(context={"flow_run": "another"}))
    assert (first.new, again.new) == (True, False)
    assert again.entry == first.entry
    assert ledger.account("youth").charged == 100_000_000


def test_a_replay_is_found_even_when_nothing_is_left(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask(nanos=ONE))
    assert not ledger.charge(ask(nanos=ONE)).new


def test_a_charge_beyond_the_balance_is_refused_with_numbers_and_advice(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask("voter-1", nanos=700_000_000))
    with pytest.raises(BudgetRefused) as refused:
        ledger.charge(ask("voter-2", nanos=500_000_000))
    for part in ('"voter-2" asks ε=0.5', "0.3 of 1 is left", '"youth"', "steps budget grant youth EPSILON --why"):
        assert part in str(refused.value)
    assert ledger.account("youth").balance == 300_000_000
    ledger.charge(ask("voter-3", nanos=300_000_000))


def test_without_a_grant_nothing_is_charged(ledger, ask):
    with pytest.raises(BudgetRefused, match="steps budget grant youth EPSILON"):
        ledger.charge(ask())
    with pytest.raises(BudgetRefused, match="no grant"):
        ledger.account("youth")
    assert ledger.entries() == []


@pytest.mark.parametrize("nanos", [0, -1, True, 1.0, "1", LARGEST + 1, None])
def test_an_amount_that_is_no_epsilon_is_refused(ledger, ask, nanos):
    ledger.grant("youth", ONE, "pilot")
    with pytest.raises(SpecError, match="positive whole number"):
        ledger.charge(ask(nanos=nanos))
    with pytest.raises(SpecError, match="positive whole number"):
        ledger.grant("youth", nanos, "more")
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("name", ["", "../x", "/etc", "Voter", "a" * 65, "a b", "a\n", "-a", "é", None])
def test_a_name_that_could_be_a_path_is_refused(ledger, ask, name):
    for write in (
        lambda: ledger.grant(name, ONE, "pilot"),
        lambda: ledger.charge(ask(name)),
        lambda: _seal(ledger, name, "cells"),
    ):
        with pytest.raises(SpecError, match="is not a name"):
            write()


def test_the_first_grant_fixes_neighbours_and_unit(ledger, ask):
    ledger.grant("youth", ONE, "pilot", neighbours="substitute", unit="household")
    with pytest.raises(SpecError, match="cannot change"):
        ledger.grant("youth", ONE, "more", neighbours="add_remove", unit="household")
    with pytest.raises(SpecError, match="cannot change"):
        ledger.charge(ask(neighbours="substitute", unit="person"))
    assert ledger.charge(ask(neighbours="substitute", unit="household")).new


def test_a_grant_needs_a_reason_and_a_known_relation_and_stays_below_the_largest(ledger):
    with pytest.raises(SpecError, match="reason"):
        ledger.grant("youth", ONE, "  ")
    with pytest.raises(SpecError, match="neighbours"):
        ledger.grant("youth", ONE, "pilot", neighbours="friends")
    ledger.grant("youth", LARGEST, "pilot")
    with pytest.raises(SpecError, match="more than"):
        ledger.grant("youth", 1, "pilot")


def test_a_grant_with_a_key_is_made_once_and_its_key_cannot_mean_something_else(ledger):
    first = ledger.grant("youth", ONE, "pilot", key="2026")
    assert ledger.grant("youth", ONE, "pilot", key="2026") == first
    with pytest.raises(EvidenceBroken, match="says something else"):
        ledger.grant("youth", 2 * ONE, "pilot", key="2026")
    ledger.grant("youth", ONE, "pilot")
    ledger.grant("youth", ONE, "pilot")
    assert ledger.account("youth").granted == 3 * ONE


@pytest.mark.parametrize(
    "changes, differs",
    [
        ({"spec_hash": "other"}, "another spec"),
        ({"nanos": 1}, "another spec"),
        ({"plan_hash": "other"}, "another spec"),
        ({"population": "old"}, "another spec"),
        ({"fingerprint": "other-fingerprint"}, "other data"),
        ({"fingerprint": "other-fingerprint", "spec_hash": "other"}, "another spec and other data"),
    ],
)
def test_a_name_belongs_to_one_spec_and_one_data_set(ledger, ask, changes, differs):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    with pytest.raises(SpecError) as refused:
        ledger.charge(ask(**changes))
    assert f"with {differs}." in str(refused.value)
    assert "fingerprint" not in str(refused.value)
    assert ledger.account("youth").charged == 100_000_000


def test_a_burnt_charge_stays_spent_and_a_new_one_is_needed(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask(nanos=600_000_000))
    burn = ledger.burn("voter-1", "lost")
    assert ledger.burn("voter-1", "told again") == burn
    assert ledger.state("voter-1") == "burnt"
    with pytest.raises(BudgetRefused, match="0.4 of 1 is left"):
        ledger.charge(ask(nanos=600_000_000))
    with pytest.raises(SpecError, match="other data"):
        ledger.charge(ask(nanos=600_000_000, fingerprint="other"))
    ledger.grant("youth", ONE, "again")
    second = ledger.charge(ask(nanos=600_000_000))
    assert (second.new, second.attempt, second.entry.key) == (True, 2, "charge:voter-1#2")
    assert not ledger.charge(ask(nanos=600_000_000)).new
    [state] = ledger.releases()
    assert (state.state, state.amount, state.charged, state.attempt) == ("charged", 600_000_000, 1_200_000_000, 2)


def test_a_release_goes_through_its_states_in_order(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    for write, state in [
        (lambda: ledger.charge(ask(context={"approval": "required"})), "charged"),
        (lambda: _seal(ledger, "voter-1", "cells"), "charged"),
        (lambda: _seal(ledger, "voter-1"), "waiting"),
        (lambda: ledger.decide("voter-1", "approve", "ada", "fine"), "approved"),
        (lambda: ledger.publish("voter-1", "manifest"), "published"),
        (lambda: ledger.evaluated("voter-1"), "evaluated"),
    ]:
        write()
        before = ledger.head()
        write()  # saying it again changes nothing
        assert (ledger.state("voter-1"), ledger.head()) == (state, before)
    [release] = ledger.releases()
    assert (release.approver, release.hashes["manifest_hash"]) == ("ada", "manifest")
    assert release.hashes["noisy"] == "f" * 64


def test_without_approval_required_a_drawn_release_may_be_published(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    _seal(ledger, "voter-1")
    assert ledger.state("voter-1") == "drawn"
    ledger.publish("voter-1", "manifest")
    with pytest.raises(EvidenceBroken, match="another manifest"):
        ledger.publish("voter-1", "other")


@pytest.mark.parametrize("end", ["reject", "abandon"])
def test_a_refused_release_stays_charged_and_is_over(ledger, ask, end):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    _seal(ledger, "voter-1")
    if end == "reject":
        ledger.decide("voter-1", "reject", "ada", "no")
        assert ledger.decision("voter-1").details["who"] == "ada"
    else:
        ledger.abandon("voter-1", "no")
    for write in (
        lambda: ledger.publish("voter-1", "manifest"),
        lambda: ledger.decide("voter-1", "approve", "ada", "yes"),
        lambda: _seal(ledger, "voter-1", "synthetic-1"),
        lambda: ledger.burn("voter-1", "lost"),
        lambda: ledger.evaluated("voter-1"),
        lambda: ledger.charge(ask()),
    ):
        with pytest.raises(SpecError):
            write()
    assert ledger.account("youth").charged == 100_000_000


def test_nothing_waiting_for_approval_is_published_and_nothing_published_is_burnt(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask("waits", context={"approval": "required"}))
    _seal(ledger, "waits")
    with pytest.raises(SpecError, match="is waiting"):
        ledger.publish("waits", "manifest")
    ledger.charge(ask("done"))
    _seal(ledger, "done")
    ledger.publish("done", "manifest")
    for undo in (ledger.burn, ledger.abandon):
        with pytest.raises(SpecError, match="is published"):
            undo("done", "why")


def test_no_draw_is_sealed_without_a_charge(ledger):
    with pytest.raises(SpecError, match="has not been charged"):
        _seal(ledger, "voter-1")
    with pytest.raises(SpecError, match="has not been charged"):
        ledger.abandon("voter-1", "never began")
    assert ledger.entries() == []


def test_a_stage_is_sealed_once(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    assert _seal(ledger, "voter-1") == _seal(ledger, "voter-1") == ledger.sealed("voter-1", "noisy")
    with pytest.raises(EvidenceBroken, match="says something else"):
        ledger.seal("voter-1", "noisy", "public", "1" * 32, "e" * 64, 10)


def test_there_is_no_verb_that_gives_budget_back():
    from tasks.stores.ledger import Ledger

    verbs = {name for name in vars(Ledger) if not name.startswith("_")}
    readers = {"entries", "head", "account", "accounts", "releases", "state", "sealed", "decision", "verify", "me", "people"}
    writers = {"grant", "charge", "seal", "decide", "burn", "abandon", "publish", "evaluated"}
    assert verbs - {"must_be_current", "must_afford", *Ledger.__dataclass_fields__} == readers | writers


def test_the_database_refuses_update_and_delete(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    before = ledger.entries()
    statements = ["UPDATE entries SET amount = 1 WHERE seq = 2", "DELETE FROM entries WHERE seq = 2"]
    if any_home.ledger_url:
        statements.append("TRUNCATE entries")
    else:
        columns = ", ".join(field.name for field in dataclasses.fields(before[0]))
        same = columns.replace("amount", "1 AS amount")
        statements.append(f"INSERT OR REPLACE INTO entries ({columns}) SELECT {same} FROM entries WHERE seq = 2")
    for statement in statements:
        with ledger.database.engine.connect() as connection, pytest.raises(sql.exc.IntegrityError, match="append-only"):
            connection.exec_driver_sql(statement)
    assert ledger.entries() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"charged_after": ONE + 1},
        {"amount": -1},
        {"amount": 0},
        {"kind": "refund"},
        {"kind": "seal"},
        {"charged_after": -1},
        {"key": "charge:voter-1#1"},
    ],
)
def test_the_database_refuses_an_impossible_entry_even_by_raw_sql(any_home, ask, changes):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    last = ledger.charge(ask()).entry
    new = {"seq": 3, "key": "charge:raw#1", "previous": last.hash, "hash": "0" * 64}
    insert = sql.insert(sql.table("entries", *(sql.column(name) for name in dataclasses.asdict(last))))
    with ledger.database.engine.connect() as connection:
        with pytest.raises(sql.exc.IntegrityError):
            connection.execute(insert.values(dataclasses.asdict(last) | new | changes))
    with ledger.database.engine.connect() as connection:  # the control: without the change it is accepted
        connection.execute(insert.values(dataclasses.asdict(last) | new))


def test_a_ledger_of_a_newer_version_is_left_untouched(home, ask):
    open_ledger(home).grant("youth", ONE, "pilot")
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("UPDATE meta SET schema_version = 99")
    before = home.ledger_file.read_bytes()
    with pytest.raises(StepsError, match="newer version.*upgrade"):
        open_ledger(home)
    assert home.ledger_file.read_bytes() == before


def test_a_file_that_is_no_ledger_is_refused_and_kept(home):
    home.ledger_file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(EvidenceBroken, match="not a readable ledger"):
        open_ledger(home)
    assert home.ledger_file.read_bytes().startswith(b"not a database")


def test_a_ledger_without_its_tables_is_not_made_anew(home):
    open_ledger(home).grant("youth", ONE, "pilot")
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("DROP TABLE entries")
    with pytest.raises(EvidenceBroken, match="lacks one of its tables"):
        open_ledger(home)


def test_a_locked_ledger_is_worth_a_retry(home, ask):
    ledger = open_ledger(home, patience=0.1)
    ledger.grant("youth", ONE, "pilot")
    with alone(home.ledger_file.with_suffix(".lock"), patience=1):
        with pytest.raises(InfrastructureFault, match="held by another process"):
            ledger.charge(ask())
        assert ledger.account("youth").charged == 0  # reading goes on
    with closing(sqlite3.connect(home.ledger_file, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureFault, match="busy, locked or out of reach"):
            ledger.charge(ask())
    assert ledger.charge(ask()).new


@pytest.mark.postgres
def test_a_locked_postgresql_ledger_is_worth_a_retry(postgres_home, ask):
    ledger = open_ledger(postgres_home, patience=0.2)
    ledger.grant("youth", ONE, "pilot")
    with psycopg.connect(postgres_home.ledger_url) as other:
        other.execute("SELECT * FROM meta FOR UPDATE")
        with pytest.raises(InfrastructureFault, match="busy, locked or out of reach"):
            ledger.charge(ask())
    assert ledger.charge(ask()).new


@pytest.mark.postgres
def test_a_server_that_dies_at_the_commit_leaves_doubt_and_says_so(postgres_home, ask):
    ledger = open_ledger(postgres_home)
    ledger.grant("youth", ONE, "pilot")
    with pytest.raises(InfrastructureFault, match="Whether the last entry was written is not known. Run the same again"):
        with ledger.database.writing() as connection, psycopg.connect(postgres_home.ledger_url) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [connection.scalar(sql.text("SELECT pg_backend_pid()"))])
    with pytest.raises(InfrastructureFault, match="Nothing was written"):  # the control: before the commit there is no doubt
        with ledger.database.writing() as connection, psycopg.connect(postgres_home.ledger_url) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [connection.scalar(sql.text("SELECT pg_backend_pid()"))])
            connection.execute(sql.text("SELECT 1"))
    assert ledger.charge(ask()).new


def test_an_unreachable_ledger_is_named_without_its_password(home):
    away = Home(home.path, ledger_url="postgresql://steps:hunter2@127.0.0.1:1/ledger")
    with pytest.raises(InfrastructureFault) as fault:
        open_ledger(away, patience=2)
    assert "127.0.0.1" in str(fault.value) and "hunter2" not in str(fault.value)


@pytest.mark.parametrize("url", ["sqlite:///x.db", "mysql://h/d", "postgres", "postgresql://host:port/x"])
def test_a_ledger_that_is_not_postgresql_is_refused(home, url):
    with pytest.raises(SpecError, match="STEPS_LEDGER"):
        open_ledger(Home(home.path, ledger_url=url))


def test_the_ledger_is_for_its_owner_alone(home, ledger):
    ledger.grant("youth", ONE, "pilot")
    for path in (home.ledger_file, home.ledger_file.with_suffix(".lock"), home.anchor_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_many_threads_of_one_process_spend_exactly_the_cap(ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    outcomes = []

    def pay(number: int) -> None:
        try:
            outcomes.append(ledger.charge(ask(f"voter-{number}", nanos=200_000_000)).new)
        except BudgetRefused:
            outcomes.append(False)

    threads = [threading.Thread(target=pay, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True] * 5
    assert ledger.verify(ledger.anchor) == []
