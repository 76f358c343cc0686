"""When an interval that is combined over sets covers the truth as often as it says: one rule, with its reason."""

from __future__ import annotations

from schemas.plan import AnalysisPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.release import LINKED
from steps_engine.analyses.questions import table_name

COVERING = frozenset({"pairs"})  # methods whose intervals were measured to cover (docs/lab/intervals.md)
OF_PERSONS = (
    "Measured, but it is not known whether intervals cover: they allow for households whose persons are all alike, but how its "
    "other members go together was not measured."
)
OF_HOUSEHOLDS = "Measured, but it is not known whether intervals of household rows cover as they say at every budget."
ALIKE = "Its intervals allow for households whose persons are all alike."
COMBINING = {
    "split": "T = W + B/m: every set was made from noise of its own",
    "shared": "T = W + (1 + 1/m)·B: the sets are plausible tables behind one measurement",
    "one": "T = W: with one set, the noise does not show",
}


def honesty(analysis: AnalysisPlan, plan: Plan) -> tuple[bool, str]:
    """Whether the intervals of an analysis are honest, and why.

    The variance between sets is that of the noise in what was measured. What an estimate takes from tables that were not
    measured is a guess of the model behind the sets, the same in every set: a bias that no variance between sets shows. One
    set has no variance between sets; split ones are each shrunk by themselves, and their mean keeps that bias.
    """
    if not analysis.measured:
        lacking = "; ".join(table_name(table.of) for table in analysis.needs if not table.measured)
        return False, f"Not measured: {lacking}. The data do not say; sets may, but only what their model supposes."
    if analysis.rows_of is not None:
        return False, OF_PERSONS
    if plan.decomposition == LINKED:
        return False, OF_HOUSEHOLDS
    if plan.sets == 1:
        return False, "Measured, but one set cannot show its noise: the interval is too narrow."
    if plan.decomposition not in COVERING:
        taken = f"sets of decomposition {plan.decomposition}"
        return False, f"Measured, but {taken} were not found to cover as they say at every budget."
    if plan.budget == "split":
        return False, "Measured, but each set was shrunk by its own noise: ask for shared sets, whose intervals cover."
    return True, f"Everything it depends on was measured, and the differences between the {plan.sets} sets show the noise."


def of_persons(domain: Domain, plan: Plan) -> bool:
    """Whether rows of this domain are all persons of linked tables: many of them are of one household."""
    return plan.at_most is not None and domain.unit.rows_per_person > 1


def combining_of(plan: Plan, persons: bool = False) -> str:
    rule = COMBINING["one" if plan.sets == 1 else plan.budget]
    if persons:
        times = f"{float((plan.at_most or 1) * plan.inflation):.4g}"
        weights = f"{_by_what(plan)}, and " if plan.weight is not None else ""
        return f"{rule}; W is {times} times what the rows say, {weights}as if all persons of a household were alike"
    if plan.inflation == 1:
        return rule
    return f"{rule}; W is {float(plan.inflation):.4g} times what the rows say, {_by_what(plan)}"


def _by_what(plan: Plan) -> str:
    why = inflated_by(plan, "the weights")
    return f"the most that {why} allow" if plan.inflates_at_most else f"what {why} make of it by the survey's design effect"


def inflated_by(plan: Plan, weights: str = "weights") -> str:
    """Why rows say too little of the chance of sampling people: what makes it larger than of as many independent rows."""
    rows = f"{plan.rows_per_person:,} rows of one {plan.unit}"
    return " and ".join([weights] * (plan.weight is not None) + [rows] * (plan.rows_per_person > 1))
