"""ε and ρ as whole numbers of 10⁻⁹, δ as its digits, taken as they were written: no float in between, nothing is rounded."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

UNIT = 1_000_000_000  # one ε, or one ρ, in nanos
LARGEST = 10**6 * UNIT  # an ε or ρ of a million protects nobody; beyond it, a typing mistake
LEAST_DELTA = Decimal("1e-300")  # below it, a double cannot hold it safely
LARGEST_QUOTED = Decimal("0.00001")  # of a budget: at a larger δ its ε would look like protection
DELTA_DIGITS = 15


def parse_nanos(value: Any, what: str = "epsilon") -> int:
    """The whole number of 10⁻⁹ that was written; `what` is how messages call it.

    >>> parse_nanos("0.3"), parse_nanos(Decimal("1.0")), parse_nanos(2)
    (300000000, 1000000000, 2000000000)
    """
    number = _number(value, what, "0.5")
    if number <= 0:
        raise ValueError(f"{what} must be a positive number, not {value}")
    if number > LARGEST // UNIT:
        raise ValueError(f"{what} {value} is larger than {LARGEST // UNIT}; that is no protection at all")
    if number != round(number, 9):
        raise ValueError(f"{what} {value} has more than 9 decimals; write a whole number of 0.000000001")
    return int(number * UNIT)


def parse_delta(value: Any) -> str:
    """δ as documents write it: one way for every number, with all its digits.

    >>> parse_delta("0.000000001"), parse_delta(Decimal("25e-8")), parse_delta("0.5")
    ('1e-9', '2.5e-7', '5e-1')
    """
    number = _number(value, "delta", "1e-9")
    if number <= 0:
        raise ValueError(
            f"delta must be above 0, not {value}: rho promises no epsilon at delta 0. Write a small number such as 1e-9, "
            "or epsilon alone for pure differential privacy"
        )
    if number >= 1:
        raise ValueError(f"delta must be below 1, not {value}: it is a probability. Write a small number such as 1e-9")
    if number < LEAST_DELTA:
        raise ValueError(f"delta must be at least {LEAST_DELTA}, not {value}. Write a larger number such as 1e-9")
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > DELTA_DIGITS:
        raise ValueError(f"delta {value} has more than {DELTA_DIGITS} digits; round it down")
    return f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{number.adjusted()}"


class Asked(NamedTuple):
    """What is asked of a budget."""

    measure: Literal["pure", "zcdp"]
    nanos: int
    delta: str | None


def parse_quoted(value: Any) -> str:
    """The δ at which a budget's ε is quoted: small enough that the ε means something for any population.

    >>> parse_quoted("0.000001")
    '1e-6'
    """
    delta = parse_delta(value)
    if Decimal(delta) > LARGEST_QUOTED:
        raise ValueError(f"delta {value} is too large to quote an ε at; write {LARGEST_QUOTED} or less, such as 1e-9")
    return delta


def parse_grant(epsilon: str | None, rho: str | None, delta: str | None) -> Asked:
    """A grant in ε, or in ρ with the δ at which its ε is quoted.

    >>> parse_grant("4", None, None), parse_grant(None, "0.1", "1e-6")
    (Asked(measure='pure', nanos=4000000000, delta=None), Asked(measure='zcdp', nanos=100000000, delta='1e-6'))
    """
    if epsilon is not None and rho is not None:
        raise ValueError(
            f"epsilon {epsilon} and rho {rho} were both asked; a budget has one measure. Write EPSILON or --rho RHO"
        )
    if rho is not None:
        return Asked("zcdp", parse_nanos(rho, "rho"), None if delta is None else parse_quoted(delta))
    if delta is not None:
        raise ValueError(f"delta {delta} was asked without rho; a budget in ε has none. Write --rho RHO or leave --delta out")
    if epsilon is None:
        raise ValueError("no amount was asked. Write EPSILON for a budget in ε, or --rho RHO for one in ρ")
    return Asked("pure", parse_nanos(epsilon), None)


def _number(value: Any, what: str, example: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
        raise ValueError(f"{what} must be written as a plain number such as {example}, not {type(value).__name__} {value!r}")
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise ValueError(f"{what} must be a plain number such as {example}, not {value!r}") from None
    if not number.is_finite():
        raise ValueError(f"{what} must be a positive number, not {value}")
    return number


def show_nanos(nanos: int) -> str:
    """Decimal digits without exponent or trailing zeros.

    >>> show_nanos(300_000_000), show_nanos(0), show_nanos(12 * UNIT)
    ('0.3', '0', '12')
    """
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    whole, rest = divmod(nanos, UNIT)
    return f"{sign}{whole}" + (f".{rest:09d}".rstrip("0") if rest else "")


def as_fraction(nanos: int) -> Fraction:
    return Fraction(nanos, UNIT)
