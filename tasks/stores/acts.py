"""Entries about what is public, and about the home itself: short acts over a ledger."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql

from schemas.errors import SpecError
from schemas.identity import digest

from .entries import Draft, Entry, body_of
from .ledger import Ledger
from .queries import read_entries
from .releases import PUBLIC, current, state_of


def consented(ledger: Ledger, release: str) -> str | None:
    """The hash of the manifest to whose publication the ledger has consented."""
    said = next((entry for entry in current(ledger.entries(release=release)) if entry.kind == "publish"), None)
    return said.details["manifest_hash"] if said else None


def withdraw(ledger: Ledger, release: str, why: str) -> Entry:
    """Takes back what is public; its charge stays. Said again, the first reason stands."""
    if not why.strip():
        raise SpecError(f'a withdrawal of release "{release}" needs a reason, which is published: --why "…"')
    return ledger._mark("withdraw", release, why=why)


def supersede(ledger: Ledger, release: str, by: str) -> Entry:
    """Names the public release that takes another's place; its charge stays."""
    state = state_of(ledger.entries(release=by))
    if by == release or state not in PUBLIC or state == "withdrawn":
        found = "is the same one" if by == release else "has not been charged" if state == "uncharged" else f"is {state}"
        raise SpecError(f'release "{release}" can be superseded by another that is public; "{by}" {found}.')
    entry = ledger._mark("supersede", release, by=by)
    if entry.details["by"] != by:
        raise SpecError(f'release "{release}" was superseded by "{entry.details["by"]}" already, and that stands.')
    return entry


def homes(ledger: Ledger) -> list[Entry]:
    """What was registered of the home that works on this ledger, oldest first; the last one counts."""
    with ledger.database.reading() as connection:
        return read_entries(connection, kind="home")


def register_home(ledger: Ledger, details: dict[str, Any], after: int) -> Entry:
    """Registers a home, or what has changed of it, unless another was registered meanwhile: `after` is how many there are."""

    def draft(connection: sql.Connection) -> Draft:
        found = read_entries(connection, kind="home")
        if len(found) > after and found[-1].details["keys"] != details["keys"]:
            raise SpecError("another home was registered with this ledger meanwhile. Nothing was written; run again.")
        return Draft("home", f"home:{digest(details['keys'])}", None, None, body_of(details))

    return ledger._write(draft)[0]
