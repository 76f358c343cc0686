"""Audit: the ledger against its anchor and against the heads in published manifests; every bundle against itself."""

from __future__ import annotations

import hashlib
from pathlib import Path

from schemas.errors import EvidenceBroken
from tasks.publishing import bundle
from tasks.publishing.publication import published_heads
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.bundle import verify_bundle


def bundles(home: Home) -> list[Path]:
    """The folders of everything published."""
    return sorted(path for path in home.public.iterdir() if path.is_dir() and not path.name.startswith("."))


def must_be_current(home: Home) -> None:
    """Refuses a ledger that was edited, or is an older copy than the anchor or a published manifest knows."""
    ledger = open_ledger(home)
    ledger.must_be_current(ledger.anchor, published_heads(home))


def check_ledger(home: Home) -> list[str]:
    """Everything that does not hold in the ledger, and published releases whose manifest is lost or another."""
    ledger = open_ledger(home)
    try:
        problems = ledger.verify(ledger.anchor, published_heads(home))
    except EvidenceBroken as error:
        problems = [*ledger.verify(ledger.anchor), str(error)]
    for entry in ledger.entries():
        if entry.kind == "publish":
            manifest = home.public / (entry.release or "") / bundle.MANIFEST
            found = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else None
            if found != entry.details["manifest_hash"]:
                problems.append(f"{manifest} is missing or not the one that the ledger says was published")
    return problems


def check_bundle(home: Home, folder: Path) -> list[str]:
    """Everything that does not hold in a bundle, its signature by this home's key included."""
    key = home.keys / bundle.PUBLIC_KEY
    problems = verify_bundle(folder, key if key.exists() else None)
    return [f"{folder.name}: {problem}" for problem in problems if not problem.note]
