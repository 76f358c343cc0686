"""Sanitize: exact counts of every node plus the noise that was paid for. After this, nothing needs the exact ones."""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.stages.cells import stored_counts
from tasks.stages.charge import ChargedPlan
from tasks.stages.plan import load_plan
from tasks.stages.references import CellsReference, NoisyReference, PlanReference, StructureReference
from tasks.stores.artifacts import Store
from tasks.stores.home import Home


def sanitize(
    home: Home,
    release: Release,
    plan: PlanReference,
    cells: CellsReference,
    tree: StructureReference,
    charged: ChargedPlan,
) -> NoisyReference:
    """Draw the noisy counts of all measurements once, or find them."""
    store = Store(home)
    planned = load_plan(store, plan)
    charged.must_cover(planned)
    if found := store.find(release.name, "noisy-counts"):
        return NoisyReference(found)
    method = method_of(planned)
    counts = stored_counts(store, cells, release.domain)
    noisy = method.sanitize(release.domain, planned, counts, store.read(tree), SystemRandomness())
    schema = method.schemas(planned)["noisy-counts"]
    return NoisyReference(store.write(release.name, "noisy-counts", noisy, schema, "public"))
