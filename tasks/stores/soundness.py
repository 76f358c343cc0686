"""Whether a ledger's entries are those that were written: their chain, against every head that is known elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from schemas.errors import EvidenceBroken

from .anchor import Anchor
from .entries import NO_HASH, Entry, Head, KnownHead, chain_problems, head_problems
from .people import People
from .public_chain import public_chain
from .waves import wave_problems


def problems_of(
    entries: Sequence[Entry],
    anchor: Anchor,
    anchored: Sequence[Head],
    published: Iterable[KnownHead] = (),
    drawn: Iterable[str] = (),
) -> list[str]:
    """Every sign that the entries were edited, cut or replaced by an old copy; `anchored` is what the anchor says, `drawn` are
    the releases of which draws lie in the home."""
    heads = [*(KnownHead(f"the anchor {anchor.path}", *head) for head in anchored), *published]
    own, public = ([head for head in heads if head.chain == chain] for chain in ("own", "public"))
    problems = [*chain_problems(entries), *people_problems(entries), *head_problems((entry.head for entry in entries), own)]
    problems += wave_problems(entries)
    problems += head_problems((entry.head for entry in public_chain(entries)), public, "public entry")
    return problems + [*_forgotten(entries, drawn)]


def _forgotten(entries: Iterable[Entry], drawn: Iterable[str]) -> Iterator[str]:
    """Nothing is drawn before it is charged: of a draw without a charge, the ledger forgot it."""
    charged = {entry.release for entry in entries if entry.kind == "charge"}
    for release in sorted({*drawn} - charged):
        yield f'draws of release "{release}" lie in staging/, and this ledger never charged it: it is an old copy'


def people_problems(entries: Iterable[Entry]) -> Iterator[str]:
    """Entries that nobody signed who may, once people are registered."""
    people, ledger = People(), NO_HASH
    for entry in entries:
        yield from people.problems(entry, ledger)
        ledger = entry.hash if ledger == NO_HASH else ledger


def anchor_problems(length: int, anchor: Anchor, anchored: Sequence[Head]) -> Iterator[str]:
    """An anchor lacks the last entry at most, its writer having been killed: the one before was anchored before it was written.

    `anchored` must have been read no earlier than the ledger.
    """
    last = max((seq for seq, _ in anchored), default=0)
    if last >= length - 1:
        return
    shared = "Does STEPS_ANCHOR name the one that all who write to this ledger share?"
    new = f'{shared} If it was lost or moved on purpose, begin a new one: steps budget anchor --why "…"'
    if not anchored:
        yield f"the anchor {anchor.path} is missing or empty, though the ledger has {length} entries. {new}"
    else:
        yield f"the anchor {anchor.path} ends at entry {last}, the ledger at {length}: it is an old copy, or another's. {new}"


def must_be_sound(name: str, problems: Sequence[str], nothing: str) -> None:
    """Refuses to go on with a ledger that does not verify; `nothing` says what was not done."""
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise EvidenceBroken(
            f"the ledger {name} does not verify: {'; '.join(problems[:3])}{more}. {nothing}. "
            "Restore the newest ledger and anchor; see: steps budget verify"
        )
