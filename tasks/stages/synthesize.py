"""Synthesize: counts become records, one table per set. Reads nothing confidential."""

from __future__ import annotations

from schemas import tables
from schemas.spec.release import Release
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.stages.plan import load_plan
from tasks.stages.references import ConsistentReference, NoisyReference, PlanReference, SetReference, StructureReference
from tasks.stages.seeds import seeds_of
from tasks.stores.artifacts import Store
from tasks.stores.home import Home


def synthesize(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
) -> tuple[SetReference, ...]:
    """Make the records of every set, or find those that were made."""
    numbers = set_numbers(home, plan)
    return tuple(synthesize_set(home, release, plan, tree, noisy, consistent, number) for number in numbers)


def set_numbers(home: Home, plan: PlanReference) -> range:
    return range(1, load_plan(Store(home), plan).sets + 1)


def synthesize_set(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
    number: int,
) -> SetReference:
    """Make the records of one set, or find them: of two who make it at the same time, one is heard."""
    store, name = Store(home), f"synthetic-{number}"
    if found := store.find(release.name, name, drawn=False):
        return SetReference(found)
    planned = load_plan(store, plan)
    drawn = Drawn(release.domain, planned, store.read(tree), store.read(noisy))
    source = None if seeds_of(store, release.name) else SystemRandomness()  # as an earlier version, which began, would go on
    records = drawn.synthesize(method_of(planned), store.read(consistent), number, source)
    schema = tables.records(release.domain)
    return SetReference(store.write(release.name, name, records, schema, "public", drawn=False))
