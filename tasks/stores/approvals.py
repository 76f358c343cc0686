"""Whether enough people approved a release: pure rules over the entries since its charge.

Who may approve at all was looked at when each approval was written, and is again when the ledger is verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.identity import digest

from .entries import SIGNED, Entry


def approval_asked(charge: Entry) -> Any:
    """What the release's spec says: "none", "required", or how many and from whom."""
    return charge.details.get("context", {}).get("approval", "none")


def needs_approval(charge: Entry) -> bool:
    return bool(approval_asked(charge) != "none")


def required(charge: Entry) -> int:
    asked = approval_asked(charge)
    return int(asked["required"]) if isinstance(asked, dict) else 1


def signer_of(entry: Entry) -> str | None:
    """Who signed an entry: of a charge, who runs the release. None: nobody was registered."""
    return entry.said[SIGNED]["by"] if SIGNED in entry.said else None


def sealed_hash(entries: Sequence[Entry]) -> str:
    """What would be published, as far as it is sealed: an approval is of this, and of nothing that is made later."""
    seals = [entry.details for entry in entries if entry.kind == "seal"]
    return digest({seal["stage"]: seal["digest"] for seal in seals if seal["side"] == "public"})


def voices(entries: Sequence[Entry]) -> list[str]:
    """Who approved what is sealed now, each once, in order."""
    signed = [entry.details for entry in entries if entry.kind == "approve" and SIGNED in entry.said]
    now = sealed_hash(entries) if signed else ""
    return list(dict.fromkeys(said["who"] for said in signed if said.get("sealed") == now))


def is_approved(entries: Sequence[Entry]) -> bool:
    """Entries since the charge: as many as it asks approved, and not only the person who runs it."""
    charge = entries[0]
    if any(entry.kind == "approve" and SIGNED not in entry.said for entry in entries):
        return True  # nobody was registered when it was written
    who = voices(entries)
    return len(who) >= required(charge) and any(name != signer_of(charge) for name in who)


def lacking(history: Sequence[Entry]) -> str:
    """Who else has to approve, in words."""
    starts = [place for place, entry in enumerate(history) if entry.kind == "charge"]
    entries = history[starts[-1] :]
    asked, who = approval_asked(entries[0]), voices(entries)
    roles = (asked.get("from") if isinstance(asked, dict) else None) or ("approver",)
    more = max(required(entries[0]) - len(who), 1)
    so_far = f" (so far: {', '.join(who)})" if who else ""
    return f"{more} more of {' or '.join(roles)} must approve{so_far}"
