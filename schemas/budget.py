"""ε as a whole number of 10⁻⁹, taken from the written digits: no float in between, so nothing is ever rounded."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

UNIT = 1_000_000_000  # one ε in nanos
LARGEST = 10**6 * UNIT  # an ε of a million protects nobody; beyond it, a typing mistake


def parse_nanos(value: Any) -> int:
    """The whole number of 10⁻⁹ that was written.

    >>> parse_nanos("0.3"), parse_nanos(Decimal("1.0")), parse_nanos(2)
    (300000000, 1000000000, 2000000000)
    """
    if isinstance(value, bool) or not isinstance(value, (int, str, Decimal)):
        raise ValueError(f"epsilon must be written as a plain number such as 0.5, not {type(value).__name__} {value!r}")
    try:
        number = Decimal(value)
    except ArithmeticError:
        raise ValueError(f"epsilon must be a plain number such as 0.5, not {value!r}") from None
    if not number.is_finite() or number <= 0:
        raise ValueError(f"epsilon must be a positive number, not {value}")
    if number > LARGEST // UNIT:
        raise ValueError(f"epsilon {value} is larger than {LARGEST // UNIT}; that is no protection at all")
    if number != round(number, 9):
        raise ValueError(f"epsilon {value} has more than 9 decimals; write a whole number of 0.000000001")
    return int(number * UNIT)


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


def _from_spec(value: Any) -> int:
    # Specs are read by schemas.yaml, which keeps written digits as Decimal; text such as "1" is not a number there.
    if isinstance(value, str):
        raise ValueError(f'epsilon must be a number, not the text "{value}"; remove the quotes')
    return parse_nanos(value)


# In a spec: numbers only. Written out: decimal strings.
SpecEpsilon = Annotated[int, BeforeValidator(_from_spec), PlainSerializer(show_nanos, return_type=str)]
# In a document: what `show_nanos` writes. "1e999999999" would be a number that no memory holds.
WrittenEpsilon = Annotated[str, Field(pattern=r"^[0-9]{1,7}(\.[0-9]{1,9})?$")]
