"""Acts about trust itself: who may act, and where heads are kept."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sql

from schemas.errors import SpecError
from schemas.identity import digest

from .entries import Draft, Entry, KnownHead, body_of, must_be_name
from .ledger import Ledger
from .people import Change
from .queries import read_head
from .signatures import read_signer
from .soundness import anchor_problems, must_be_sound
from .walk import walked


def change_people(ledger: Ledger, change: Change, why: str) -> Entry:
    """One approver's word about a person, once; said by enough of them it is so."""
    must_be_name("name", change.name)
    for role in change.roles:
        must_be_name("role", role)
    if ledger.key_file is None:
        raise SpecError("a change of people is signed. Nothing was written. Say whose key signs: --as FILE, or STEPS_KEY.")
    public = read_signer(ledger.key_file).public

    def draft(connection: sql.Connection) -> Draft | Entry:
        walk = walked(connection)
        person, words = walk.people.active.get(change.name), [change.act, change.name, list(change.roles), change.key]
        if change.act == "add" and person is not None and (person.roles, person.key) == (change.roles, change.key):
            return walk.entries[person.since - 1]
        since = walk.people.changed.get(change.name, 0)  # what is said of a person who has changed meanwhile is another event
        key = f"person:{change.act}:{change.name}:{since}:{digest([*words, public])[:32]}"
        body = {"act": change.act, "name": change.name, "roles": list(change.roles), "public_key": change.key, "why": why}
        return Draft("person", key, None, None, body_of(body))

    return ledger._write(draft)[0]


def renew_anchor(
    ledger: Ledger, why: str, published_heads: Iterable[KnownHead], drawn: Iterable[str] = ()
) -> tuple[Entry, bool]:
    """Begins the anchor anew at the present head. False: it lacks nothing, and nothing was written."""
    if not why.strip():
        raise SpecError('a new anchor needs a reason: --why "…"')
    entries, anchored = ledger.entries(), ledger.anchor.read().heads
    lacking = [*anchor_problems(len(entries), ledger.anchor, anchored)]
    others = [problem for problem in ledger.verify(ledger.anchor, published_heads, drawn) if problem not in lacking]
    must_be_sound(ledger.database.name, others, "No anchor was begun")
    if entries and not lacking:
        return entries[-1], False

    def draft(connection: sql.Connection) -> Draft:
        return Draft("anchor", f"anchor:{read_head(connection)[0] + 1}", None, None, body_of({"why": why}))

    return ledger._write(draft, new_anchor=True)
