"""From a release to its plan, whatever the method: outlined by the method, made and checked by accounting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from schemas.errors import SpecError
from schemas.identity import spec_hash
from schemas.plan import Considered, Plan, lowest_format
from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of, plan_of
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.predict import analysis_plans
from steps_engine.analyses.questions import questions_of
from steps_engine.analyses.refusing import must_be_had
from steps_engine.methods.choosing import AutoSpec, candidates
from steps_engine.methods.protocol import Candidate, Method
from steps_engine.methods.registry import method_named
from steps_engine.noise import Randomness


def make_plan(release: Release, randomness: Randomness | None = None, method: Method | None = None) -> Plan:
    """The plan of a release; `auto` takes the method whose error is predicted to be least, of those that measure the analyses
    that are asked for. `method` stands in for the registered one. Refused where an analysis cannot be had.
    """
    plan = plan_with_analyses(release, randomness, method)
    must_be_had(release, plan, lambda asked: plan_with_analyses(asked, None, method))
    return plan


def plan_with_analyses(release: Release, randomness: Randomness | None = None, method: Method | None = None) -> Plan:
    """The plan, with what it gives of every analysis, whether that is what was asked or not."""
    plan = _plan(release, randomness, method)
    if not release.spec.analyses:
        return plan
    analyses = analysis_plans(release, plan)
    return Plan.model_validate(
        {name: getattr(plan, name) for name in Plan.model_fields}
        | {"format": lowest_format(plan.measure, plan.draws, analyses, plan.weight), "analyses": analyses}
    )


def must_measure_levels(release: Release, decomposition: str) -> None:
    """Refuses analyses that name a level of places where the method knows nothing of levels."""
    domain, asked = release.domain, questions_of(release.spec.analyses, release.domain)
    tables = (table for each in asked for table in needed_by(each, domain))
    named = sorted(set(domain.coarser).intersection(name for table in tables for name in table))
    if named and decomposition not in ("places", "households"):
        raise SpecError(
            f'release "{release.name}": an analysis names {named[0]}, a level of places, which decomposition: {decomposition} '
            "does not measure. Use decomposition: places, or leave it out."
        )


def _plan(release: Release, randomness: Randomness | None, method: Method | None) -> Plan:
    if not isinstance(release.spec.method, AutoSpec):
        must_measure_levels(release, release.spec.method.decomposition)
        taken = method or method_named(release.spec.method.decomposition)
        return plan_of(release, taken.outline(release, allowance_of(release), randomness), spec_hash(release))
    found = candidates(release)
    considered = tuple(
        Considered(decomposition=each.spec.decomposition, predicted_error=each.predicted_error, why=each.why) for each in found
    )
    ranked = sorted(found, key=lambda each: each.predicted_error)
    plans = map(lambda each: _taking(release, each, considered, randomness), ranked)
    best = next(plans)
    if not release.spec.analyses:
        return best
    return next((plan for plan in chain([best], _possible(plans)) if _measures_all(release, plan)), best)


def _possible(plans: Iterator[Plan]) -> Iterator[Plan]:
    """Those that can be made at all."""
    while True:
        try:
            yield next(plans)
        except SpecError:
            continue
        except StopIteration:
            return


def _taking(release: Release, taken: Candidate, considered: tuple[Considered, ...], randomness: Randomness | None) -> Plan:
    must_measure_levels(release, taken.spec.decomposition)
    asked = release.asking(taken.spec)
    outline = method_named(taken.spec.decomposition).outline(asked, allowance_of(asked), randomness)
    return plan_of(asked, outline, spec_hash(release), considered)


def _measures_all(release: Release, plan: Plan) -> bool:
    """Whether the analyses that a release asks for can be had from this plan."""
    return all(each.measured for each in analysis_plans(release, plan))
