"""codebook.html: every attribute with its categories, what they mean, how many there are, and the rules; for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks.publishing.description import Column, Description, rule_words
from tasks.publishing.descriptions import DescribingFile

OPEN = 24  # categories that are shown at once; longer lists unfold

KINDS = {
    "categorical": "labels without an order",
    "ordinal": "labels in order",
    "integer": "whole numbers",
    "numeric": "numbers",
    "date": "days",
}


def _write(said: Description) -> bytes:
    from tasks.publishing.templates import template

    page = template("codebook.html", count=_count, up=_up).render(
        said=said,
        columns=list(map(_column, said.columns)),
        rules=[{"words": list(rule_words(rule, said.domain)), "why": rule.why} for rule in said.rules],
        facts=list(_facts(said)),
    )
    return page.encode()


def _column(column: Column) -> dict[str, Any]:
    bounds = column.bounds
    return {
        "name": column.name,
        "about": column.attribute,
        "kind": KINDS[column.kind],
        "bounds": f"from {bounds[0]} to {bounds[1]}" if bounds else "",
        "bins": len(column.attribute.present_labels) if bounds else 0,
        "categories": column.categories,
        "counted": column.margin is not None,
        "explained": any(category.meaning for category in column.categories),
        "long": len(column.categories) > OPEN,
        "missing": column.may_be_missing,
    }


def _facts(said: Description) -> Iterator[tuple[str, str]]:
    domain = said.domain
    named = {"Publisher": domain.publisher, "Contact": domain.contact, "Licence": domain.licence, "Source": domain.source}
    yield from ((name, text) for name, text in named.items() if text)


def _count(value: float) -> str:
    return f"{round(value):,}".replace("-", "−")


def _up(value: float) -> str:
    """Half an interval, never less than it is.

    >>> _up(53.2), _up(54.0)
    ('54', '54')
    """
    return f"{-int(-(value - 1e-9) // 1):,}"


ENTRY = DescribingFile("codebook.html", 6, _write)
