"""Decide: a person approves, rejects or abandons a release; the ledger remembers who and why."""

from __future__ import annotations

from tasks.stages.audit import must_be_current
from tasks.stages.forget import EXACT
from tasks.stores.artifacts import Store
from tasks.stores.home import Home


def decide(home: Home, name: str, verdict: str, who: str, why: str) -> str:
    """Record the verdict and say which state it leaves. A release that will never be published needs no exact counts."""
    must_be_current(home)
    store = Store(home)
    if verdict == "abandon":
        store.ledger.abandon(name, why)
    else:
        store.ledger.decide(name, verdict, who, why)
    state = store.ledger.state(name)
    if state in ("rejected", "abandoned"):
        store.forget_confidential(name, EXACT)
    return state
