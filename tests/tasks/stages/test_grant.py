"""A grant is made once, however often its command is run and wherever an earlier run of it failed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from schemas.budget import parse_grant
from schemas.errors import EvidenceBroken, InfrastructureFault, SpecError
from tasks.stages.decide import decide
from tasks.stages.grant import begin_anchor, grant
from tasks.stores.anchor import Anchor
from tasks.stores.entries import Entry
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger

FOUR = parse_grant("4", None, None)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def say(home: Home, why: str = "board", key: str | None = None, neighbours: str = "add_remove") -> tuple[int, Entry | None]:
    account, found = grant(home, "people", FOUR, why, neighbours, "person", key)
    return account.granted // 10**9, found


def test_the_same_words_are_the_same_grant_and_a_second_equal_one_is_possible(home: Home):
    assert say(home) == (4, None)
    granted, found = say(home)
    assert granted == 4 and found is not None and found.seq == 1
    assert say(home, "another decision") == (8, None)
    assert say(home, key="2026-second") == (12, None)
    assert say(home, key="2026-second")[0] == 12
    with pytest.raises(EvidenceBroken, match="says something else"):
        say(home, "yet another", key="2026-second")
    with pytest.raises(SpecError, match="is not a name"):
        say(home, key="../x")


@pytest.mark.parametrize("step", range(1, 7))
def test_a_grant_that_fails_at_any_durable_step_is_granted_once_when_run_again(home: Home, monkeypatch, step: int):
    say(home, "before")
    done, sync = iter(range(1, 100)), os.fsync

    def fail(descriptor: int) -> None:
        if next(done) == step:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    try:
        say(home)
    except InfrastructureFault as fault:
        kept = len(open_ledger(home).entries()) == 2
        assert ("is entry 2 of the ledger, and stays" in str(fault)) == kept, "the text says what was kept"
    monkeypatch.undo()
    assert say(home)[0] == say(home)[0] == 8
    ledger = open_ledger(home)
    assert ledger.verify(ledger.anchor) == []


def test_a_failure_after_the_commit_tells_what_was_kept(home: Home, monkeypatch):
    """The control of the test above: at least one step fails after the entry is there."""
    say(home, "before")
    append = Anchor.append

    def full(self: Anchor, seq: int, digest: str) -> None:
        if seq == 2:
            raise InfrastructureFault("cannot use the anchor: No space left on device. Free space.")
        append(self, seq, digest)

    monkeypatch.setattr(Anchor, "append", full)
    with pytest.raises(InfrastructureFault, match='grant of ε=4 to population "people" is entry 2 of the ledger, and stays'):
        say(home)
    monkeypatch.undo()
    assert say(home)[0] == 8


def test_grants_and_decisions_are_refused_where_a_published_bundle_knows_a_newer_ledger(home: Home, monkeypatch):
    from tasks.stages import audit
    from tasks.stores.entries import KnownHead

    say(home)
    monkeypatch.setattr(audit, "published_heads", lambda _: [KnownHead('the bundle "x"', 9, "f" * 64, "public")])
    for write in (
        lambda: say(home, "more"),
        lambda: decide(home, "x", "approve", "ada", ""),
        lambda: decide(home, "x", "abandon", "ada", ""),
    ):
        with pytest.raises(EvidenceBroken, match='the bundle "x" knows'):
            write()
    assert len(open_ledger(home).entries()) == 1


def test_a_new_anchor_is_begun_by_a_person_who_says_why(home: Home):
    for why in ("one", "two", "three"):
        say(home, why)
    shutil.move(home.anchor_file, home.path / "elsewhere")
    with pytest.raises(EvidenceBroken, match="steps budget anchor"):
        say(home, "four")
    with pytest.raises(SpecError, match="needs a reason"):
        begin_anchor(home, " ")
    assert begin_anchor(home, "the disk was replaced")["new"] and say(home, "four")[0] == 16
    assert not begin_anchor(home, "again")["new"]
