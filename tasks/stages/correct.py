"""Correct: noisy counts that contradict each other become consistent ones. Reads nothing confidential."""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.stages.plan import load_plan
from tasks.stores.artifacts import Reference, Store
from tasks.stores.home import Home


def correct(home: Home, release: Release, plan: Reference, tree: Reference, noisy: Reference) -> Reference:
    """Estimates with error bars, and for a tree the whole numbers behind each set's rows; or find them."""
    store = Store(home)
    if found := store.find(release.name, "consistent-counts"):
        return found
    planned = load_plan(store, plan)
    method = method_of(planned)
    consistent = method.correct(release.domain, planned, store.read(tree), store.read(noisy), SystemRandomness())
    return store.write(release.name, "consistent-counts", consistent, method.schemas(planned)["consistent-counts"], "public")
