"""Whether a ledger's entries are those that were written: their chain, against every head that is known elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.errors import EvidenceBroken

from .anchor import Anchor
from .entries import Entry, Head, KnownHead, chain_problems, head_problems
from .public_chain import public_chain


def problems_of(
    entries: Sequence[Entry], anchor: Anchor, anchored: Sequence[Head], published: Iterable[KnownHead] = ()
) -> list[str]:
    """Every sign that the entries were edited, cut or replaced by an old copy; `anchored` is what the anchor says."""
    heads = [*(KnownHead(f"the anchor {anchor.path}", *head) for head in anchored), *published]
    own, public = ([head for head in heads if head.chain == chain] for chain in ("own", "public"))
    problems = [*chain_problems(entries), *head_problems((entry.head for entry in entries), own)]
    problems += head_problems((entry.head for entry in public_chain(entries)), public, "public entry")
    if not anchored and any(entry.kind == "charge" for entry in entries):
        problems.append(f"the anchor {anchor.path} is missing or empty, though charges were anchored")
    return problems


def must_be_sound(name: str, problems: Sequence[str], nothing: str) -> None:
    """Refuses to go on with a ledger that does not verify; `nothing` says what was not done."""
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise EvidenceBroken(
            f"the ledger {name} does not verify: {'; '.join(problems[:3])}{more}. {nothing}. "
            "Restore the newest ledger and anchor; see: steps budget verify"
        )
