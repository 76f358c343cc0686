"""Grant: adds to a population's budget once, however often it is said; and begins a new anchor when a person says so."""

from __future__ import annotations

from typing import Any

from schemas.budget import Asked
from schemas.identity import digest
from tasks.publishing.publication import published_heads
from tasks.stages.audit import must_be_current_ledger
from tasks.stores.artifacts import drawn_in
from tasks.stores.charging import Account
from tasks.stores.entries import Entry, must_be_name
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.trust import renew_anchor


def grant(
    home: Home, population: str, asked: Asked, why: str, neighbours: str, unit: str, key: str | None = None
) -> tuple[Account, Entry | None]:
    """The account afterwards, and the entry if the grant had been made before: the same words are the same grant."""
    ledger = must_be_current_ledger(home)
    terms = {"why": why, "neighbours": neighbours, "unit": unit, "measure": asked.measure}
    said = digest({**terms, "nanos": asked.nanos, "delta": asked.delta})
    name = must_be_name("key", key) if key is not None else f"{population}:same:{said[:32]}"
    before = ledger.head()[0]
    entry = ledger.grant(population, asked.nanos, **terms, delta=asked.delta, key=name)
    return ledger.account(population), entry if entry.seq <= before else None


def begin_anchor(home: Home, why: str) -> dict[str, Any]:
    """A new anchor, where the old one is lost; refused where one that is there, or a bundle, knows other entries."""
    ledger = open_ledger(home)
    entry, new = renew_anchor(ledger, why, published_heads(home), drawn_in(home))
    return {"anchor": str(ledger.anchor.path), "entry": entry.seq, "head": entry.hash, "new": new}
