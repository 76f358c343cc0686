"""Heads of the ledger that a timestamp authority has seen (RFC 3161), kept in the home: one file per head.

What goes to the authority is a hash of the head and of a secret that is made for it: who sees the request, or all of them,
learns nothing about the ledger and cannot test a guess.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from schemas.errors import EvidenceBroken
from schemas.identity import canonical

from .entries import Head, KnownHead
from .files import disk_faults, private_folder, write_over
from .home import Home
from .keys import passing_secret

FOLDER = "timestamps"
STATEMENT = "steps-release ledger head, 1"


@dataclass(frozen=True)
class Stamp:
    """A head for which a timestamp was asked; and, once it is there, the answer with the certificates it was checked by."""

    seq: int
    head: str
    secret: str
    response: str | None = None  # DER in hexadecimal
    chain: str | None = None  # certificates in PEM

    @property
    def statement(self) -> bytes:
        """What the authority vouches for, by its SHA-256."""
        said = {"statement": STATEMENT, "seq": self.seq, "head": self.head, "secret": self.secret}
        return canonical(said).encode()

    @property
    def imprint(self) -> bytes:
        return hashlib.sha256(self.statement).digest()


def asked_for(home: Home, head: Head) -> Stamp:
    """The stamp of a head, made on first use: asked again, it is the same question."""
    known = next((stamp for stamp in kept(home) if (stamp.seq, stamp.head) == head), None)
    return known or keep_stamp(home, Stamp(*head, passing_secret()))


def keep_stamp(home: Home, stamp: Stamp) -> Stamp:
    folder = private_folder(home.folder / FOLDER)
    write_over(place_of(folder, stamp), json.dumps(asdict(stamp), indent=1).encode(), 0o600)
    return stamp


def place_of(folder: Path, stamp: Stamp) -> Path:
    """Two ledgers have different heads under one number: each keeps its own file."""
    return folder / f"{stamp.seq:08d}-{stamp.head[:16]}.json"


def kept(home: Home) -> list[Stamp]:
    """All stamps of the home in the order of entries, answered or not."""
    folder = home.path / FOLDER
    with disk_faults(folder):
        return [_read(path) for path in sorted(folder.glob("[0-9]*.json"))]


def _read(path: Path) -> Stamp:
    try:
        stamp = Stamp(**json.loads(path.read_bytes()))
        if place_of(path.parent, stamp) != path:
            raise ValueError
    except (ValueError, TypeError):
        raise EvidenceBroken(f"the timestamp {path} cannot be read, or is another's. Restore it from its backup.") from None
    return stamp


def stamped_heads(home: Home) -> list[KnownHead]:
    """Heads that existed, as an authority says: a ledger that lacks one is an old copy or was rewritten."""
    return [KnownHead(f"the timestamp of entry {each.seq}", each.seq, each.head) for each in kept(home) if each.response]
