"""Whatever is done to the ledger behind its back is found: an edited field, a cut tail, an old copy."""

from __future__ import annotations

import dataclasses
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from schemas.errors import BudgetRefused, EvidenceBroken, InfrastructureFault, StepsError
from tasks.stores import acts
from tasks.stores import entries as entries_module
from tasks.stores.anchor import Anchor
from tasks.stores.entries import NO_HASH, Entry, KnownHead, chain_hash, chain_problems, content_hash
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.people import Change
from tasks.stores.public_chain import public_chain
from tasks.stores.signatures import new_key, read_signer
from tasks.stores.trust import change_people, renew_anchor

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


@pytest.mark.whole
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


def test_a_deleted_ledger_is_told_in_one_sentence(home, written, ask):
    for name in ("second", "third", "fourth"):
        written.charge(ask(name))
    last = written.head()[0]
    for path in home.ledger_file.parent.glob(f"{home.ledger_file.name}*"):
        path.unlink()
    empty = open_ledger(home)
    (problem,) = empty.verify(empty.anchor)
    assert f"knows entry {last} and {last - 1} more that this ledger lacks; this ledger ends at entry 0" in problem
    assert "steps restore" in problem
    with pytest.raises(EvidenceBroken, match=f"knows entry {last} and.*Nothing was charged"):
        empty.must_be_current(empty.anchor)


def test_a_ledger_with_another_history_is_told_in_one_sentence(home, written, tmp_path):
    heads = [KnownHead("elsewhere", seq, "0" * 64) for seq in range(1, written.head()[0] + 1)]
    problems = written.verify(written.anchor, heads)
    assert problems == [
        f"elsewhere knows another entry 1 and {len(heads) - 1} more than this ledger holds: the ledger was rewritten"
    ]


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


# What a broken file, a lost anchor or a lost acknowledgement can do


def _index_page(home: Home) -> tuple[int, int]:
    """Where the index on population lies in the file."""
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        [[root]] = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_entries_population'")
        [[size]] = raw.execute("PRAGMA page_size")
    return (root - 1) * size, root * size


def _through_the_index(home: Home) -> int:
    """The control: what a query that trusts the index finds charged, -1 where SQLite finds nothing or refuses."""
    found = "SELECT charged_after FROM entries WHERE population = 'youth' ORDER BY seq DESC LIMIT 1"
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        try:
            rows = raw.execute(found).fetchall()
        except sqlite3.DatabaseError:
            return -1
    return rows[0][0] if rows else -1


def test_no_flipped_bit_of_an_index_hides_a_charge(home, ledger, ask):
    ledger.grant("youth", ONE, "exactly two")
    for name in ("one", "two"):
        ledger.charge(ask(name, nanos=ONE // 2))
    whole, (start, end) = home.ledger_file.read_bytes(), _index_page(home)
    used = [place for place in range(start, end) if whole[place]]
    hidden = 0
    for place in used:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        home.ledger_file.write_bytes(flipped)
        hidden += 0 <= _through_the_index(home) < ONE
        with pytest.raises((BudgetRefused, EvidenceBroken)):
            open_ledger(home).charge(ask("three", nanos=ONE // 2))
        try:
            assert open_ledger(home).account("youth").balance == 0
        except EvidenceBroken as broken:
            assert "REINDEX" in str(broken) or "not a readable ledger" in str(broken)
    assert hidden, "no bit did what the test is about; it shows nothing"
    home.ledger_file.write_bytes(whole)
    assert open_ledger(home).verify(ledger.anchor) == []


def test_an_index_that_leaves_an_entry_out_is_found_by_verify(home, written):
    whole, (start, end) = home.ledger_file.read_bytes(), _index_page(home)
    place = whole.index(b"youth", start, end)
    home.ledger_file.write_bytes(whole[:place] + b"yoath" + whole[place + 5 :])
    assert any("damaged" in problem and "ix_entries_population" in problem for problem in written.verify(written.anchor))
    with pytest.raises(EvidenceBroken, match="Nothing was written.*REINDEX"):
        open_ledger(home)
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        raw.execute("REINDEX")
    assert open_ledger(home).verify(written.anchor) == []


@pytest.mark.parametrize("flips", range(4))
def test_a_broken_page_is_told_in_words(home, written, flips):
    """Whatever a page holds, the answer is one of our errors, and nothing is charged that was not granted."""
    whole, chance = home.ledger_file.read_bytes(), random.Random(flips)
    for _ in range(12):
        broken = bytearray(whole)
        start = chance.randrange(100, len(broken) - 64)
        broken[start : start + 64] = chance.randbytes(64) if flips % 2 else bytes(64)
        home.ledger_file.write_bytes(broken)
        try:
            restored = open_ledger(home)
            assert restored.verify(restored.anchor) or restored.entries() == written.entries()
            restored.accounts()
        except StepsError:
            pass
        home.ledger_file.write_bytes(whole)
    assert open_ledger(home).verify(written.anchor) == []


WRITERS = {
    "grant": lambda ledger, ask: ledger.grant("youth", ONE, "more"),
    "charge": lambda ledger, ask: ledger.charge(ask("later-2")),
    "approve": lambda ledger, ask: ledger.decide("open", "approve", "ada", "fine"),
    "reject": lambda ledger, ask: ledger.decide("open", "reject", "ada", "no"),
    "abandon": lambda ledger, ask: ledger.abandon("open", "late"),
    "burn": lambda ledger, ask: ledger.burn("open", "disk"),
    "seal": lambda ledger, ask: ledger.seal("open", "synthetic-1", "public", "3" * 32, "c" * 64, 10),
    "publish": lambda ledger, ask: ledger.publish("open", "manifest"),
    "withdraw": lambda ledger, ask: acts.withdraw(ledger, "done", "wrong weights"),
    "supersede": lambda ledger, ask: acts.supersede(ledger, "done", "next"),
    "cap": lambda ledger, ask: acts.cap(ledger, "youth", ONE, "pure", "a lifetime"),
    "home": lambda ledger, ask: acts.register_home(ledger, {"keys": {"artifacts.key": "d" * 64}}, after=0),
    "person": lambda ledger, ask: _register(ledger),
}


def _register(ledger: Ledger) -> Entry:
    """A first approver, whose key lies beside the ledger."""
    key = ledger.anchor.path.with_name("ada.pem")
    if not key.exists():
        new_key(key, None)
    first = Change("add", "ada", ("approver",), read_signer(key).public)
    return change_people(dataclasses.replace(ledger, key_file=key), first, "the first")


@pytest.fixture
def opened(written: Ledger, ask) -> Ledger:
    """With a release about which everything can still be said, and one that can take another's place."""
    written.charge(ask("next"))
    written.seal("next", "noisy", "public", "2" * 32, "b" * 64, 10)
    written.publish("next", "manifest")
    written.charge(ask("open"))
    written.seal("open", "noisy", "public", "2" * 32, "b" * 64, 10)
    return written


@pytest.mark.parametrize("act", WRITERS)
@pytest.mark.whole
def test_no_writer_forks_an_old_copy(home, opened, ask, tmp_path, act):
    copy = tmp_path / "backup.db"
    shutil.copy(home.ledger_file, copy)
    opened.charge(ask("later"))
    newest = home.ledger_file.read_bytes()
    shutil.copy(copy, home.ledger_file)
    restored, anchored = open_ledger(home), home.anchor_file.read_bytes()
    with pytest.raises(EvidenceBroken, match="it is an old copy.*Nothing was written"):
        WRITERS[act](restored, ask)
    assert home.anchor_file.read_bytes() == anchored
    home.ledger_file.write_bytes(newest)
    again = open_ledger(home)
    assert again.verify(again.anchor) == []
    WRITERS[act](again, ask)  # the control: the newest ledger is not refused ever after


@pytest.mark.parametrize(("act", "lost"), [*((act, "deleted") for act in WRITERS), ("grant", "emptied"), ("grant", "cut")])
def test_a_lost_anchor_is_not_made_anew_by_whoever_writes_next(home, opened, ask, act, lost):
    lines = home.anchor_file.read_bytes().splitlines(keepends=True)
    home.anchor_file.write_bytes(b"".join(lines[:5]) if lost == "cut" else b"")
    if lost == "deleted":
        home.anchor_file.unlink()
    with pytest.raises(EvidenceBroken, match="Nothing was written"):
        WRITERS[act](opened, ask)
    assert home.anchor_file.exists() == (lost != "deleted")
    assert any("steps budget anchor" in problem for problem in opened.verify(opened.anchor))
    entry, new = renew_anchor(opened, "the disk was replaced", [])
    assert new and (entry.kind, entry.details["why"]) == ("anchor", "the disk was replaced")
    assert opened.verify(opened.anchor) == [] and renew_anchor(opened, "again", []) == (entry, False)
    WRITERS[act](opened, ask)


def test_a_new_anchor_is_refused_where_something_knows_another_ledger(home, opened, tmp_path, ask):
    home.anchor_file.unlink()
    with pytest.raises(EvidenceBroken, match="bundle.*No anchor was begun"):
        renew_anchor(opened, "why not", [KnownHead('the bundle "x"', opened.head()[0] + 1, "f" * 64)])
    home.anchor_file.write_text(f"{opened.head()[0] + 1} {'f' * 64}\n")
    with pytest.raises(EvidenceBroken, match="old copy.*No anchor was begun"):
        renew_anchor(opened, "why not", [])
    assert "anchor" not in {entry.kind for entry in opened.entries()}


@pytest.mark.parametrize("act", WRITERS)
@pytest.mark.whole
def test_an_entry_that_could_not_be_anchored_is_told_and_found_when_said_again(home, opened, ask, act, monkeypatch):
    ends, append = opened.head()[0], Anchor.append

    def full(self: Anchor, seq: int, digest: str) -> None:
        if seq > ends:
            raise InfrastructureFault(f"cannot use {self.path}: No space left on device. Nothing half-written was kept.")
        append(self, seq, digest)

    monkeypatch.setattr(Anchor, "append", full)
    with pytest.raises(InfrastructureFault) as told:
        WRITERS[act](opened, ask)
    for part in (f"is entry {ends + 1} of the ledger, and stays", "No space left on device", "not written twice"):
        assert part in str(told.value)
    assert "Nothing" not in str(told.value)
    monkeypatch.undo()
    if act == "grant":
        return  # without a key of its own: see tests/tasks/stages/test_grant.py
    WRITERS[act](opened, ask)
    assert opened.head()[0] == ends + 1 and opened.verify(opened.anchor) == []


def test_where_the_anchor_cannot_be_written_no_first_entry_is_either(tmp_path):
    away = open_ledger(Home(tmp_path / "home", anchor_path=tmp_path / "mount" / "anchor.log"))
    with pytest.raises(InfrastructureFault, match="mount"):
        away.grant("youth", ONE, "pilot")
    assert away.entries() == []


def test_reading_and_writing_walk_the_ledger_once(home, ledger, ask, monkeypatch):
    """What a run costs grows with the ledger once, not once for every entry that it writes."""
    ledger.grant("youth", ONE, "pilot")
    for number in range(30):
        ledger.charge(ask(f"voter-{number}", nanos=1))
    hashed = []
    monkeypatch.setattr(entries_module, "content_hash", lambda entry: hashed.append(entry.seq) or content_hash(entry))
    for number in range(30, 40):
        ledger.charge(ask(f"voter-{number}", nanos=1))
        ledger.account("youth")
        open_ledger(home).state(f"voter-{number}")
    assert len(hashed) <= 2 * 10 + 1
