"""Formats that describe a table, one per file: how a document is recognised, and how it becomes a description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from schemas.registry import Registry
from tasks.describing.description import Description, must_be_usable
from tasks.describing.documents import Document, open_document


@dataclass(frozen=True)
class DescribingFormat:
    """Formats are asked in the order of their places. `wants` says in words what such a document looks like."""

    name: str
    place: int
    title: str
    wants: str
    claims: Callable[[Document], bool]
    describe: Callable[[Document, str | None], Description]


FORMATS = Registry(__name__, DescribingFormat)


def describe(path: Path | str, table: str | None = None) -> Description:
    """The description that lies at a path; of several tables, the one that is named."""
    document = open_document(Path(path))
    for each in FORMATS.entries():
        if each.claims(document):
            return must_be_usable(each.describe(document, table))
    known = "; ".join(f"{each.title} ({each.wants})" for each in FORMATS.entries())
    raise SpecError(f"{path}: {document.looks}, and nothing that describes a table. Known are: {known}.")


def the_table(document: Document, tables: dict[str, Any], asked: str | None) -> tuple[str, Any]:
    """The table that is asked for, or the only one there is."""
    if asked is None and len(tables) == 1:
        return next(iter(tables.items()))
    if asked in tables:
        return str(asked), tables[str(asked)]
    found = ", ".join(list(tables)[:20]) + (", …" if len(tables) > 20 else "") or "none"
    wanted = f"there is no table {asked!r}" if asked is not None else f"{len(tables)} tables"
    raise SpecError(f"{document.path}: {wanted}; it describes {found}. Say which: --table NAME.")
