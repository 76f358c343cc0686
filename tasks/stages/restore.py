"""Restore: a backup becomes a home again, unless something that is known elsewhere was charged after it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from schemas.errors import EvidenceBroken, SpecError
from tasks.publishing.publication import published_heads
from tasks.stages.audit import must_be_current
from tasks.stores.artifacts import drawn_in
from tasks.stores.backup import ANCHOR, LEDGER, unpack
from tasks.stores.files import disk_faults, open_folder, private_folder, sync_folder, write_over
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.timestamps import FOLDER as TIMESTAMPS

# and how their folders are made
SIDES = {"staging": private_folder, "public": open_folder, "keys": private_folder, TIMESTAMPS: private_folder}
RETIRE = "this is the same home as the one that was backed up: end that one, or both would spend the same budget"


def restore(home: Home, file: Path, passphrase: str) -> dict[str, Any]:
    """Bring a backup back. The ledger comes last: cut short, it is no home yet, and the same command goes on."""
    if home.path.is_dir() and (home.path / LEDGER).exists():
        raise SpecError(f"{home.path} has a ledger already, which a restored one could set back. Restore into a new folder.")
    with disk_faults(home.path), tempfile.TemporaryDirectory(prefix=".restoring-", dir=home.folder) as scratch:
        folder = Path(scratch)
        said = unpack(file, folder, passphrase)
        if (said["ledger"] == "postgresql") != bool(home.ledger_url):
            need = "set STEPS_LEDGER to it" if said["ledger"] == "postgresql" else "unset STEPS_LEDGER"
            raise SpecError(f"the ledger of this backup is kept in {said['ledger']}: {need}. Nothing was restored.")
        _must_lose_nothing(home, folder)
        _place(home, folder)
    must_be_current(home)
    return {"home": str(home.path), "files": len(said["files"]), "entries": open_ledger(home).head()[0], "notes": [RETIRE]}


def _must_lose_nothing(home: Home, folder: Path) -> None:
    """The ledger of the backup, against every head that it, the anchor outside or a bundle at either place knows,
    and every draw."""
    backed_up = Home(folder, ledger_url=home.ledger_url)
    known = [*published_heads(backed_up), *(published_heads(home) if (home.path / "public").is_dir() else [])]
    ledger = open_ledger(backed_up)
    problems = ledger.verify(ledger.anchor, known, [*drawn_in(backed_up), *drawn_in(home)])
    if home.anchor_file.exists():
        outside = open_ledger(Home(folder, ledger_url=home.ledger_url, anchor_path=home.anchor_file))
        problems += outside.verify(outside.anchor)
    if problems:
        raise EvidenceBroken(
            f"this backup would forget what was charged since: {'; '.join(problems[:3])}. Nothing was restored. Find a newer."
        )


def _place(home: Home, folder: Path) -> None:
    files = [path.relative_to(folder) for side in SIDES for path in sorted((folder / side).rglob("*")) if path.is_file()]
    for path in files:
        _must_be_free(home.path / path, folder / path)
    for path in files:
        for parent in reversed(path.parents[:-1]):
            SIDES[path.parts[0]](home.path / parent)
        os.replace(folder / path, home.path / path)
        sync_folder((home.path / path).parent)
    if (folder / ANCHOR).exists() and not home.anchor_file.exists():
        write_over(home.anchor_file, (folder / ANCHOR).read_bytes(), 0o600)
    if (folder / LEDGER).exists():
        os.replace(folder / LEDGER, home.path / LEDGER)
        sync_folder(home.path)


def _must_be_free(place: Path, backed_up: Path) -> None:
    if place.exists() and place.read_bytes() != backed_up.read_bytes():
        raise EvidenceBroken(
            f"{place} is there already and differs from the backup. Nothing was restored over it; move it away."
        )
