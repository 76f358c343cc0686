"""How every page is made: one style for all, labels escaped, nothing undefined, nothing fetched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

PAGES = Path(__file__).parent / "pages"


def template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """A page's template, with filters of its own."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(name)
