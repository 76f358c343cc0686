"""Audit: the ledger against its anchor and against the heads in published manifests; every bundle against itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from schemas.errors import EvidenceBroken
from tasks.publishing import bundle
from tasks.publishing.publication import published_heads
from tasks.stores.artifacts import drawn_in
from tasks.stores.entries import Entry
from tasks.stores.home import Home
from tasks.stores.identity import must_be_ours
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.releases import TAKEN_BACK, state_of
from tasks.stores.witnesses import witnesses
from tasks.verify.bundle import verify_bundle


def bundles(home: Home) -> list[Path]:
    """The folders of everything published."""
    there = (home.path / "public").iterdir() if (home.path / "public").exists() else ()  # looking makes no folder
    return sorted(path for path in there if path.is_dir() and not path.name.startswith("."))


def must_be_current(home: Home) -> None:
    """Refuses a ledger that was edited, or is an older copy than the anchor or a published manifest knows; and another home."""
    with suppress(ValueError, KeyError, TypeError):  # an edited ledger, as the next line says
        must_be_ours(home, open_ledger(home))
    must_be_current_ledger(home)


def must_be_current_ledger(home: Home) -> Ledger:
    """The ledger, whichever home this is."""
    ledger = open_ledger(home)
    ledger.must_be_current(ledger.anchor, published_heads(home), drawn_in(home))
    return ledger


def check_ledger(home: Home) -> list[str]:
    """Everything that does not hold in the ledger, and wherever it and public/ tell different stories."""
    ledger = open_ledger(home)
    try:
        problems = ledger.verify(ledger.anchor, published_heads(home), drawn_in(home))
    except EvidenceBroken as error:
        problems = [*ledger.verify(ledger.anchor), str(error)]
    return problems + witnesses(home)[1] + _misplaced(home, ledger.entries())


def _misplaced(home: Home, entries: Sequence[Entry]) -> list[str]:
    """From ledger to folder and back: what was published is there, and what is there was published and never abandoned."""
    problems, known = [], {entry.release: entry for entry in entries if entry.kind == "publish"}
    for release, entry in known.items():
        manifest = home.path / "public" / (release or "") / bundle.MANIFEST
        found = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
        if found != entry.details["manifest_hash"]:
            lost = "missing" if found is None else "not the one that the ledger says was published"
            problems.append(f"{manifest} is {lost}. Run the release again if its publication was cut short, or restore it")
        elif not manifest.with_name(bundle.NOTICE).is_file():
            problems += _untold(manifest.parent, [each for each in entries if each.release == release])
    for folder in bundles(home):
        if folder.name not in known:
            state = state_of(entry for entry in entries if entry.release == folder.name)
            problems.append(
                f'{folder} is public, though the ledger has "{folder.name}" as {state}, not as published. '
                "Run it again if its publication was cut short; otherwise move the folder away, and find out who put it there"
            )
    return problems


def _untold(folder: Path, history: Sequence[Entry]) -> list[str]:
    """What the ledger says was taken back, where whoever has the folder is not told."""
    state = state_of(history)
    if state not in TAKEN_BACK:
        return []
    again = "withdraw {} --why TEXT" if state == "withdrawn" else "supersede {} NEW"
    return [f"{folder} lacks its notice, though the release is {state}. Say it again: steps {again.format(folder.name)}"]


def check_bundle(home: Home, folder: Path) -> list[str]:
    """Everything that does not hold in a bundle, its signature by this home's key included."""
    key = home.keys / bundle.PUBLIC_KEY
    problems = verify_bundle(folder, key if key.exists() else None)
    return [f"{folder.name}: {problem}" for problem in problems if not problem.note]
