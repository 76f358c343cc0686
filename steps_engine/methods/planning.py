"""From a release to its plan, whatever the method: outlined by the method, made and checked by accounting."""

from __future__ import annotations

from schemas.identity import spec_hash
from schemas.plan import Considered, Plan
from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of, plan_of
from steps_engine.methods.choosing import AutoSpec, candidates
from steps_engine.methods.protocol import Method
from steps_engine.methods.registry import method_named
from steps_engine.noise import Randomness


def make_plan(release: Release, randomness: Randomness | None = None, method: Method | None = None) -> Plan:
    """The plan of a release; `auto` takes the method whose error is predicted to be least. `method` stands in for the
    registered one.
    """
    if not isinstance(release.spec.method, AutoSpec):
        taken = method or method_named(release.spec.method.decomposition)
        return plan_of(release, taken.outline(release, allowance_of(release), randomness), spec_hash(release))
    found = candidates(release)
    best = min(found, key=lambda each: each.predicted_error)
    asked = release.asking(best.spec)
    outline = method_named(best.spec.decomposition).outline(asked, allowance_of(asked), randomness)
    considered = tuple(
        Considered(decomposition=each.spec.decomposition, predicted_error=each.predicted_error, why=each.why) for each in found
    )
    return plan_of(asked, outline, spec_hash(release), considered)
