"""The inverse question: which ε (or ρ) does one analysis need, at a given accuracy? In words: "voted by age ±1%"."""

from __future__ import annotations

import re
from decimal import Decimal

from pydantic import ValidationError

from schemas.errors import SpecError
from schemas.plan import AnalysisPlan, Plan
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.release import Release
from steps_engine.analyses.questions import question_of
from steps_engine.analyses.refusing import PlanOf, budget_for, remedy, shortfall
from steps_engine.analyses.ruled_out import always_alike

_WANTED = re.compile(r"(.+?)\s*(?:±|\+/-|\+-)\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(%?)\s*")


def parse_wanted(text: str) -> TableAnalysis | ModelAnalysis:
    """
    >>> parse_wanted("voted by age ±1%")
    TableAnalysis(table=('voted', 'age'), within=Fraction(1, 100))
    """
    said = _WANTED.fullmatch(text.strip())
    if said is None:
        raise SpecError(
            f'wanted {text!r} must be: names joined by "by", or a formula, then ± and a number: "voted by age ±1%".'
        )
    what, within = said[1], f"{said[2]}%" if said[3] else Decimal(said[2])
    asked = {"model": what} if "~" in what else {"table": tuple(re.split(r"\s+by\s+", what.strip()))}
    try:
        return (ModelAnalysis if "~" in what else TableAnalysis).model_validate({**asked, "within": within})
    except ValidationError as error:
        raise SpecError(f"wanted {text!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}.") from None


def budget_wanted(release: Release, wanted: str, plan_of: PlanOf) -> tuple[Plan, AnalysisPlan]:
    """The plan of a release with about the least budget that gives what is wanted, and what it gives; or a SpecError."""
    asked = parse_wanted(wanted)
    question = question_of(asked, release.domain)
    name = question.name
    if (alike := always_alike(question, release.domain)) is not None:
        raise SpecError(f"wanted {wanted!r}: {alike}. There is nothing to estimate: ask something else.")
    others = tuple(each for each in release.spec.analyses if question_of(each, release.domain).name != name)
    release = release.model_copy(update={"spec": release.spec.model_copy(update={"analyses": (*others, asked)})})
    found = budget_for(release, plan_of, name)
    if found is None:
        plan = plan_of(release)
        analysis = _named(plan, name)
        raise SpecError(f"wanted {wanted!r}: {shortfall(analysis, release.domain)}. {remedy(release, plan, analysis, None)}")
    return found, _named(found, name)


def _named(plan: Plan, name: str) -> AnalysisPlan:
    return next(each for each in plan.analyses if each.name == name)
