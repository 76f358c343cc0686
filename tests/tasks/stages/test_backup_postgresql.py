"""A backup holds the ledger in whichever database it is; brought back, it is the same ledger, and never an older one."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from schemas.errors import EvidenceBroken, SpecError
from tasks.stages.audit import check_ledger
from tasks.stages.grant import begin_anchor
from tasks.stages.restore import restore
from tasks.stores import backup, copying
from tasks.stores.backup import back_up
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small, make_small
from tests.flows.without_prefect import run_stages
from tests.postgres import running_server
from tests.tasks.stages import test_home

pytestmark = [pytest.mark.whole, pytest.mark.postgres]
PASSPHRASE = "correct horse battery"
_silent = test_home._silent


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


def database(server: str, name: str, template: str = "template0") -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"{server.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="module")
def stopped(server: str, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A release that was killed before it was published, its ledger in the database `stopped`. Not to be changed."""
    small = make_small(tmp_path_factory.mktemp("stopped"), rows=303)
    home = Home(small.home, ledger_url=database(server, "stopped"))
    open_ledger(home).grant("small-people", 10**9, "two releases")
    test_home.stop_before("publish_release", home, small.release)
    return small


@pytest.fixture
def small(stopped: Small, tmp_path: Path) -> Small:
    return Small(Path(shutil.copytree(stopped.folder, tmp_path / "copy")))


@pytest.fixture
def home(server: str, small: Small) -> Home:
    return Home(small.home, ledger_url=database(server, "live", "stopped"))


@pytest.fixture
def empty(server: str) -> str:
    return database(server, "empty")


@pytest.fixture
def saved(home: Home, tmp_path: Path) -> Path:
    out = tmp_path / "backup.tar"
    assert back_up(home, out, PASSPHRASE)["entries"] == open_ledger(home).head()[0]
    return out


def test_the_drill_database_and_home_are_lost_and_the_release_goes_on_under_its_charge(home, small, saved, empty, tmp_path):
    entries, noisy = open_ledger(home).entries(), test_home.files_of(home, "noisy-counts")[0].read_bytes()
    shutil.rmtree(home.path)
    other = Home(tmp_path / "elsewhere", ledger_url=empty)
    assert restore(other, saved, PASSPHRASE)["entries"] == len(entries)
    assert open_ledger(other).entries() == entries and not (other.path / "ledger.db").exists()
    assert run_stages(other, small.release) is False, "nothing is charged again"
    assert (other.public / "small-1" / "noisy-counts.parquet").read_bytes() == noisy and check_ledger(other) == []


def test_a_database_that_lacks_what_an_anchor_outside_knows_is_not_filled_from_an_old_backup(home, saved, empty, tmp_path):
    anchored = replace(home, anchor_path=tmp_path / "anchor.log")
    shutil.copy(home.anchor_file, anchored.anchor_file)
    open_ledger(anchored).grant("small-people", 1, "after the backup")
    new = Home(tmp_path / "new", ledger_url=empty, anchor_path=anchored.anchor_file)
    with pytest.raises(EvidenceBroken, match="would forget what was charged since.*anchor.*old copy.*Nothing was restored"):
        restore(new, saved, PASSPHRASE)
    assert open_ledger(new).entries() == [] and not list(new.path.rglob("*.key"))
    back_up(anchored, tmp_path / "newer.tar", PASSPHRASE)
    restore(new, tmp_path / "newer.tar", PASSPHRASE)  # the control
    assert check_ledger(new) == []


def test_a_database_that_is_older_than_the_backup_is_refused(home, small, server, tmp_path):
    old = database(server, "old", "live")
    open_ledger(home).grant("small-people", 1, "after the copy")
    back_up(home, out := tmp_path / "backup.tar", PASSPHRASE)
    new = Home(tmp_path / "new", ledger_url=old)
    with pytest.raises(EvidenceBroken, match=r"the backup .*backup.tar knows entry.*old copy.*into an empty database"):
        restore(new, out, PASSPHRASE)
    assert not (new.path / "keys").exists()


def test_a_ledger_that_outlived_its_home_stays_and_the_home_comes_back(home, small, saved, tmp_path):
    for _ in range(2):
        open_ledger(home).grant("small-people", 1, "after the backup")
    entries = open_ledger(home).entries()
    other = replace(home, path=tmp_path / "other")
    said = restore(other, saved, PASSPHRASE)
    assert open_ledger(other).entries() == entries and "steps budget anchor" in said["notes"][-1]
    with pytest.raises(EvidenceBroken, match="the anchor .* ends at entry"):
        open_ledger(other).grant("small-people", 1, "before anybody said that the anchor was lost")
    begin_anchor(other, "the disk of the home was lost")
    assert run_stages(other, small.release) is False and check_ledger(other) == []


def test_a_ledger_that_outlived_its_home_is_compared_with_the_anchor_outside(home, saved, tmp_path):
    anchored = replace(home, anchor_path=tmp_path / "anchor.log")
    shutil.copy(home.anchor_file, anchored.anchor_file)
    for _ in range(2):
        open_ledger(anchored).grant("small-people", 1, "after the backup")
    other = replace(anchored, path=tmp_path / "other")
    assert len(restore(other, saved, PASSPHRASE)["notes"]) == 1 and check_ledger(other) == []


def test_entries_written_while_the_backup_is_made_are_in_it_or_not_never_half(home, small, tmp_path, monkeypatch):
    """The snapshot is one; what is charged after it leaves no draws in the file, which would say that it is an old copy."""
    read = copying.read_entries

    def meanwhile(connection):
        entries = read(connection)
        if connection.dialect.name == "postgresql" and not (home.staging / "small-2").exists():
            small.write(name="small-2")
            test_home.stop_before("correct", home, small.release)
            assert read(connection) == entries, "one snapshot"
        return entries

    monkeypatch.setattr(copying, "read_entries", meanwhile)
    back_up(home, out := tmp_path / "backup.tar", PASSPHRASE)
    with tarfile.open(out) as archive:
        assert not any(name.startswith("staging/small-2") for name in archive.getnames())
        archive.extract("ledger.db", tmp_path / "looked", filter="data")
    with sqlite3.connect(tmp_path / "looked" / "ledger.db") as copy:
        assert ("small-2",) not in copy.execute("SELECT release FROM entries").fetchall()
    assert open_ledger(home).state("small-2") == "drawn"


def test_a_restoration_cut_short_leaves_the_database_empty_and_is_finished_by_the_same_command(
    saved, empty, tmp_path, monkeypatch
):
    other = Home(tmp_path / "other", ledger_url=empty)
    with monkeypatch.context() as patch:
        patch.setattr("tasks.stages.restore.fill", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore(other, saved, PASSPHRASE)
    assert open_ledger(other).entries() == []
    restore(other, saved, PASSPHRASE)
    assert check_ledger(other) == []
    restore(other, saved, PASSPHRASE)  # all of it is there
    assert check_ledger(other) == []


def test_tables_with_entries_are_never_filled(home, saved, tmp_path):
    entries = open_ledger(home).entries()
    with pytest.raises(EvidenceBroken, match="has entries already; nothing was added"):
        copying.fill(open_ledger(home).database, entries)
    assert open_ledger(home).entries() == entries


def test_the_kind_of_database_is_the_one_that_was_backed_up(saved, tmp_path):
    with pytest.raises(SpecError, match="kept in postgresql: set STEPS_LEDGER"):
        restore(Home(tmp_path / "new"), saved, PASSPHRASE)


def test_a_backup_of_an_earlier_version_without_the_ledger_needs_the_database(home, saved, empty, tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "_add_ledger", lambda *_: (0, {"small-1"}))
    back_up(home, old := tmp_path / "old.tar", PASSPHRASE)
    with pytest.raises(EvidenceBroken, match="draws of release"):
        restore(Home(tmp_path / "new", ledger_url=empty), old, PASSPHRASE)
    said = restore(replace(home, path=tmp_path / "other"), old, PASSPHRASE)
    assert "steps budget anchor" in said["notes"][-1]
