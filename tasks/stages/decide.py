"""Decide: a person approves, rejects or abandons a release; the ledger remembers who and why."""

from __future__ import annotations

from schemas.errors import SpecError
from tasks.stages.audit import must_be_current_ledger
from tasks.stages.forget import EXACT
from tasks.stores.artifacts import Store
from tasks.stores.entries import must_be_name
from tasks.stores.home import Home
from tasks.stores.releases import CLOSED, UNDONE


def decide(home: Home, name: str, verdict: str, who: str, why: str) -> str:
    """Record the verdict and say which state it leaves. A release that will never be published needs no exact counts."""
    must_be_current_ledger(home)
    store = Store(home)
    if verdict != "approve":
        _must_not_be_public(home, name, store.ledger.state(name))
    if verdict == "abandon":
        store.ledger.abandon(name, why)
    else:
        store.ledger.decide(name, verdict, who, why)
    state = store.ledger.state(name)
    if state in UNDONE:
        store.forget_confidential(name, EXACT)
    return state


def _must_not_be_public(home: Home, name: str, state: str) -> None:
    """Earlier versions gave a bundle its place before the ledger knew of it: the ledger must learn of it first."""
    if state not in CLOSED and (home.path / "public" / must_be_name("release", name)).exists():
        raise SpecError(
            f'release "{name}" is public: its bundle lies in {home.path / "public" / name}, though the ledger has it as '
            f'{state}. Run it again, so that the ledger knows; then take it back: steps withdraw {name} --why "…"'
        )
