"""How every page is made: one style for all, labels escaped, nothing undefined, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jinja2

PAGES = Path(__file__).parent / "pages"
READABLE = 10**15  # larger numbers are told as powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """A page's template, with filters of its own beside those of all."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"count": count, "many": many, "up": up} | filters
    return environment.get_template(name)


def count(value: float) -> str:
    """
    >>> count(1290240), count(-0.3)
    ('1,290,240', '0')
    """
    return f"{round(value):,}".replace("-", "−")


def many(value: int) -> str:
    """A whole number of things, as a power of ten where nobody would read its digits.

    >>> many(1290240), many(4**67)
    ('1,290,240', '2.2·10⁴⁰')
    """
    if value < READABLE:
        return count(value)
    digits, power = f"{Decimal(value):.1e}".split("e+")
    return f"{digits}·10{power.translate(RAISED)}"


def up(value: float) -> str:
    """Half an interval, never less than it is.

    >>> up(53.2), up(54.0)
    ('54', '54')
    """
    return f"{math.ceil(value - 1e-9):,}"
