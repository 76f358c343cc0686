"""Finished: a release that has come to its end is returned, or refused, before a single record is read.

Whether a table equals the one that was released is confidential: a run under a finished name does not look.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.spec.release import Release
from tasks.publishing.bundle import table_stages
from tasks.stages.forget import EXACT
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stores.artifacts import Reference, Store
from tasks.stores.charging import must_not_be_undone
from tasks.stores.home import Home
from tasks.stores.releases import FINISHED, UNDONE, attempt_of, state_of


@dataclass(frozen=True)
class Finished:
    """What a finished release published, and how often it was charged."""

    public: tuple[Reference, ...]
    charges: int


def find_finished(home: Home, release: Release, plan: PlanReference) -> Finished | None:
    """The release of that name and spec, if it was evaluated or taken back: nothing left to be done needs its records."""
    store = Store(home)
    history = store.ledger.entries(release=release.name)
    if state_of(history) in UNDONE:
        store.forget_confidential(release.name, EXACT)  # whoever undid it may have said so from a home of their own
    must_not_be_undone(release.name, history)
    if state_of(history) not in FINISHED:
        return None
    stages = table_stages(load_plan(store, plan).sets, release.domain.tables is not None)
    found = (store.find(release.name, stage) for stage in stages)
    return Finished(tuple(reference for reference in found if reference is not None), attempt_of(history))
