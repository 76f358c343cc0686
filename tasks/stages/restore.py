"""Restore: a backup becomes a home again, unless something that is known elsewhere was charged after it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.errors import EvidenceBroken, SpecError
from tasks.publishing.publication import published_heads
from tasks.stages.audit import must_be_current
from tasks.stores.artifacts import drawn_in
from tasks.stores.backup import ANCHOR, LEDGER, unpack
from tasks.stores.copying import fill
from tasks.stores.entries import KnownHead
from tasks.stores.files import disk_faults, open_folder, private_folder, sync_folder, write_over
from tasks.stores.home import Home
from tasks.stores.identity import must_be_ours
from tasks.stores.ledger import open_ledger
from tasks.stores.soundness import anchor_problems, problems_of
from tasks.stores.timestamps import FOLDER as TIMESTAMPS

# and how their folders are made
SIDES = {"staging": private_folder, "public": open_folder, "keys": private_folder, TIMESTAMPS: private_folder}
RETIRE = "this is the same home as the one that was backed up: end that one, or both would spend the same budget"
BEHIND = (
    "the ledger in the database went on after this backup, and the anchor was lost with the home. Begin a new one: steps "
    'budget anchor --why "…". Draws made since are lost: steps status names their releases'
)


def restore(home: Home, file: Path, passphrase: str) -> dict[str, Any]:
    """Bring a backup back. The ledger comes last: cut short, it is no home yet, and the same command goes on."""
    if home.path.is_dir() and (home.path / LEDGER).exists():
        raise SpecError(f"{home.path} has a ledger already, which a restored one could set back. Restore into a new folder.")
    with disk_faults(home.path), tempfile.TemporaryDirectory(prefix=".restoring-", dir=home.folder) as scratch:
        folder = Path(scratch)
        said = unpack(file, folder, passphrase)
        if (said["ledger"] == "postgresql") != bool(home.ledger_url):
            need = "set STEPS_LEDGER to one" if said["ledger"] == "postgresql" else "unset STEPS_LEDGER"
            raise SpecError(f"the ledger of this backup is kept in {said['ledger']}: {need}. Nothing was restored.")
        going_on = _is_going_on(home, folder)
        _must_lose_nothing(home, folder, file, going_on)
        _place(home, folder, going_on)
    notes = [RETIRE, *_must_be_home(home, going_on)]
    return {"home": str(home.path), "files": len(said["files"]), "entries": open_ledger(home).head()[0], "notes": notes}


def _is_going_on(home: Home, folder: Path) -> bool:
    """Whether the ledger outlived the home: a database with entries is the ledger, and only an empty one is filled."""
    if not home.ledger_url:
        return False
    return not (folder / LEDGER).exists() or bool(open_ledger(home).entries())


def _must_lose_nothing(home: Home, folder: Path, file: Path, going_on: bool) -> None:
    """The ledger that the restored home will have, against every head that the backup, the anchor outside or a bundle at either
    place knows, and every draw."""
    backed_up = Home(folder, ledger_url=home.ledger_url if going_on else None)
    known = [*published_heads(backed_up), *(published_heads(home) if (home.path / "public").is_dir() else [])]
    drawn = [*drawn_in(backed_up), *drawn_in(home)]
    ledger = open_ledger(backed_up)
    if going_on:  # beyond the backup, so its anchor may lack entries, and none of the backup's may be missing
        if (folder / LEDGER).exists():
            known.append(KnownHead(f"the backup {file}", *open_ledger(Home(folder)).head()))
        problems = problems_of(ledger.entries(), ledger.anchor, ledger.anchor.read().heads, known, drawn)
    else:
        problems = ledger.verify(ledger.anchor, known, drawn)
    if home.anchor_file.exists():
        outside = open_ledger(replace(backed_up, anchor_path=home.anchor_file))
        problems += outside.verify(outside.anchor)
    if problems:
        find = "Restore into an empty database, or find a newer copy of this one" if going_on else "Find a newer"
        raise EvidenceBroken(
            f"this {'database' if going_on else 'backup'} would forget what was charged since: {'; '.join(problems[:3])}. "
            f"Nothing was restored. {find}."
        )


def _must_be_home(home: Home, going_on: bool) -> list[str]:
    """What is left for a person to do where the anchor was lost with the home, and the ledger went on after the backup."""
    ledger = open_ledger(home)
    if going_on and any(anchor_problems(len(ledger.entries()), ledger.anchor, ledger.anchor.read().heads)):
        must_be_ours(home, ledger)
        return [BEHIND]
    must_be_current(home)
    return []


def _place(home: Home, folder: Path, going_on: bool) -> None:
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
    if home.ledger_url is None:
        os.replace(folder / LEDGER, home.path / LEDGER)
        sync_folder(home.path)
    elif not going_on:
        fill(open_ledger(home).database, open_ledger(Home(folder)).entries())


def _must_be_free(place: Path, backed_up: Path) -> None:
    if place.exists() and place.read_bytes() != backed_up.read_bytes():
        raise EvidenceBroken(
            f"{place} is there already and differs from the backup. Nothing was restored over it; move it away."
        )
