"""How an entry comes into the ledger: compared first, signed, linked, committed, anchored; and then its caller hears of it."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime

import sqlalchemy as sql

from schemas.budget import show_nanos
from schemas.errors import EvidenceBroken, InfrastructureFault, SpecError

from .anchor import Anchor
from .database import ENTRIES, SCHEMA_VERSION, Database, raise_version, version_of
from .entries import NO_HASH, SIGNED, Draft, Entry, KnownHead, body_of, head_problems, link
from .home import KeyPlace
from .people import Change, People, must_be_allowed
from .queries import read_by_key, read_entries, read_totals
from .signatures import Signer, read_signer, statement_of
from .soundness import anchor_problems, must_be_sound, problems_of
from .walk import Walk, walked

Decide = Callable[[sql.Connection], Draft | Entry]


def append(
    database: Database, anchor: Anchor, decide: Decide, key_file: KeyPlace | None, new_anchor: bool
) -> tuple[Entry, bool]:
    """Appends what `decide` drafts, in one transaction; False: the entry was there already.

    `new_anchor`: an anchor that lacks entries is no reason to refuse, one that knows others is.
    """
    signer = read_signer(key_file) if key_file else None  # a passphrase is asked for before anybody has to wait
    with database.writing() as connection:
        old = _verified(database, anchor, connection) if version_of(connection) < SCHEMA_VERSION else None
        walk = walked(connection)
        _must_agree(database, anchor, walk, new_anchor)
        anchor.must_be_writable()
        if walk.head != (0, NO_HASH):
            anchor.append(*walk.head)  # so the anchor lacks one entry at most, wherever a process is killed
        draft = decide(connection)
        if isinstance(draft, Entry):
            return draft, False
        if (found := read_by_key(connection, draft.key)) is not None:
            _must_say(found, draft)
            return found, False
        entry = link(_signed(draft, walk, signer), walk.head, read_totals(connection, draft.population), _now(), account_name())
        if old is not None:
            raise_version(connection)
            _must_be_unchanged(database, anchor, connection, old)
        connection.execute(sql.insert(ENTRIES).values(asdict(entry)))
    _anchor(anchor, entry)
    return entry, True


def migrate(database: Database, anchor: Anchor) -> int:
    """Brings the tables of an earlier version up to date without an entry, all of it, verified, or not at all; from which."""
    with database.writing() as connection:
        version = version_of(connection)
        if version < SCHEMA_VERSION:
            old = _verified(database, anchor, connection)
            raise_version(connection)
            _must_be_unchanged(database, anchor, connection, old)
    return version


def _must_agree(database: Database, anchor: Anchor, walk: Walk, new_anchor: bool) -> None:
    """Whoever writes to an old copy would fork the chain, and the newest ledger would be refused ever after."""
    heads = [KnownHead(f"the anchor {anchor.path}", *head) for head in anchor.last().heads]
    problems = [*head_problems((entry.head for entry in walk.entries), heads)]
    if not new_anchor:
        problems += anchor_problems(len(walk.entries), anchor, [(head.seq, head.hash) for head in heads])
    must_be_sound(database.name, problems, "Nothing was written")


def _signed(draft: Draft, walk: Walk, signer: Signer | None) -> Draft:
    """The draft with the signature that it needs; as it is where nobody is registered."""
    if not walk.people.concerns(draft.kind):
        return draft
    details = json.loads(draft.body)
    change = Change.of(details) if draft.kind == "person" else None
    by = must_be_allowed(walk.people, draft, signer.public if signer else None, change)
    if change is not None and (impossible := walk.people.impossible(change)) is not None:
        raise SpecError(f"{impossible}. Nothing was written. See: steps people list")
    assert signer is not None
    signature = signer.sign(statement_of(draft, details, walk.identity))
    return replace(draft, body=body_of(details | {SIGNED: {"by": by, "key": signer.public, "signature": signature}}))


def name_of(people: People, key_file: KeyPlace | None) -> str | None:
    """Under which name the key's owner acts; None where nobody is registered."""
    if not people.are_registered:
        return None
    person = people.owner_of(read_signer(key_file).public) if key_file else None
    if person is None:
        found = f"the key {key_file} is no registered person's, or was revoked" if key_file else "no key was given"
        raise SpecError(
            f"people are registered in this ledger, and {found}. Nothing was written. Say whose key signs: --as FILE, or "
            "STEPS_KEY. See: steps people list"
        )
    return person.name


def _anchor(anchor: Anchor, entry: Entry) -> None:
    try:
        anchor.append(*entry.head)
    except InfrastructureFault as fault:
        raise InfrastructureFault(
            f"{what_was_kept(entry)}, and stays. Its head could not be written to the anchor: {str(fault).partition('. ')[0]}. "
            f'Mend that, then run the same again: the entry is found by its key "{entry.key}", and is not written twice.'
        ) from None


def what_was_kept(entry: Entry) -> str:
    """An entry in words."""
    amount = f" of {'ρ' if entry.measure else 'ε'}={show_nanos(entry.amount)}" if entry.amount else ""
    to = (
        f' for release "{entry.release}"'
        if entry.release
        else f' to population "{entry.population}"'
        if entry.population
        else ""
    )
    return f"{entry.kind}{amount}{to} is entry {entry.seq} of the ledger"


def _verified(database: Database, anchor: Anchor, connection: sql.Connection) -> list[Entry]:
    """The entries, which verify: only then may their table be changed."""
    entries, anchored = read_entries(connection), anchor.read().heads
    problems = [*problems_of(entries, anchor, anchored), *anchor_problems(len(entries), anchor, anchored)]
    must_be_sound(database.name, problems, "It was not migrated, and nothing was written")
    return entries


def _must_be_unchanged(database: Database, anchor: Anchor, connection: sql.Connection, before: list[Entry]) -> None:
    if _verified(database, anchor, connection) != before:
        raise EvidenceBroken(f"the migration of the ledger {database.name} changed an entry; it was undone.")


def _must_say(found: Entry, draft: Draft) -> None:
    if not found.says(draft):
        raise EvidenceBroken(f'entry {found.seq} of the ledger has the key "{draft.key}" and says something else.')


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def account_name() -> str:
    """The account that runs the process, not what its environment says."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
