"""A ledger holds entries of every format; each is hashed as its body records, and older programs refuse what they cannot read."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from schemas.errors import EvidenceBroken, SpecError, StepsError
from tasks.stores import database
from tasks.stores.anchor import Anchor
from tasks.stores.entries import NO_HASH, Entry, KnownHead, chain_hash, chain_problems, content_hash
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain

FROZEN = Path(__file__).parents[2] / "frozen" / "0.1.0" / "homes"
ONE = 10**9


@pytest.fixture
def old(tmp_path: Path) -> Home:
    """A home that version 0.1.0 made and left finished."""
    with tarfile.open(FROZEN / "finished.tar.gz") as archive:
        archive.extractall(tmp_path, filter="tar")
    return Home(tmp_path / "finished" / "home")


def version_of(home: Home) -> int:
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        return int(raw.execute("SELECT schema_version FROM meta").fetchone()[0])


def test_a_body_is_written_in_the_one_canonical_form_and_says_its_format(ledger: Ledger, ask):
    ledger.grant("youth", ONE, "größer")
    charge = ledger.charge(ask()).entry
    assert '"why":"größer"' in ledger.entries()[0].body
    for entry in ledger.entries():
        said = json.loads(entry.body)
        assert said["format"] == 2 and "format" not in entry.details
    assert charge.details["plan_format"] == 2


def test_old_and_new_entries_stand_in_one_chain(old: Home, ask):
    ledger = open_ledger(old)
    before = ledger.entries()
    assert not any("format" in entry.said for entry in before)
    ledger.grant("town", ONE, "more")
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask())
    assert ledger.entries()[: len(before)] == before
    assert [entry.said["format"] for entry in ledger.entries()[len(before) :]] == [2, 2, 2]
    assert ledger.verify(ledger.anchor) == []


@pytest.mark.parametrize("format", [1, 2])
def test_every_field_of_an_entry_counts_in_every_format(old: Home, format: int):
    ledger = open_ledger(old)
    ledger.grant("town", ONE, "more")
    entry = ledger.entries()[0 if format == 1 else -1]
    for name, value in asdict(entry).items():
        other = value + 1 if isinstance(value, int) else f"{value or ''}x"
        changed = replace(entry, **{name: other})
        assert (content_hash(changed) != content_hash(entry)) == (name not in ("previous", "hash")), name


def test_an_entry_cannot_be_taken_for_one_of_another_format(ledger: Ledger):
    entry = ledger.grant("youth", ONE, "pilot")
    body = json.dumps({key: value for key, value in entry.said.items() if key != "format"})
    forged = replace(entry, body=body)
    assert list(chain_problems([forged])) == ["entry 1 was changed after it was written"]


def test_the_same_event_is_found_again_whatever_its_format(old: Home):
    """A seal that version 0.1.0 wrote and that this one would write again."""
    ledger = open_ledger(old)
    before = ledger.entries()
    seal = next(entry for entry in before if entry.kind == "seal" and entry.details["stage"] == "cells")
    said = seal.details
    again = ledger.seal(seal.release or "", "cells", said["side"], said["id"], said["digest"], said["size"])
    assert again == seal and ledger.entries() == before
    with pytest.raises(EvidenceBroken, match="says something else"):
        ledger.seal(seal.release or "", "cells", said["side"], said["id"], "0" * 64, said["size"])


def test_looking_at_an_old_ledger_leaves_it_to_old_programs_and_writing_to_it_does_not(old: Home):
    ledger = open_ledger(old)
    assert ledger.verify(ledger.anchor) == [] and version_of(old) == 1
    with pytest.raises(SpecError):
        ledger.grant("town", ONE, "more", unit="household")
    assert version_of(old) == 1
    ledger.grant("town", ONE, "more")
    assert version_of(old) == database.SCHEMA_VERSION


def test_a_program_that_knows_only_the_older_format_refuses_the_ledger(old: Home, monkeypatch: pytest.MonkeyPatch):
    """Version 0.1.0 knows 1, and asks for it in the same way."""
    monkeypatch.setattr(database, "SCHEMA_VERSION", 1)
    open_ledger(old)
    monkeypatch.undo()
    open_ledger(old).grant("town", ONE, "more")
    before = old.ledger_file.read_bytes()
    monkeypatch.setattr(database, "SCHEMA_VERSION", 1)
    with pytest.raises(StepsError, match="newer version.*format 5; this one knows 1.*upgrade"):
        open_ledger(old)
    assert old.ledger_file.read_bytes() == before


def test_a_version_is_raised_together_with_the_first_new_entry_or_not_at_all(old: Home, monkeypatch: pytest.MonkeyPatch):
    from tasks.stores import writing

    def refuse(*_: object) -> None:
        raise EvidenceBroken("no")

    raised = writing.raise_version
    monkeypatch.setattr(writing, "raise_version", lambda connection: (raised(connection), refuse()))
    with pytest.raises(EvidenceBroken, match="no"):
        open_ledger(old).grant("town", ONE, "more")
    assert version_of(old) == 1


# The public chain, as bundles know it


@pytest.fixture
def known(ledger: Ledger, ask) -> list[KnownHead]:
    """The head that a bundle would publish now."""
    ledger.grant("youth", ONE, "pilot")
    ledger.seal("voter-1", "cells", "confidential", "1" * 32, "a" * 64)
    ledger.charge(ask())
    ledger.seal("voter-1", "noisy", "public", "2" * 32, "b" * 64, 10)
    return [KnownHead("a bundle", *public_chain(ledger.entries())[-1].head, "public")]


def test_what_concerns_confidential_files_moves_no_public_head(ledger: Ledger, known, ask):
    assert known[0].seq == 3
    ledger.seal("voter-2", "cells", "confidential", "3" * 32, "c" * 64)
    ledger.seal("voter-2", "validation", "confidential", "4" * 32, "c" * 64)
    ledger.seal("voter-1", "evaluation", "confidential", "5" * 32, "d" * 64)
    assert public_chain(ledger.entries())[-1].head == (known[0].seq, known[0].hash)
    assert ledger.verify(ledger.anchor, known) == []


def test_an_old_copy_lacks_a_public_head(home: Home, ledger: Ledger, known, ask, tmp_path: Path):
    shutil.copy(home.ledger_file, tmp_path / "backup.db")
    ledger.charge(ask("later"))
    published = [KnownHead("the bundle", *public_chain(ledger.entries())[-1].head, "public")]
    ledger.must_be_current(ledger.anchor, published)
    shutil.copy(tmp_path / "backup.db", home.ledger_file)
    restored, other = open_ledger(home), Anchor(tmp_path / "other.log")
    other.append(*restored.head())
    assert restored.verify(other, known) == []
    with pytest.raises(EvidenceBroken, match="the bundle knows public entry 4.*ends at public entry 3: it is an old copy"):
        restored.must_be_current(other, published)


@pytest.mark.parametrize(("kind", "changes"), [("grant", {"population": "others"}), ("charge", {"release": "other"})])
def test_a_rewritten_public_event_is_found_by_a_public_head(ledger: Ledger, known, kind: str, changes: dict[str, str]):
    forged: list[Entry] = []
    for entry in ledger.entries():
        link = {"previous": forged[-1].hash if forged else NO_HASH} | (changes if entry.kind == kind else {})
        entry = replace(entry, **link)
        forged.append(replace(entry, hash=chain_hash(entry.previous, content_hash(entry))))
    heads = dict(entry.head for entry in public_chain(forged))
    assert heads[known[0].seq] != known[0].hash
    assert public_chain(ledger.entries())[-1].head == (known[0].seq, known[0].hash)  # the control
