"""A number of things, in words."""

from __future__ import annotations

from decimal import Context

SPELT_OUT = 10**15  # below it all digits are shown


def counted(number: int, one: str) -> str:
    """
    >>> counted(1, "set"), counted(2000, "set"), counted(0, "torn line")
    ('1 set', '2,000 sets', '0 torn lines')
    """
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def many(number: int) -> str:
    """A whole number however large: of domains that cannot be listed three digits and the power of ten say enough.

    >>> many(2000), many(26 * 10**100), many(10**3000)
    ('2,000', '2.6e+101', '1e+3000')
    """
    return f"{number:,}" if number < SPELT_OUT else f"{Context(prec=3).create_decimal(number).normalize():g}"
