"""A release's life as the ledger tells it: which state its entries leave it in, and what may come next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.errors import SpecError

from .approvals import is_approved, needs_approval, signer_of, voices
from .entries import Entry

# Made from public inputs or from records alone: making them again gives the same. Every other stage holds a draw.
BEFORE_DRAW = frozenset({"plan", "cells", "validation"})

# Which states an entry may follow; a published release can be neither burnt nor undone, only withdrawn or superseded.
# "publish" is the ledger's consent, written before the bundle gets its place: what is public was never abandoned.
MAY_FOLLOW = {
    "seal": {"charged", "drawn", "waiting", "approved", "published"},
    "approve": {"drawn", "waiting"},
    "reject": {"drawn", "waiting"},
    "abandon": {"charged", "drawn", "waiting", "approved", "burnt"},
    "burn": {"charged", "drawn", "waiting", "approved"},
    "publish": {"drawn", "approved"},
    "evaluate": {"published"},
    "withdraw": {"published", "evaluated", "superseded"},
    "supersede": {"published", "evaluated", "withdrawn"},
}
_LEAVES = {
    "charge": "charged",
    "approve": "approved",
    "reject": "rejected",
    "abandon": "abandoned",
    "burn": "burnt",
    "publish": "published",
    "evaluate": "evaluated",
    "withdraw": "withdrawn",
    "supersede": "superseded",
}
TAKEN_BACK = frozenset({"withdrawn", "superseded"})  # public, with a notice
FINISHED = frozenset({"evaluated"}) | TAKEN_BACK  # nothing left to be done needs its records
PUBLIC = frozenset({"published", "evaluated"}) | TAKEN_BACK
UNDONE = frozenset({"rejected", "abandoned"})  # charged, and never public
CLOSED = UNDONE | PUBLIC


@dataclass(frozen=True)
class ReleaseState:
    """What `steps releases` shows. In 10⁻⁹ of the measure: the last charge, and all charges when an earlier one was burnt."""

    name: str
    population: str
    amount: int
    charged: int
    attempt: int
    state: str
    actor: str
    at: str
    approver: str | None
    hashes: dict[str, str]
    measure: str = "pure"
    unit: str = "person"
    signer: str | None = None  # the registered person whose key signed the charge; `actor` is the account


def state_of(history: Iterable[Entry]) -> str:
    """The state that a release's entries, in order, leave it in."""
    state, since = "uncharged", list[Entry]()
    for entry in history:
        since = [entry] if entry.kind == "charge" else [*since, entry]
        if entry.kind == "approve" and not is_approved(since):
            continue
        if entry.kind != "seal":
            state = _LEAVES[entry.kind] if state != "withdrawn" else state  # a successor does not make it good again
        elif state == "charged" and is_draw(entry):
            state = "waiting" if needs_approval(since[0]) else "drawn"
    return state


def is_draw(entry: Entry) -> bool:
    return entry.kind == "seal" and entry.details["stage"] not in BEFORE_DRAW


def must_follow(kind: str, release: str, history: Sequence[Entry]) -> None:
    """Refuses an entry that the release's state does not allow."""
    state = state_of(history)
    if state not in MAY_FOLLOW[kind]:
        found = "has not been charged" if state == "uncharged" else f"is {state}"
        allowed = " or ".join(sorted(MAY_FOLLOW[kind]))
        advice = _taking_back(release) if state in PUBLIC and kind in ("abandon", "reject") else f"See: steps show {release}"
        raise SpecError(f'release "{release}" {found}; {kind} is for a release that is {allowed}. {advice}')


def _taking_back(release: str) -> str:
    return f'Public it is, or will be once it is run again; then take it back: steps withdraw {release} --why "…"'


def current(history: Sequence[Entry]) -> list[Entry]:
    """The entries since the last charge, that charge included: what a burnt charge left behind counts no more."""
    starts = [place for place, entry in enumerate(history) if entry.kind == "charge"]
    return list(history[starts[-1] :]) if starts else []


def attempt_of(history: Iterable[Entry]) -> int:
    """How often the release was charged; above 1 only after a burnt charge."""
    return sum(entry.kind == "charge" for entry in history)


def find_seal(history: Sequence[Entry], stage: str) -> Entry | None:
    """The last seal of the stage; of a draw only under the current charge, and none once that is burnt."""
    under_charge = [] if state_of(history) == "burnt" else current(history)
    among = history if stage in BEFORE_DRAW else under_charge
    return next((e for e in reversed(among) if e.kind == "seal" and e.details["stage"] == stage), None)


def times_remade(seal: Entry) -> int:
    """How often an artifact was made again under its charge, after it was lost."""
    return int(seal.details.get("remade", 0))


def is_stale(seal: Entry, history: Sequence[Entry]) -> bool:
    """Whether a synthetic set was made from counts that were lost, and made again since: it does not belong to them."""
    counts = find_seal(history, "consistent-counts")
    return seal.details["stage"].startswith("synthetic-") and counts is not None and counts.seq > seal.seq


def find_decision(history: Sequence[Entry]) -> Entry | None:
    """The rejection, or the approval with which there were enough."""
    entries = current(history)
    places = [place for place, entry in enumerate(entries, start=1) if entry.kind in ("approve", "reject")]
    return next((entries[n - 1] for n in places if entries[n - 1].kind == "reject" or is_approved(entries[:n])), None)


def summarise(history: Sequence[Entry]) -> ReleaseState:
    """The state of a release that was charged at least once."""
    entries, decision = current(history), find_decision(history)
    charge = entries[0]
    hashes = {name: charge.details[name] for name in ("plan_hash", "spec_hash")}
    seals = [entry.details for entry in entries if is_draw(entry)]
    hashes |= {seal["stage"]: seal["digest"] for seal in seals if seal["side"] == "public"}
    for entry in entries:
        hashes |= {"manifest_hash": entry.details["manifest_hash"]} if entry.kind == "publish" else {}
    return ReleaseState(
        name=charge.release or "",
        population=charge.population or "",
        amount=charge.amount,
        charged=sum(entry.amount for entry in history if entry.kind == "charge"),
        attempt=attempt_of(history),
        state=state_of(history),
        actor=charge.actor,
        at=charge.at,
        approver=", ".join(voices(entries)) or decision.details["who"] if decision and decision.kind == "approve" else None,
        hashes=hashes,
        measure=charge.measure or "pure",
        unit=charge.details["unit"],
        signer=signer_of(charge),
    )
