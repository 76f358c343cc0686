"""Entries about what is public, and about the home itself: short acts over a ledger."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import sqlalchemy as sql

from schemas.budget import show_nanos
from schemas.errors import BudgetRefused, SpecError
from schemas.identity import digest

from .charging import must_be_amount, no_grant
from .entries import Draft, Entry, body_of
from .ledger import Ledger
from .lifetimes import must_be_shareable
from .queries import read_account, read_entries, read_head
from .releases import PUBLIC, current, state_of
from .walk import walked
from .waves import Cap, Waves


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


def waves_of(ledger: Ledger) -> Waves:
    """Who shares people with whom by now; a copy, in which more can be supposed."""
    with ledger.database.reading() as connection:
        return deepcopy(walked(connection).waves)


def cap(
    ledger: Ledger, population: str, nanos: int, measure: str, why: str, others: tuple[str, ...] = ()
) -> tuple[Entry, bool]:
    """The most that somebody in this population, and in all that share people with it, may lose in a lifetime.

    `others` share people with it, from now on and for good. The last cap on a population counts; of several over a group every
    one holds. False: nothing changed, and the entry is the one that stands.
    """
    must_be_amount(nanos, measure)
    if not why.strip():
        raise SpecError(f'a lifetime cap on population "{population}" needs a reason: --why "…"')

    def draft(connection: sql.Connection) -> Draft | Entry:
        account, waves = read_account(connection, population), walked(connection).waves
        if account is None:
            raise BudgetRefused(no_grant(population, measure))
        asked = Cap(population, nanos, measure)
        group = must_be_shareable(waves, population, others, asked)
        if waves.caps.get(population) == asked and group == waves.group(population):
            return read_entries(connection, kind="cap", population=population)[-1]
        terms = {"why": why, "cap": show_nanos(nanos), "measure": measure, "with": sorted(set(others))}
        key = f"cap:{population}:{read_head(connection)[0] + 1}"
        written_in = None if account.measure == "pure" else account.measure  # as all entries of the population
        return Draft("cap", key, population, None, body_of(terms), measure=written_in)

    return ledger._write(draft)
