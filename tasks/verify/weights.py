"""Weights, as the verifier reckons them: what a row can change follows from the domain's bound and the plan's step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from schemas.plan import Plan
from schemas.spec.domain import Domain


def units_of_row(plan: Plan) -> int:
    """By how much one row can change a count: of a sum that is rounded, by its weight in steps, rounded up.

    The figures are those of the plan; `weight_problems` holds them against the domain.
    """
    return 1 if plan.weight is None or plan.weight.step <= 0 else max(1, math.ceil(plan.weight.highest / plan.weight.step))


def weight_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    """Plan and domain agree on the highest weight, the step, and as how many units a row may count."""
    said, asked = plan.weight, domain.weight
    if said is None or asked is None:
        if said is not None or asked is not None:
            yield "plan and domain do not agree on whether records have weights"
        return
    if said.step <= 0 or said.highest < Fraction(repr(asked.bounds[1])):
        yield f"the domain allows weights up to {asked.bounds[1]:.12g}; the plan counts on at most {said.highest}"
    elif said.units_per_row != units_of_row(plan):
        units = f"up to {units_of_row(plan)} units of {said.step}"
        yield f"a row of weight {said.highest} makes {units}; the plan says {said.units_per_row}"
    if domain.weighing is not None and said.step != domain.weighing.step:
        who = "people" if domain.tables is None else "households"
        yield f"a unit stands for {domain.weighing.step} {who} by the domain, for {said.step} by the plan"
    if domain.weighing is not None and said.inflation != domain.weighing.inflation:
        yield "the plan inflates variances by another factor than follows from the domain's weights"
    if plan.total != "estimated":
        yield "with weights a number of rows is neither public nor invariant: neighbours differ in their sum"
