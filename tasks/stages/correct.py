"""Correct: noisy counts that contradict each other become consistent ones. Reads nothing confidential."""

from __future__ import annotations

from schemas.manifest import seeds_for
from schemas.spec.release import Release
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.registry import method_of
from tasks.stages.plan import load_plan
from tasks.stages.references import ConsistentReference, NoisyReference, PlanReference, StructureReference
from tasks.stages.seeds import settle_seeds
from tasks.stores.artifacts import Store
from tasks.stores.home import Home


def correct(
    home: Home, release: Release, plan: PlanReference, tree: StructureReference, noisy: NoisyReference
) -> ConsistentReference:
    """Estimates with error bars, and for a tree the whole numbers behind each set's rows; or find them."""
    store = Store(home)
    settle_seeds(store, release.name, seeds_for(release.domain))
    if found := store.find(release.name, "consistent-counts", drawn=False):
        return ConsistentReference(found)
    planned = load_plan(store, plan)
    method = method_of(planned)
    consistent = Drawn(release.domain, planned, store.read(tree), store.read(noisy)).correct(method)
    schema = method.schemas(planned)["consistent-counts"]
    return ConsistentReference(store.write(release.name, "consistent-counts", consistent, schema, "public", drawn=False))
