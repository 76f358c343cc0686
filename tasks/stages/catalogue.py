"""Catalogue: a static site over everything that is published, for people, feeds and programs. Only what is public enters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schemas.errors import EvidenceBroken, SpecError
from tasks.publishing import bundle
from tasks.publishing.catalogue.accounts import Ahead, Run, accounts_of
from tasks.publishing.catalogue.feeds import ATOM, DCAT, INDEX, LIST, atom, dcat, listing
from tasks.publishing.catalogue.page import heading, make_index
from tasks.publishing.catalogue.shelf import Shelved, in_order, read_shelved
from tasks.publishing.catalogue.site import RELEASES, Written, must_be_catalogue, write_site
from tasks.publishing.publication import published_heads
from tasks.stages.audit import bundles, check_bundle
from tasks.stages.foresee import Outlook
from tasks.stores.acts import consented
from tasks.stores.files import alone, disk_faults
from tasks.stores.home import Home
from tasks.stores.identity import must_be_ours
from tasks.stores.keys import SIGNING_PUBLIC
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain
from tasks.verify.signature import fingerprint

PATIENCE = 60.0  # seconds to wait for another writer


def catalogue(
    home: Home,
    out: Path,
    outlooks: Iterable[Outlook] = (),
    today: str = "",
    address: str = "",
    problems: Mapping[str, list[str]] | None = None,
) -> dict[str, Any]:
    """Writes the site, or brings it up to date; what does not verify is left out and told.

    `outlooks`, seen on day `today`: what the schedules will ask. `address`: where the site will lie, for links in feeds.
    `problems` of bundles that somebody has just verified; others are verified here.
    """
    must_be_catalogue(out, home)
    if address and not address.startswith(("https://", "http://")):
        raise SpecError(f"--address {address!r} is where the catalogue will lie: https://data.example/catalogue/")
    ledger, found, known = _sound_ledger(home), dict[str, list[str]](), problems or {}
    for folder in bundles(home):
        told = known[folder.name] if folder.name in known else check_bundle(home, folder)
        found[folder.name] = list(told) or _unknown(ledger, folder)
    with alone(home.folder / "publish.lock", PATIENCE):  # no notice changes meanwhile
        releases = in_order(read_shelved(home.public / name) for name, known in found.items() if not known)
    with alone(home.folder / "catalogue.lock", PATIENCE), disk_faults(out):
        written = _write(home, ledger, out, releases, _ahead(outlooks, today), f"{address.rstrip('/')}/" if address else "")
    left_out = {name: known for name, known in found.items() if known}
    return _answer(out, releases, written, left_out)


def _sound_ledger(home: Home) -> Ledger:
    """This home's, and no older copy than is known elsewhere; a bundle whose manifest cannot be read is told as a bundle."""
    ledger = open_ledger(home)
    must_be_ours(home, ledger)
    try:
        heads = published_heads(home)
    except EvidenceBroken:
        heads = []
    ledger.must_be_current(ledger.anchor, heads)
    return ledger


def _unknown(ledger: Ledger, folder: Path) -> list[str]:
    """A bundle is in the catalogue where the ledger says that this one was published."""
    if consented(ledger, folder.name) == _manifest_hash(folder):
        return []
    return [f"{folder.name}: is not what the ledger says was published under this name"]


def _manifest_hash(folder: Path) -> str:
    return bundle.facts_of((folder / bundle.MANIFEST).read_bytes()).sha256


def _ahead(outlooks: Iterable[Outlook], today: str) -> dict[str, Ahead]:
    """Days and amounts; what a release will be called is not told before it is published."""
    return {
        each.population: Ahead(
            today,
            tuple(Run(run.due.date().isoformat(), left) for run, left in zip(each.runs, each.left, strict=True)),
            each.dry_on.date().isoformat() if each.dry_on else None,
        )
        for each in outlooks
        if each.runs
    }


def _write(home: Home, ledger: Ledger, out: Path, releases: list[Shelved], ahead: dict[str, Ahead], address: str) -> Written:
    populations = {each.name: each.population for each in releases}
    accounts = accounts_of(public_chain(ledger.entries()), populations, ahead)
    key = home.keys / SIGNING_PUBLIC
    pem = key.read_bytes() if key.is_file() else None
    title = heading(releases)
    files = {
        LIST: listing(releases, accounts),
        DCAT: dcat(releases, title, address),
        ATOM: atom(releases, title, address),
        INDEX: make_index(releases, accounts, fingerprint(pem) if pem else None),
    }
    files |= {bundle.PUBLIC_KEY: pem} if pem else {}
    history = home.public / bundle.KEY_HISTORY
    files |= {f"{RELEASES}/{bundle.KEY_HISTORY}": history.read_bytes()} if history.is_file() else {}
    return write_site(out, releases, files)


def _answer(out: Path, releases: list[Shelved], written: Written, left_out: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "ok": not left_out,
        "catalogue": str(out),
        "index": str(out / INDEX),
        "releases": len(releases),
        "copied": list(written.copied),
        "kept": list(written.kept),
        "removed": list(written.removed),
        "problems": [text for texts in left_out.values() for text in texts],
        "left_out": sorted(left_out),
    }
