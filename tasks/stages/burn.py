"""Burn: a person gives up the charge of a draw that is lost for good. Nothing else burns a charge."""

from __future__ import annotations

from schemas.errors import EvidenceBroken, SpecError
from tasks.stages.audit import must_be_current
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stores.artifacts import Store
from tasks.stores.entries import must_be_name
from tasks.stores.home import Home
from tasks.stores.releases import current, must_follow


def burn(home: Home, name: str, why: str) -> str:
    """Give up the charge of a release whose draw is lost, and say which state that leaves. Refused while nothing is lost."""
    must_be_name("release", name)
    must_be_current(home)
    store = Store(home)
    history = store.ledger.entries(release=name)
    if any(entry.kind == "burn" for entry in current(history)):
        return store.ledger.state(name)
    must_follow("burn", name, history)
    lost = _lost_draws(store, name)
    if not lost:
        raise SpecError(f'nothing that was paid for is lost of release "{name}", so its charge is not burnt. Run it again.')
    if not why.strip():
        raise SpecError(f'burning the charge of release "{name}" needs a reason: --why "…"')
    store.ledger.burn(name, f"{why} (lost: {', '.join(lost)})")
    return store.ledger.state(name)


def _lost_draws(store: Store, name: str) -> list[str]:
    """Stages that a run would refuse to make again."""
    plan = store.find(name, "plan")
    drawn = {"noisy-counts", "tree"}
    if plan is not None and not load_plan(store, PlanReference(plan)).structure_is_drawn:
        drawn.remove("tree")
    sealed = dict.fromkeys(e.details["stage"] for e in store.ledger.entries(release=name) if e.kind == "seal")
    return [stage for stage in sealed if _is_lost(store, name, stage, stage in drawn)]


def _is_lost(store: Store, name: str, stage: str, drawn: bool) -> bool:
    try:
        store.find(name, stage, drawn)
    except EvidenceBroken:
        return True
    return False
