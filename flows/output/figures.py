"""Figures as people read them."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal


def percent(share: float) -> str:
    """In two digits, and never as a power of ten.

    >>> percent(1.0), percent(0.5312), percent(0.00123)
    ('100%', '53%', '0.12%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def up(epsilon: str) -> str:
    """With three decimals, rounded up: less than what holds is never told.

    >>> up("2.7150001"), up("1")
    ('2.716', '1')
    """
    return f"{Decimal(epsilon).quantize(Decimal('0.001'), ROUND_CEILING).normalize():f}"
