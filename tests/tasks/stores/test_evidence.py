"""Whatever is done to the ledger behind its back is found: an edited field, a cut tail, an old copy."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from schemas.errors import EvidenceBroken, InfrastructureFault
from tasks.stores.anchor import Anchor
from tasks.stores.entries import NO_HASH, Entry, KnownHead, chain_hash, chain_problems, content_hash
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain

ONE = 10**9


@pytest.fixture
def written(ledger: Ledger, ask) -> Ledger:
    """A ledger with entries of every kind."""
    ledger.grant("youth", ONE, "pilot")
    ledger.grant("old", ONE, "pilot", neighbours="substitute")
    for name in ("done", "no", "lost", "gone"):
        ledger.seal(name, "cells", "confidential", "1" * 32, "a" * 64)
        ledger.charge(ask(name))
        ledger.seal(name, "noisy", "public", "2" * 32, "b" * 64, 10)
    ledger.decide("done", "approve", "ada", "fine")
    ledger.publish("done", "manifest")
    ledger.evaluated("done")
    ledger.decide("no", "reject", "ada", "bad")
    ledger.burn("lost", "disk")
    ledger.abandon("gone", "late")
    return ledger


@contextmanager
def administrator(home: Home) -> Iterator[sqlite3.Connection]:
    """Someone with the file and every right over it."""
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        raw.execute("PRAGMA synchronous = OFF")
        for name in ("no_update", "no_delete", "only_append", "one_measure"):
            raw.execute(f"DROP TRIGGER IF EXISTS {name}")
        yield raw


def _changed(value: object) -> object:
    return value + 1 if isinstance(value, int) else f"{value or ''}x"


def _restore(home: Home, entries: list[Entry]) -> None:
    columns = [field.name for field in dataclasses.fields(Entry)]
    with administrator(home) as raw:
        raw.execute("DELETE FROM entries")
        marks = ", ".join("?" * len(columns))
        raw.executemany(f"INSERT INTO entries VALUES ({marks})", [dataclasses.astuple(entry) for entry in entries])


def test_an_honest_ledger_verifies(written):
    assert {entry.kind for entry in written.entries()} == {
        *("grant", "charge", "seal", "approve", "reject", "abandon", "burn", "publish", "evaluate")
    }
    assert written.verify(written.anchor, [KnownHead("manifest", *written.head())]) == []
    written.must_be_current(written.anchor)


def test_a_change_of_any_field_of_any_entry_is_found(home, written):
    flips = 0
    for entry in written.entries():
        for field in dataclasses.fields(Entry):
            old = getattr(entry, field.name)
            new = 10_000 if field.name == "seq" else _changed(old)
            with administrator(home) as raw:
                raw.execute(f"UPDATE entries SET {field.name} = ? WHERE hash = ?", (new, entry.hash))
            assert list(chain_problems(written.entries())), f"{field.name} of entry {entry.seq}"
            key = new if field.name == "hash" else entry.hash
            with administrator(home) as raw:
                raw.execute(f"UPDATE entries SET {field.name} = ? WHERE hash = ?", (old, key))
            flips += 1
    assert flips == len(written.entries()) * 14
    assert written.verify(written.anchor) == []


def test_a_missing_entry_is_found_wherever_it_was(home, written):
    entries = written.entries()
    for gone in range(len(entries)):
        _restore(home, entries[:gone] + entries[gone + 1 :])
        assert written.verify(written.anchor), f"entry {gone + 1}"
        with pytest.raises(EvidenceBroken, match="does not verify"):
            written.must_be_current(written.anchor)
    _restore(home, entries)
    assert written.verify(written.anchor) == []


def _rewritten(entries: list[Entry], seq: int, **changes: object) -> list[Entry]:
    """The chain with one entry changed and every hash from there on made anew."""
    previous, made = NO_HASH, []
    for entry in entries:
        entry = dataclasses.replace(entry, previous=previous, **(changes if entry.seq == seq else {}))
        previous = chain_hash(previous, content_hash(entry))
        made.append(dataclasses.replace(entry, hash=previous))
    return made


def test_a_rewritten_chain_is_found_by_the_anchor_and_by_a_published_head(home, written, tmp_path):
    entries, published = written.entries(), KnownHead("public/done/manifest.json", *written.head())
    forged = _rewritten(entries, seq=3, actor="somebody")
    _restore(home, forged)
    assert list(chain_problems(forged)) == []  # the control: the chain alone cannot know
    assert any("the anchor" in problem and "rewritten" in problem for problem in written.verify(written.anchor))
    other = Anchor(tmp_path / "other.log")
    other.append(*written.head())
    assert written.verify(other) == []  # the control: an anchor that was forged too
    assert ["public/done/manifest.json" in problem for problem in written.verify(other, [published])] == [True]


def test_an_entry_rewritten_with_a_hash_of_its_own_breaks_the_link_to_the_next(written):
    entries = written.entries()
    for place, entry in enumerate(entries[:-1]):
        forged = dataclasses.replace(entry, actor="somebody")
        forged = dataclasses.replace(forged, hash=chain_hash(forged.previous, content_hash(forged)))
        problems = list(chain_problems([*entries[:place], forged, *entries[place + 1 :]]))
        assert problems == [f"entry {place + 2} does not follow from the entry before it"]


def test_totals_that_do_not_add_up_and_overspending_are_found_under_a_valid_chain(written):
    entries = written.entries()
    charge = next(entry for entry in entries if entry.kind == "charge")
    cheaper = _rewritten(entries, charge.seq, amount=1)
    assert any("do not add up" in problem for problem in chain_problems(cheaper))
    beyond = _rewritten(entries, charge.seq, amount=2 * ONE, charged_after=2 * ONE)
    assert any("beyond its grant" in problem for problem in chain_problems(beyond))
    refund = _rewritten(entries, charge.seq, kind="refund")
    assert any("no kind and amount" in problem for problem in chain_problems(refund))


def test_a_restored_old_copy_is_refused(home, written, ask, tmp_path):
    copy = tmp_path / "backup.db"
    shutil.copy(home.ledger_file, copy)
    written.charge(ask("later"))
    published = [KnownHead("public/later/manifest.json", *written.head())]
    shutil.copy(copy, home.ledger_file)
    restored = open_ledger(home)
    with pytest.raises(EvidenceBroken, match="it is an old copy"):
        restored.must_be_current(restored.anchor)
    elsewhere = Anchor(tmp_path / "other.log")
    elsewhere.append(*restored.head())
    with pytest.raises(EvidenceBroken, match="public/later/manifest.json knows"):
        restored.must_be_current(elsewhere, published)


def test_a_fresh_ledger_beside_an_old_anchor_is_refused(home, written):
    for path in home.path.glob("ledger.db*"):
        path.unlink()
    fresh = open_ledger(home)
    with pytest.raises(EvidenceBroken, match="ends at entry 0"):
        fresh.must_be_current(fresh.anchor)


def test_a_lost_anchor_is_found_and_a_lost_mount_is_no_new_anchor(home, written, tmp_path, ask):
    home.anchor_file.unlink()
    with pytest.raises(EvidenceBroken, match="missing or empty"):
        written.must_be_current(written.anchor)
    away = open_ledger(Home(home.path, anchor_path=tmp_path / "mount" / "anchor.log"))
    with pytest.raises(InfrastructureFault, match="mount"):
        away.charge(ask("later"))
    assert away.account("youth").charged == 4 * 10**8


def test_every_head_is_anchored_before_the_caller_hears_of_it(home, ledger, ask):
    ledger.grant("youth", ONE, "pilot")
    charge = ledger.charge(ask())
    assert ledger.anchor.read().heads == tuple(entry.head for entry in ledger.entries())
    ledger.charge(ask())
    assert ledger.anchor.read().heads[-1] == charge.entry.head  # a replay repeats no line


def test_a_charge_committed_but_not_anchored_is_anchored_by_its_replay(home, ledger, ask, monkeypatch):
    ledger.grant("youth", ONE, "pilot")
    append = Anchor.append

    def fail_on_the_charge(self: Anchor, seq: int, digest: str) -> None:
        if seq == 2:
            raise InfrastructureFault("the anchor's disk is full")
        append(self, seq, digest)

    monkeypatch.setattr(Anchor, "append", fail_on_the_charge)
    with pytest.raises(InfrastructureFault):
        ledger.charge(ask())
    monkeypatch.undo()
    assert [seq for seq, _ in ledger.anchor.read().heads] == [1]
    replay = ledger.charge(ask())
    assert not replay.new and ledger.anchor.read().heads[-1] == replay.entry.head


def test_an_anchor_that_cannot_be_written_stops_the_next_charge_before_it_is_made(home, ledger, ask, monkeypatch):
    ledger.grant("youth", ONE, "pilot")

    def full(self: Anchor, seq: int, digest: str) -> None:
        raise InfrastructureFault("the anchor's disk is full")

    monkeypatch.setattr(Anchor, "append", full)
    with pytest.raises(InfrastructureFault):
        ledger.charge(ask())
    monkeypatch.undo()
    assert ledger.account("youth").charged == 0


@pytest.mark.parametrize("torn", ["2", "2 ", "2 abc", "\0\0\0\0", "\xff"])
def test_a_torn_last_line_of_the_anchor_is_told_kept_and_survived(home, ledger, ask, torn):
    ledger.grant("youth", ONE, "pilot")
    with home.anchor_file.open("ab") as file:
        file.write(torn.encode("latin-1"))
    before = home.anchor_file.read_bytes()
    assert ledger.anchor.read().torn == (2,)
    ledger.must_be_current(ledger.anchor)
    charge = ledger.charge(ask())
    assert ledger.anchor.read().heads[-1] == charge.entry.head
    assert home.anchor_file.read_bytes().startswith(before)
    assert ledger.verify(ledger.anchor) == []


def test_a_proof_shows_neither_the_fingerprint_nor_the_body(written):
    entries = written.entries()
    charge = next(entry for entry in entries if entry.kind == "charge")
    assert "secret-fingerprint" in charge.body
    assert charge.hash == chain_hash(charge.previous, content_hash(charge))
    published = str(public_chain(entries))
    assert '"charge:done#1"' in published.replace("'", '"')
    assert not [secret for secret in ("secret-fingerprint", "a" * 64, "'ada'", "fine", "pilot") if secret in published]


def test_the_chain_is_the_same_on_both_databases(any_home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "größer — 你好 \0")
    ledger.charge(ask())
    entries = ledger.entries()
    assert list(chain_problems(entries)) == [] and ledger.verify(ledger.anchor) == []
    assert [entry.seq for entry in entries] == [1, 2]
    assert entries[0].details["why"] == "größer — 你好 \0"
