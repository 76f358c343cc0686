"""Synthesize: counts become records, one table per set. Reads nothing confidential."""

from __future__ import annotations

from schemas import tables
from schemas.release import Release
from steps_engine.decompositions import decomposition_of
from steps_engine.noise import SystemSource
from tasks.plan import load_plan
from tasks.stores.artifacts import Reference, Store
from tasks.stores.home import Home


def synthesize(
    home: Home, release: Release, plan: Reference, tree: Reference, noisy: Reference, consistent: Reference
) -> tuple[Reference, ...]:
    """Make the records of every set, or find those that were made."""
    store = Store(home)
    planned = load_plan(store, plan)
    names = [f"synthetic-{number}" for number in range(1, planned.sets + 1)]
    found = [store.find(release.name, name) for name in names]
    if all(found):
        return tuple(found)
    made = {reference.stage: store.read(reference) for reference in (tree, noisy, consistent)}
    for number, name in enumerate(names, start=1):
        if found[number - 1] is None:
            records = decomposition_of(planned).synthesize(release.domain, planned, made, number, SystemSource())
            found[number - 1] = store.write(release.name, name, records, tables.records(release.domain), "public")
    return tuple(found)
