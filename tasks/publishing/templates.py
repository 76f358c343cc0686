"""How every page is made: one style for all, labels escaped, nothing undefined, nothing fetched."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from schemas.counted import many

PAGES = Path(__file__).parent / "pages"


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


def up(value: float) -> str:
    """Half an interval, never less than it is.

    >>> up(53.2), up(54.0)
    ('54', '54')
    """
    return f"{math.ceil(value - 1e-9):,}"
