"""A table as its documentation describes it: neutral, whatever the documentation is written in. Public throughout."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

from schemas.errors import SpecError

Bound = Decimal | datetime.date

TEXT, WHOLE, NUMBERS, BOOLEANS, UNKNOWN = "text", "whole numbers", "numbers", "true or false", "unknown"
DATES, TIMES = "dates", "times of day"


@dataclass(frozen=True)
class Category:
    """A value as the data write it, what it means in words, and whether it stands for no answer."""

    value: str
    label: str = ""
    missing: bool = False


@dataclass(frozen=True)
class Variable:
    """One column. What the documentation does not say stays empty, and becomes a gap where it is needed."""

    column: str  # as the data call it
    holds: str = UNKNOWN
    name: str = ""  # as the documentation calls it, where it differs from the column
    title: str = ""
    description: str = ""
    categories: tuple[Category, ...] = ()
    complete: bool = True  # whether the categories are all there are
    ordered: bool = False
    low: Bound | None = None
    high: Bound | None = None
    edges: tuple[Bound, ...] = ()
    recode: tuple[tuple[str, str], ...] = ()  # values that the data write for others
    may_be_missing: bool = False
    missing_values: tuple[str, ...] = ()
    form: str | None = None  # of dates that are text
    remarks: tuple[str, ...] = ()  # what was seen and not taken


@dataclass(frozen=True)
class Description:
    """One table: where it is described, what is said of all of it, and its variables in order."""

    kind: str  # "DDI codebook"
    file: str  # its name
    variables: tuple[Variable, ...]
    name: str = ""
    title: str = ""
    description: str = ""
    publisher: str = ""
    licence: str = ""
    records: str = ""  # where the records lie, if it is said
    person: str | None = None  # the column that says whose row it is
    rows_per_person: int | None = None
    expected_rows: int | None = None
    csv: tuple[tuple[str, str], ...] = ()
    bare: bool = False  # names and types of columns, and nothing that is known of what they hold
    remarks: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return f"{self.kind} {self.file}".strip()


def must_be_usable(found: Description) -> Description:
    """There are variables, each named, and each once."""
    if not found.variables:
        raise SpecError(f"{found.file}: a {found.kind} that describes no variable; give one that does.")
    seen: dict[str, int] = {}
    for place, variable in enumerate(found.variables, 1):
        if not variable.column.strip():
            raise SpecError(f"{found.file}: variable {place} of this {found.kind} has no name; give it one.")
        if first := seen.setdefault(variable.column, place) - place:
            raise SpecError(
                f"{found.file}: {variable.column!r} stands twice, as variable {place + first} and {place}; keep one of them."
            )
    return found


def about(rows: int) -> int:
    """A public number of rows to two digits: it guides planning, and nobody needs it exactly.

    >>> about(45123), about(7)
    (45000, 7)
    """
    unit: int = 10 ** max(len(str(rows)) - 2, 0)
    return max(round(rows / unit) * unit, 1)
