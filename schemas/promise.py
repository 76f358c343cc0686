"""The guarantee in words: what is promised to a person in the data, and what is not covered."""

from __future__ import annotations

import math
from decimal import ROUND_UP, Context, Decimal

from schemas.plan import Plan


def rows_said(plan: Plan) -> str:
    """What somebody's data are, as the guarantee bounds them."""
    rows = "one row" if plan.rows_per_person == 1 else f"all of at most {plan.rows_per_person} rows"
    if plan.at_most is not None:
        rows = f"one row, and those of all of its at most {plan.at_most} persons"
    if plan.weight is None:
        return rows
    several = plan.rows_per_person > 1 or plan.at_most is not None
    return f"{rows}{', each' * several} of a weight of at most {float(plan.weight.highest):.12g}"


def sentence_of(plan: Plan) -> str:
    """Where the exact number of rows is published, neighbours are data sets of equally many rows."""
    return _sentence_given_rows(plan) if plan.total == "invariant" else _sentence_of_neighbours(plan)


def _sentence_given_rows(plan: Plan) -> str:
    """Given n, data that differ in one person differ by a substitution: a removal and an addition, each as dear."""
    one, rows = plan.rows_per_person == 1, rows_said(plan)
    others = _others(plan) if one else f"{_others(plan)} of as many rows"
    likelihood = {"add_remove": _twice, "substitute": _once}[plan.neighbours](plan)
    return (
        f"The exact number of rows is published. For every {plan.unit} in the data: whatever else can be seen in this "
        f"release, or concluded from it, would have been about as likely had that {plan.unit}'s data ({rows}) been replaced by "
        f"{others}, with probabilities that {likelihood}; this holds whatever anyone "
        "knows already, and whatever is done with the release later."
    )


def _sentence_of_neighbours(plan: Plan) -> str:
    rows = rows_said(plan)
    change = {
        "add_remove": f"had that {plan.unit}'s data ({rows}) been left out",
        "substitute": f"had that {plan.unit}'s data ({rows}) been replaced by {_others(plan)}",
    }[plan.neighbours]
    return (
        f"For every {plan.unit} in the data: whatever can be seen in this release, or concluded from it, would have been "
        f"about as likely {change}, with probabilities that {_once(plan)}; this holds whatever anyone knows already, and "
        "whatever is done with the release later."
    )


def _once(plan: Plan) -> str:
    """How far probabilities may differ between neighbours."""
    if plan.measure == "pure":
        return f"differ by a factor of at most {factor(plan.epsilon)} (ε = {plan.epsilon})"
    return (
        f"differ by a factor of at most {factor(plan.epsilon)} (ε = {plan.epsilon}) and, beyond that, by at most "
        f"{plan.delta} (δ), which follows from ρ = {plan.rho}"
    )


def _twice(plan: Plan) -> str:
    """By (ε, δ) for a removal and for an addition: by 2ε and (1 + e^ε)·δ."""
    twice = f"{2 * Decimal(plan.epsilon):f}"
    each = f"a replacement is a removal and an addition at ε = {plan.epsilon}"
    if plan.measure == "pure":
        return f"differ by a factor of at most {factor(twice)} (2ε = {twice}, since {each} each)"
    beyond = Decimal(plan.delta or 0) * (1 + Decimal(plan.epsilon).exp())
    return (
        f"differ by a factor of at most {factor(twice)} (2ε = {twice}) and, beyond that, by at most {_rounded_up(beyond)} "
        f"((1 + e^ε)·δ), since {each} and δ = {plan.delta} each, which follows from ρ = {plan.rho}"
    )


def _rounded_up(chance: Decimal) -> str:
    """A probability with two digits.

    >>> _rounded_up(Decimal("3.7182818e-9")), _rounded_up(Decimal(17))
    ('3.8e-9', '1')
    """
    return f"{Context(prec=2, rounding=ROUND_UP).plus(min(chance, Decimal(1))).normalize():e}".replace("e+0", "")


def _others(plan: Plan) -> str:
    return "anybody else's" if plan.unit == "person" else f"any other {plan.unit}'s"


WEIGHTS = (
    "that other {whose} weights are as they are: where weights were adjusted to all records together, leaving a {unit} out "
    "would have made them others"
)


def factor(epsilon: str) -> str:
    """
    e^ε, rounded up: the sentence says "at most".

    >>> factor("1"), factor("0.2"), factor("40")
    ('2.72', '1.23', 'e^40')
    """
    value = float(epsilon)
    return f"{math.ceil(100 * math.exp(value)) / 100:,.2f}" if value <= 10 else f"e^{epsilon}"


def unprotected_by(plan: Plan) -> tuple[str, ...]:
    told = f"whether that {plan.unit} is in the data" + ("" if plan.rows_per_person == 1 else ", and with how many rows")
    whose = "people's" if plan.at_most is None else "households'"
    who = f"whoever knows everybody but one {plan.unit} learns from it {told}"
    total = {
        "estimated": (),
        "public": ("the number of rows, which is the same for all neighbouring data",),
        "invariant": (f"the exact number of rows, which is published outside the guarantee: {who}",),
    }[plan.total]
    return (
        *total,
        *((WEIGHTS.format(unit=plan.unit, whose=whose),) if plan.weight else ()),
        "the domain: attributes, categories, bounds, bins and rules, none of which come from the records",
        "the plan, and that and when this release was made",
        "that the records passed validation against the domain",
    )
