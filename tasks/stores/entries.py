"""The ledger's entries and the chain they form: pure values, no database."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from schemas.errors import SpecError

KINDS = ("grant", "charge", "seal", "approve", "reject", "abandon", "burn", "publish", "evaluate")
NO_HASH = "0" * 64  # what the first entry follows
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

SHOWN = ("plan_hash", "spec_hash", "neighbours", "unit")  # of a body, what a proof shows in clear

Head = tuple[int, str]  # the number and the hash of an entry


@dataclass(frozen=True)
class Draft:
    """An entry before it has its place in the chain. Its key names the event: the same key is the same event."""

    kind: str
    key: str
    population: str | None  # None: nothing was charged for this release so far
    release: str | None
    body: str
    amount: int = 0


@dataclass(frozen=True)
class Totals:
    """All that was granted to and charged on a population, in 10⁻⁹."""

    granted: int = 0
    charged: int = 0

    def after(self, kind: str, amount: int) -> Totals:
        return Totals(self.granted + amount * (kind == "grant"), self.charged + amount * (kind == "charge"))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; `hash` covers every other field, and through `previous` every entry before."""

    seq: int
    at: str
    actor: str
    kind: str
    population: str | None
    release: str | None
    key: str
    amount: int
    granted_after: int
    charged_after: int
    body: str
    previous: str
    hash: str

    @property
    def details(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def head(self) -> Head:
        return self.seq, self.hash

    def public_fields(self) -> dict[str, Any]:
        """What a proof may show: who wrote it and the body (it holds the data's keyed fingerprint) only by their hash."""
        public = {name: value for name, value in vars(self).items() if name not in ("actor", "body", "previous", "hash")}
        return public | {"shown": _shown(self.body), "hidden": sha256(canonical([self.actor, self.body]))}

    def says(self, draft: Draft) -> bool:
        return all(getattr(self, field.name) == getattr(draft, field.name) for field in fields(draft))


def canonical(value: Any) -> str:
    """One text per value.

    >>> canonical({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(body: str) -> dict[str, Any]:
    """The terms of a charge, for a proof that it was made for this plan; nothing of a body that is not a ledger's."""
    try:
        details = json.loads(body)
    except ValueError:
        return {}
    return {name: details[name] for name in SHOWN if name in details} if isinstance(details, dict) else {}


def content_hash(public_fields: dict[str, Any]) -> str:
    return sha256(canonical(public_fields))


def chain_hash(previous: str, content: str) -> str:
    """An entry's hash. A proof that an entry is below a head needs only the content hashes of the entries between."""
    return sha256(f"{previous}:{content}")


def link(draft: Draft, previous: Head, totals: Totals, at: str, actor: str) -> Entry:
    """The draft as the entry that follows `previous`; `totals` are the population's so far."""
    after = totals.after(draft.kind, draft.amount)
    place = {"seq": previous[0] + 1, "previous": previous[1], "at": at, "actor": actor}
    sums = {"granted_after": after.granted, "charged_after": after.charged}
    unsigned = Entry(**asdict(draft), **place, **sums, hash="")
    return Entry(**asdict(unsigned) | {"hash": chain_hash(previous[1], content_hash(unsigned.public_fields()))})


def chain_problems(entries: Iterable[Entry]) -> Iterator[str]:
    """Every way in which the entries are not what a ledger could have written, one sentence each."""
    last: Head = (0, NO_HASH)
    totals: dict[str | None, Totals] = {}
    for entry in entries:
        if entry.seq != last[0] + 1:
            yield f"entry {entry.seq} follows entry {last[0]}: entries are missing"
        if entry.previous != last[1]:
            yield f"entry {entry.seq} does not follow from the entry before it"
        if entry.hash != chain_hash(entry.previous, content_hash(entry.public_fields())):
            yield f"entry {entry.seq} was changed after it was written"
        else:
            yield from _sum_problems(entry, totals.get(entry.population, Totals()))
        totals[entry.population] = Totals(entry.granted_after, entry.charged_after)
        last = entry.head


def _sum_problems(entry: Entry, before: Totals) -> Iterator[str]:
    if Totals(entry.granted_after, entry.charged_after) != before.after(entry.kind, entry.amount):
        yield f'entry {entry.seq}: the running totals of population "{entry.population}" do not add up'
    if entry.charged_after > entry.granted_after:
        yield f'entry {entry.seq}: population "{entry.population}" is charged beyond its grant'
    if entry.kind not in KINDS or entry.amount < 0 or (entry.amount > 0) != (entry.kind in ("grant", "charge")):
        yield f"entry {entry.seq} is of no kind and amount that a ledger writes"


def head_problems(entries: Iterable[Entry], heads: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    """Heads known elsewhere that this ledger lacks: it was rewritten, or is an old copy."""
    known = {entry.seq: entry.hash for entry in entries}
    for source, seq, digest in heads:
        if seq not in known:
            yield f"{source} knows entry {seq}; this ledger ends at entry {max(known, default=0)}: it is an old copy"
        elif known[seq] != digest:
            yield f"{source} knows another entry {seq} than this ledger holds: the ledger was rewritten"


def must_be_name(what: str, name: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SpecError(
            f"{what} {name!r} is not a name. Use up to 64 of a-z, 0-9, '-' and '_', beginning with a letter or digit."
        )
    return name
