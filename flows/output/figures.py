"""Figures as people read them."""

from __future__ import annotations


def percent(share: float) -> str:
    """In two digits, and never as a power of ten.

    >>> percent(1.0), percent(0.5312), percent(0.00123)
    ('100%', '53%', '0.12%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"
