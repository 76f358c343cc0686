"""Build tree: which nodes there are; only a plan that elects looks at counts, and has paid for it."""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.stages.cells import stored_counts
from tasks.stages.charge import ChargedPlan
from tasks.stages.plan import load_plan
from tasks.stages.references import CellsReference, PlanReference, StructureReference
from tasks.stores.artifacts import Store
from tasks.stores.home import Home


def build_tree(
    home: Home, release: Release, plan: PlanReference, cells: CellsReference, charged: ChargedPlan
) -> StructureReference:
    """Grow what the plan prescribes, or find it."""
    store = Store(home)
    planned = load_plan(store, plan)
    charged.must_cover(planned)
    if found := store.find(release.name, "tree", planned.structure_is_drawn):
        return StructureReference(found)
    method = method_of(planned)
    counts = stored_counts(store, cells, release.domain) if planned.structure_is_drawn else None
    tree = method.build(release.domain, planned, counts, SystemRandomness())
    schema, drawn = method.schemas(planned)["tree"], planned.structure_is_drawn
    return StructureReference(store.write(release.name, "tree", tree, schema, "public", drawn))
