"""Plan: what will be drawn and what it costs, decided before data and sealed before the charge."""

from __future__ import annotations

import json

import pyarrow as pa

from schemas import tables
from schemas.errors import EvidenceBroken, SpecError
from schemas.identity import spec_hash
from schemas.plan import Plan, read_plan
from schemas.spec.release import Release
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SystemRandomness
from tasks.publishing.formats import must_be_known
from tasks.stages.references import PlanReference
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.analyses import planned_problems


def plan(home: Home, release: Release) -> PlanReference:
    """Make the plan, or find the one that an earlier run of the same spec sealed; sweep up after a killed run first."""
    must_be_known(release.spec.formats)
    store = Store(home)
    store.clean(release.name)
    _must_be_same_spec(store, release)
    found = store.find(release.name, "plan")
    if found is not None and _is_for(load_plan(store, PlanReference(found)), release):
        return PlanReference(found)
    made = make_plan(release, SystemRandomness())
    _must_verify(made, release)
    text = pa.table({"plan": [made.model_dump_json()]})
    return PlanReference(store.write(release.name, "plan", text, tables.PLAN, "public"))


def _must_verify(made: Plan, release: Release) -> None:
    """What the verifier would refuse of a bundle is refused before the charge, by its own reading of the plan."""
    found = (*plan_problems(made, None), *domain_problems(made, release.domain), *planned_problems(made, release.domain))
    if found:
        raise EvidenceBroken(
            f'release "{release.name}": once published, its plan would not verify: {found[0]}. Nothing was charged. The '
            "program is at fault here, not the spec: please report it with both files."
        )


def _is_for(planned: Plan, release: Release) -> bool:
    return planned.spec_hash == spec_hash(release, planned.format)


def _must_be_same_spec(store: Store, release: Release) -> None:
    """A charged name belongs to one spec: another one is refused before it can seal a plan or read a record."""
    charges = [entry for entry in store.ledger.entries(release=release.name) if entry.kind == "charge"]
    if not charges:
        return
    charged = charges[-1].details
    if charged["spec_hash"] != spec_hash(release, charged.get("plan_format", 1)):
        raise SpecError(f'release "{release.name}" exists already, with another spec. Choose another name or keep its spec.')


def load_plan(store: Store, reference: PlanReference) -> Plan:
    return read_plan(json.loads(store.read(reference)["plan"][0].as_py()))
