"""What ρ promises at δ: proved again, to sixty digits, by the order that the plan names. Any order above 1 proves some ε."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import ROUND_UP, Context, Decimal, localcontext
from fractions import Fraction

from schemas.plan import Plan
from schemas.spec.domain import Domain
from tasks.verify.ways import written

CHANCE = re.compile(r"[1-9](\.[0-9]{1,14})?e-[1-9][0-9]{0,2}")
PRECISE = Context(prec=60)
SLACK = Decimal("1e-40")  # of the terms of ε: more than rounding takes, since an order lies 2^−52 above 1 at least
SHOWN = Context(prec=12, rounding=ROUND_UP)


def promise_problems(plan: Plan) -> Iterator[str]:
    """A plan in ρ says at which δ its ε holds and at which order that is proved; a pure one has nothing to prove."""
    said = [name for name in ("rho", "delta", "order") if getattr(plan, name) is not None]
    if plan.measure == "pure":
        says_more = bool(plan.analyses) or plan.weight is not None or any(draw.of is not None for draw in plan.draws)
        if said or plan.delta_why is not None or (plan.format == 3) != says_more:
            yield (
                "a plan in ε has no rho, delta or order, and format 3 only where it measures interactions or has "
                "analyses or weights"
            )
    elif plan.rho is None or plan.delta is None or plan.order is None or plan.format != 3:
        yield "a plan in ρ has rho, delta and order, and the format that knows them, 3"
    elif not (math.isfinite(plan.order) and plan.order > 1):
        yield f"the order is {plan.order}; only a finite one above 1 proves an ε"
    elif (proved := proved_epsilon(written("ρ", plan.rho), written_delta(plan.delta), plan.order)) > written("ε", plan.epsilon):
        yield (
            f"ε={plan.epsilon} is promised at δ={plan.delta}; of ρ={plan.rho} the order {plan.order} proves "
            f"ε={SHOWN.plus(proved)} there"
        )


def proved_epsilon(rho: Fraction, delta: Decimal, order: float) -> Decimal:
    """αρ + (log(1/δ) − log α)/(α − 1) + log(1 − 1/α), rounded up: an ε that holds at δ (Canonne, Kamath, Steinke 2020)."""
    with localcontext(PRECISE):
        alpha = Decimal(order)
        terms = (
            alpha * rho.numerator / rho.denominator,
            (-delta.ln() - alpha.ln()) / (alpha - 1),
            (1 - 1 / alpha).ln(),
        )
        return sum(terms, Decimal()) + SLACK * sum(map(abs, terms), Decimal(1))


def delta_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    """With a chance of δ the promise may fail for somebody: δ is far below one in all rows, or the plan says why not.

    No reason serves from one in all rows on: then somebody may be told whole.
    """
    if plan.delta is None:
        return
    rows, delta = domain.expected_rows, Fraction(written_delta(plan.delta))
    if delta >= Fraction(1, rows or 100):
        yield f"δ={plan.delta} is one in {rows or 100} or more: that protects nobody, whatever the reason"
    elif not (plan.delta_why or "").strip() and delta > Fraction(1, 100 * rows if rows else 10**9):
        expected = f"{rows} rows are expected" if rows else "it is not said how many rows are expected"
        yield f"δ={plan.delta}, and {expected}: that is not far below one in all of them, and the plan gives no reason"


def written_delta(text: str) -> Decimal:
    """δ from its digits."""
    if CHANCE.fullmatch(text) is None:
        raise ValueError("δ is not written as a chance such as 1e-9")
    return Decimal(text)
