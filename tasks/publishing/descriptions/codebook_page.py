"""codebook.html: every attribute with its categories, what they mean, how many there are, and the rules; for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks.publishing.columns import Column
from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile
from tasks.publishing.said import rule_rows

OPEN = 24  # categories that are shown at once; longer lists unfold

KINDS = {
    "categorical": "Labels without an order",
    "ordinal": "Labels in order",
    "integer": "Whole numbers",
    "numeric": "Numbers",
    "date": "Days",
    "time": "Times of day",
}


def _write(said: Description) -> bytes:
    from tasks.publishing.templates import template

    page = template("codebook.html").render(
        said=said,
        columns=list(map(_column, (*said.columns, *said.persons))),
        rules=rule_rows(said.domain),
        facts=list(_facts(said)),
    )
    return page.encode()


def _column(column: Column) -> dict[str, Any]:
    number = len(column.labels)
    return {
        "column": column,
        "kind": _kind(column),
        "bins": f", counted in {number} {'category' if number == 1 else 'categories'}" if column.bounds and number else "",
        "explained": any(category.meaning for category in column.categories),
        "long": len(column.categories) > OPEN,
    }


def _kind(column: Column) -> str:
    if column.follows_from:
        return f"Follows from {column.follows_from} by a public table"
    if column.bounds is None:
        return KINDS[column.kind]
    low, high = column.bounds
    if column.kind == "weight":
        return f"{low} in every row"
    return f"{KINDS[column.kind]} from {low}" + (f" to {high}" if high is not None else " on, without an upper end")


def _facts(said: Description) -> Iterator[tuple[str, str]]:
    domain = said.domain
    named = {"Publisher": domain.publisher, "Contact": domain.contact, "Licence": domain.licence, "Source": domain.source}
    named |= {f"Reason for {said.promise}": said.why}
    yield from ((name, text) for name, text in named.items() if text)


ENTRY = DescribingFile(
    "codebook.html", 6, "what every attribute, category and code means, with counts and their errors", _write
)
