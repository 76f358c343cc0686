"""A ledger of an earlier version is migrated in place with its first new entry: all of it, verified, or not at all."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from schemas.errors import BudgetRefused, EvidenceBroken, InfrastructureFault, SpecError, StepsError
from tasks.stores import database, migrations
from tasks.stores.database import ENTRIES, META, SCHEMA_VERSION, version_of
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.writing import migrate
from tests.tasks.stores import children
from tests.tasks.stores.old_ledgers import copy_to_postgresql, make_tables, unpack_old

ONE = 10**9


@pytest.fixture(params=[1, 2, 3])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def old_home(request: pytest.FixtureRequest, tmp_path: Path, version: int) -> Home:
    """A home of an earlier version, on both databases."""
    frozen = unpack_old(version, tmp_path / "old")
    if request.param == "sqlite":
        return frozen
    return copy_to_postgresql(frozen, version, request.getfixturevalue("postgres_home").ledger_url)


def version_in(ledger: Ledger) -> int:
    with ledger.database.reading() as connection:
        return version_of(connection)


def raw_entries(ledger: Ledger) -> list[tuple]:
    """What the table holds, in the columns that every version has."""
    columns = [column for column in ENTRIES.c if column.name != "measure"]
    with ledger.database.reading() as connection:
        return [tuple(row) for row in connection.execute(sql.select(*columns).order_by(ENTRIES.c.seq))]


def has_measure(ledger: Ledger) -> bool:
    with ledger.database.reading() as connection:
        return "measure" in {column["name"] for column in sql.inspect(connection).get_columns("entries")}


def test_reading_leaves_an_old_ledger_as_it_is(old_home: Home, version: int):
    ledger = open_ledger(old_home)
    before = raw_entries(ledger)
    assert ledger.verify(ledger.anchor) == [] and ledger.accounts() and ledger.releases()
    assert {account.measure for account in ledger.accounts()} == {"pure"}
    assert (version_in(ledger), has_measure(ledger), raw_entries(ledger)) == (version, version >= 3, before)


def test_the_first_new_entry_migrates_and_changes_no_old_one(old_home: Home):
    ledger = open_ledger(old_home)
    before, raw, anchored = ledger.entries(), raw_entries(ledger), ledger.anchor.read().heads
    accounts, heads = ledger.accounts(), [entry.hash for entry in ledger.entries()]
    ledger.grant("youth", ONE, "pilot", measure="zcdp")
    assert (version_in(ledger), has_measure(ledger)) == (SCHEMA_VERSION, True)
    assert ledger.entries()[:-1] == before and raw_entries(ledger)[:-1] == raw
    assert [entry.hash for entry in ledger.entries()][:-1] == heads
    assert [account for account in ledger.accounts() if account.population != "youth"] == accounts
    assert ledger.anchor.read().heads[: len(anchored)] == anchored
    assert open_ledger(old_home).verify(ledger.anchor) == []
    with pytest.raises(SpecError, match="cannot change"):
        ledger.grant("town", ONE, "mixed", measure="zcdp")


def test_what_is_refused_or_was_said_before_migrates_nothing(old_home: Home, version: int, ask):
    ledger = open_ledger(old_home)
    with pytest.raises(SpecError):
        ledger.grant("town", ONE, "more", unit="another")
    with pytest.raises(SpecError, match="its budget is in ε"):
        ledger.grant("town", ONE, "more", measure="zcdp")
    with pytest.raises(BudgetRefused):
        ledger.charge(ask(nanos=ONE))
    assert ledger.evaluated("poll-1") in ledger.entries()
    assert (version_in(ledger), has_measure(ledger)) == (version, version >= 3)


def _must_refuse_to_migrate(ledger: Ledger, version: int, why: str) -> None:
    before, anchored = raw_entries(ledger), ledger.anchor.path.read_bytes() if ledger.anchor.path.exists() else None
    with pytest.raises(EvidenceBroken, match=f"(?s){why}.*It was not migrated, and nothing was written.*budget verify"):
        ledger.grant("town", ONE, "more")
    assert (version_in(ledger), has_measure(ledger), raw_entries(ledger)) == (version, version >= 3, before)
    assert anchored == (ledger.anchor.path.read_bytes() if ledger.anchor.path.exists() else None)


def test_an_old_ledger_that_was_edited_is_not_migrated(tmp_path: Path, version: int):
    home = unpack_old(version, tmp_path)
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("DROP TRIGGER no_update")
        raw.execute("UPDATE entries SET actor = 'somebody' WHERE seq = 1")
    _must_refuse_to_migrate(open_ledger(home), version, "entry 1 was changed after it was written")


def test_an_old_ledger_that_lacks_what_its_anchor_knows_is_not_migrated(old_home: Home, version: int):
    ledger = open_ledger(old_home)
    ledger.anchor.append(ledger.head()[0] + 1, "f" * 64)
    _must_refuse_to_migrate(ledger, version, "it is an old copy")


def test_an_old_ledger_whose_anchor_is_lost_is_not_migrated(old_home: Home, version: int):
    ledger = open_ledger(old_home)
    ledger.anchor.path.unlink()
    _must_refuse_to_migrate(ledger, version, "is missing or empty")


def test_a_migration_that_changes_an_entry_is_undone(old_home: Home, version: int, monkeypatch: pytest.MonkeyPatch):
    """The control of the comparison after it: a step that writes into what was there."""
    ledger = open_ledger(old_home)
    upgrade = migrations.upgrade

    def careless(connection: sql.Connection, found: int) -> None:
        upgrade(connection, found)
        disarm = {"sqlite": "DROP TRIGGER no_update", "postgresql": "ALTER TABLE entries DISABLE TRIGGER no_change"}
        connection.exec_driver_sql(disarm[connection.dialect.name])
        connection.execute(sql.update(ENTRIES).where(ENTRIES.c.seq == 1).values(measure="zcdp"))

    monkeypatch.setattr(migrations, "upgrade", careless)
    _must_refuse_to_migrate(ledger, version, "entry 1 was changed after it was written")


@pytest.mark.slow
def test_a_migration_killed_before_any_statement_or_fsync_loses_nothing_and_is_done_by_the_next(old_home: Home, version: int):
    before = open_ledger(old_home).entries()
    lives = children.run("killed_while_migrating", old_home)
    assert len(lives) > 12, "the children hardly ran; the test shows nothing"
    for life in lives[:-1]:
        assert life == {"version": version, "entries": len(before), "problems": []}
    assert lives[-1] == {"version": SCHEMA_VERSION, "entries": len(before) + 1, "problems": []}
    ledger = open_ledger(old_home)
    ledger.grant(children.POPULATION, ONE, "migration", key="migration", measure="zcdp")
    assert ledger.entries()[:-1] == before and ledger.verify(ledger.anchor) == []


@pytest.mark.slow
def test_many_processes_that_write_to_an_old_ledger_at_once_migrate_it_once(old_home: Home):
    before = open_ledger(old_home).entries()
    assert children.run("migrate_at_once", old_home, processes=12) == ["granted"] * 12
    ledger = open_ledger(old_home)
    assert (
        version_in(ledger) == SCHEMA_VERSION
        and ledger.entries()[: len(before)] == before
        and ledger.verify(ledger.anchor) == []
    )
    assert len(ledger.entries()) == len(before) + 12


@pytest.mark.postgres
def test_an_account_that_does_not_own_the_tables_is_told_who_must_migrate_them(
    postgres_home: Home, tmp_path: Path, version: int
):
    owner = copy_to_postgresql(unpack_old(version, tmp_path / "old"), version, postgres_home.ledger_url)
    guest = Home(owner.path, ledger_url=owner.ledger_url.replace("steps@", "guest@"))
    for statement in (
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "GRANT SELECT, INSERT ON entries TO guest",
        "GRANT SELECT, UPDATE ON meta TO guest",
    ):
        run_on(owner, statement)
    try:
        ledger = open_ledger(guest)
        before = raw_entries(ledger)
        assert ledger.verify(ledger.anchor) == [], "reading needs no migration"
        with pytest.raises(
            StepsError,
            match="does not allow this account .*must be owner.*Nothing was written.*steps budget migrate.*by their owner",
        ) as told:
            ledger.grant("town", ONE, "more")
        assert not isinstance(told.value, InfrastructureFault), "running again would give the same answer"
        assert (version_in(ledger), has_measure(ledger), raw_entries(ledger)) == (version, version >= 3, before)
        assert migrate(open_ledger(owner).database, ledger.anchor) == version, "by the owner, without an entry"
        assert raw_entries(ledger) == before
        ledger.grant("town", ONE, "by the guest, who may write once the tables are new")
        assert version_in(ledger) == SCHEMA_VERSION and len(raw_entries(ledger)) == len(before) + 1
    finally:
        run_on(owner, "DROP OWNED BY guest")
        run_on(owner, "DROP ROLE guest")


def run_on(home: Home, statement: str) -> None:
    engine = sql.create_engine(sql.make_url(home.ledger_url).set(drivername="postgresql+psycopg"), poolclass=sql.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_tables_can_be_brought_up_to_date_without_an_entry_and_only_where_all_holds(old_home: Home, version: int):
    ledger = open_ledger(old_home)
    before = raw_entries(ledger)
    whole = ledger.anchor.path.read_bytes()
    ledger.anchor.path.write_bytes(b"")
    with pytest.raises(EvidenceBroken, match="It was not migrated"):
        migrate(ledger.database, ledger.anchor)
    assert version_in(ledger) == version
    ledger.anchor.path.write_bytes(whole)
    assert [migrate(ledger.database, ledger.anchor) for _ in range(2)] == [version, SCHEMA_VERSION]
    assert raw_entries(ledger) == before and ledger.verify(ledger.anchor) == []


# One way to make the tables


def test_the_last_step_is_the_version_that_this_program_knows():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_current_head() == str(database.SCHEMA_VERSION)
    steps = [script.revision for script in scripts.walk_revisions()]
    assert steps == [str(number) for number in range(database.SCHEMA_VERSION, 0, -1)]


def test_the_tables_are_those_that_are_read_and_written(any_home: Home):
    with open_ledger(any_home).database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), META.metadata) == []
        wider = sql.MetaData()
        sql.Table("entries", wider, *(column.copy() for column in ENTRIES.c), sql.Column("other", sql.Text))
        assert compare_metadata(MigrationContext.configure(connection), wider)  # the control


def _made_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as raw:
        made = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return [(name, re.sub(r"\s+", " ", text)) for name, text in made]


def test_a_migrated_ledger_has_the_tables_of_a_new_one(home: Home, tmp_path: Path, version: int):
    old = unpack_old(version, tmp_path)
    engine = sql.create_engine(f"sqlite:///{tmp_path / 'same.db'}", poolclass=sql.NullPool)
    with engine.begin() as connection:
        make_tables(connection, version)
    assert _made_of(tmp_path / "same.db") == _made_of(old.ledger_file)  # the steps make what that version made
    open_ledger(old).grant("town", ONE, "more")
    open_ledger(home)
    assert _made_of(old.ledger_file) == _made_of(home.ledger_file)
