"""Publication: brings the plan and the charge's proof to `publish`, which asks the ledger before anything is public."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schemas.spec.release import Release
from tasks.publishing.publication import charge_proof, preview, publish
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stages.seeds import seeds_of
from tasks.stores.artifacts import Reference, Store
from tasks.stores.home import Home


def publish_release(home: Home, release: Release, plan: PlanReference, public: Sequence[Reference]) -> Path:
    """Publish the bundle, or find it published; the ledger consents first, and knows its manifest from here on."""
    store = Store(home)
    proof = charge_proof(store.ledger.entries(), release.name)
    is_there = (home.public / release.name).exists()  # and says its own rule
    seeds = None if is_there else seeds_of(store, release.name)
    return publish(home, release, load_plan(store, plan), public, proof, seeds).folder


def preview_release(home: Home, release: Release, plan: PlanReference, public: Sequence[Reference]) -> Path:
    """Write down what would be published, for the person who decides."""
    store = Store(home)
    proof = charge_proof(store.ledger.entries(), release.name)
    return preview(home, release, load_plan(store, plan), public, proof, seeds_of(store, release.name))
