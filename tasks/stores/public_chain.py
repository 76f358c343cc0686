"""The public chain: what a release may publish of the ledger. Computed from the entries whenever it is needed, never stored.

The ledger's own chain covers everything: who, why, when to the microsecond, keyed hashes of records and of confidential files.
A published hash over any of that would make the guarantee computational: whoever held the key, or broke the hash, could test a
guess about a record. So the public chain is another one, over what follows from public inputs and from what was paid for.
Left out are all entries about confidential artifacts, so that its length does not depend on records either: a run that was
repeated on other data, or an evaluation. Entries are numbered by their own counter, and days stand in place of times.

What remains are acts of those who run the releases: that something was granted, capped, decided, burnt, abandoned, published or
withdrawn, on which day, and in which order where releases run side by side. Whoever guesses such an act exactly can confirm
it. A head of this chain pins no actor, reason or time of day: the ledger's own chain does, whose heads are in the anchor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from schemas.identity import chain_hash, digest

from .entries import NO_HASH, Entry, Head
from .releases import BEFORE_DRAW

# Of a body, what is public. A digest is of a public artifact: noisy counts or what was made from them.
SHOWN: dict[str, tuple[str, ...]] = {
    "grant": ("neighbours", "unit", "delta"),
    "cap": ("cap", "measure", "with"),
    "charge": ("plan_hash", "spec_hash", "neighbours", "unit", "overlaps", "waves"),
    "seal": ("stage", "digest"),
    "publish": ("manifest_hash",),
    "approve": (),
    "reject": (),
    "abandon": (),
    "burn": (),
    "withdraw": (),
    "supersede": ("by",),
}


@dataclass(frozen=True)
class PublicEntry:
    """One entry of the public chain."""

    content: dict[str, Any]
    previous: str

    @property
    def content_hash(self) -> str:
        return digest(self.content)

    @property
    def hash(self) -> str:
        return chain_hash(self.previous, self.content_hash)

    @property
    def head(self) -> Head:
        return self.content["seq"], self.hash


def public_chain(entries: Iterable[Entry]) -> list[PublicEntry]:
    """The public entries of a whole ledger, in order."""
    chain: list[PublicEntry] = []
    for entry in entries:
        if is_public(entry):
            previous = chain[-1].hash if chain else NO_HASH
            chain.append(PublicEntry(public_content(entry, len(chain) + 1), previous))
    return chain


def is_public(entry: Entry) -> bool:
    """Whether an entry is about nothing confidential."""
    if entry.kind != "seal":
        return entry.kind in SHOWN
    said = entry.said
    return said.get("side") == "public" and said.get("stage") not in BEFORE_DRAW


def public_content(entry: Entry, number: int) -> dict[str, Any]:
    """An entry's public content: it takes what it shows from a list, so that nothing new is shown by accident."""
    said = entry.said
    in_measure = {"measure": entry.measure} if entry.measure is not None and entry.kind in ("grant", "charge") else {}
    return {
        "seq": number,
        "date": entry.at[:10],
        "kind": entry.kind,
        "population": entry.population,
        "release": entry.release,
        "key": None if entry.kind in ("grant", "cap") else entry.key,  # theirs are made from their place in the ledger
        "amount": entry.amount,
        "granted_after": entry.granted_after,
        "charged_after": entry.charged_after,
        "shown": {name: said[name] for name in SHOWN[entry.kind] if name in said},
        **in_measure,
    }
