"""What the page says of ρ: what it means for one person, and the ε that it promises at every δ. Rounded to the safe side."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from schemas.counted import RAISED
from schemas.plan import Draw, Plan
from schemas.promise import factor, rows_said
from steps_engine.accounting.meaning import belief, chance_of_a_right_guess, curve_of, loss_of, promises_of, rho_between
from tasks.publishing import pictures

BEFORE = (0.01, 0.1, 0.5, 0.9)  # what somebody may have believed
CHANCES = {"1 in 20": 1 / 20, "1 in a million": 1e-6}  # and δ: with which a belief may change by more
TOLD_AT = ("1e-3", "1e-6", "1e-9", "1e-12", "1e-15")
PRICES = {
    "discrete_gaussian": "Gaussian noise of standard deviation σ (or a little less) costs Δ² ⁄ 2σ² on counts that one {unit} "
    "changes by at most Δ in all, the root of the sum of squares.",
    "two_sided_geometric": "Two-sided geometric noise costs (sensitivity ⁄ scale)² ⁄ 2.",
    "exponential": "An election costs (sensitivity ⁄ scale)² ⁄ 8.",
    "permute_and_flip": "An election costs (sensitivity ⁄ scale)² ⁄ 2.",
}


def loss_view(plan: Plan) -> dict[str, Any] | None:
    """Everything on ρ that the page shows; none of it on the page of a pure release."""
    if plan.rho is None or plan.delta is None:
        return None
    rho, own = rho_between(plan), float(plan.delta)
    chances = {name: chance for name, chance in CHANCES.items() if chance != own} | {f"δ = {power(plan.delta)}": own}
    return {
        "suspicion": _suspicion(plan),
        "twice": short(rho, ROUND_UP) if rho != Fraction(plan.rho) else None,
        "chances": list(chances),
        "beliefs": [[percent(before), *_after(before, rho, chances.values())] for before in BEFORE],
        "toss": percent(belief(0.5, loss_of(rho, own))),
        "guess": percent(chance_of_a_right_guess(rho)),
        "odds": _times(Fraction(loss_of(rho, own))),
        "promises": list(_promise_rows(plan)),
        "prices": list(_prices(plan)),
        "curve": pictures.curve_picture(curve_of(Fraction(plan.rho), plan.delta)),
    }


def _suspicion(plan: Plan) -> str:
    """What neighbouring data leave open about one of them."""
    rows = "" if plan.rows_per_person == 1 and plan.weight is None else f" ({rows_said(plan)})"
    if plan.neighbours == "add_remove" and plan.total != "invariant":
        return f"that the data of a certain {plan.unit}{rows} are among the records"
    return f"that the data of a certain {plan.unit}{rows} are one thing and not another"


def _after(before: float, rho: Fraction, chances: Iterable[float]) -> Iterator[str]:
    return (percent(belief(before, loss_of(rho, chance))) for chance in chances)


def _promise_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    for promise in promises_of(plan, TOLD_AT):
        epsilon = Fraction(promise.epsilon)
        shown = {"delta": power(promise.delta), "epsilon": short(epsilon, ROUND_UP), "factor": _times(epsilon)}
        yield shown | {"own": promise.delta == plan.delta}


def _times(epsilon: Fraction) -> str:
    """e^ε, rounded up."""
    return factor(short(epsilon, ROUND_UP).replace(",", ""))


def _prices(plan: Plan) -> Iterator[str]:
    used = {draw.mechanism for draw in plan.draws}
    return (text.format(unit=plan.unit) for mechanism, text in PRICES.items() if mechanism in used)


def percent(chance: float) -> str:
    """Rounded up.

    >>> percent(0.5), percent(0.731058), percent(1 - 1e-9)
    ('50\xa0%', '73.2\xa0%', '100\xa0%')
    """
    return f"{math.ceil(1000 * chance - 1e-9) / 10:g}\xa0%"


def power(delta: str) -> str:
    """
    >>> power("1e-9"), power("2.5e-7")
    ('10⁻⁹', '2.5·10⁻⁷')
    """
    digits, exponent = delta.split("e")
    return ("" if digits == "1" else f"{digits}·") + "10" + exponent.translate(RAISED)


def powers(sentence: str) -> str:
    """
    >>> powers("by at most 3.8e-9 (δ)")
    'by at most 3.8·10⁻⁹ (δ)'
    """
    return re.sub(r"\b[0-9.]+e-[0-9]+\b", lambda found: power(found[0]), sentence)


def short(value: Fraction, rounding: str) -> str:
    """Four digits.

    >>> short(Fraction(1, 3), ROUND_UP), short(Fraction(1, 3), ROUND_DOWN), short(Fraction(20000), ROUND_UP)
    ('0.3334', '0.3333', '20,000')
    """
    return _written(Context(prec=4, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator)))


def short_root(square: Fraction, rounding: str) -> str:
    """
    >>> short_root(Fraction(2), ROUND_UP), short_root(Fraction(4), ROUND_UP), short_root(Fraction(2), ROUND_DOWN)
    ('1.415', '2', '1.414')
    """
    precise = Context(prec=60)
    root = precise.sqrt(precise.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return _written(Context(prec=4, rounding=rounding).plus(root))


def _written(number: Decimal) -> str:
    plain = f"{number.normalize():,f}"
    return plain if len(plain) <= 12 else f"{number.normalize():e}"


def paid_in_rho(draw: Draw) -> dict[str, str]:
    """A draw's figures as the table shows them: of a Gaussian Δ and σ, not their squares."""
    cost = short(draw.cost, ROUND_UP)
    if draw.mechanism == "discrete_gaussian":
        changed, scale = short_root(draw.sensitivity, ROUND_UP), short_root(draw.scale, ROUND_DOWN)
        return {"sensitivity": f"Δ = {changed}", "cost": cost, "scale": f"σ = {scale}"}
    return {"sensitivity": short(draw.sensitivity, ROUND_UP), "cost": cost, "scale": short(draw.scale, ROUND_DOWN)}
