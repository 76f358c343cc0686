"""A number of things, in words."""

from __future__ import annotations

from decimal import Decimal

READABLE = 10**15  # larger numbers are told as powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(number: int, one: str) -> str:
    """
    >>> counted(1, "set"), counted(2000, "set"), counted(0, "torn line")
    ('1 set', '2,000 sets', '0 torn lines')
    """
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def many(value: int) -> str:
    """A whole number of things, as a power of ten where nobody would read its digits.

    >>> many(1290240), many(4**67), many(10**3000)
    ('1,290,240', '2.2·10⁴⁰', '1.0·10³⁰⁰⁰')
    """
    if value < READABLE:
        return f"{value:,}"
    digits, power = f"{Decimal(value):.1e}".split("e+")
    return f"{digits}·10{power.translate(RAISED)}"
