"""Formats that records are read from, one per file: how a file is recognised, which columns it has, how SQL reads it.

What is said here reaches terminals and logs, so it names files and limits; never a column found, a value or a number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.registry import Registry
from schemas.spec.reading import Csv

MOST_COLUMNS = 2_000

# (name, what it holds) of every column: text, whole numbers, numbers, dates, times, nothing, or as written (AS_WRITTEN).
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Ends:
    """A file that is not empty, by its name and its first and last four bytes."""

    file: str
    first: bytes
    last: bytes

    @property
    def suffix(self) -> str:
        return Path(self.file).suffix.lower()


@dataclass(frozen=True)
class SourceFormat:
    """Formats are asked in the order of their places, those that know a file by its content first.

    `claims` says whether a file is of this format, and refuses one that means to be and is broken. `columns` looks at footers
    and headers only, and keeps to limits. `relation` is the table in SQL: of these files (a list, written out), with its
    columns called by these names, so that no name from a file is ever part of a query. Both are told how CSV files are
    written, as `settle` made sure from the first file's header. `unpack` gives what writes a file, its columns known, to a
    place that DuckDB can read; None: it reads the file itself.
    """

    name: str
    place: int
    title: str
    claims: Callable[[Ends], bool]
    columns: Callable[[tuple[str, ...], Csv], list[Columns]]
    relation: Callable[[str, Sequence[str], Csv], str]
    known_by: str = ""  # what a file must be called, where its content does not tell
    settle: Callable[[str, Csv], Csv] = lambda file, csv: csv
    unpack: Callable[[Csv], Unpack | None] = lambda csv: None


Unpack = Callable[[str, Path, Columns, Csv], None]


class Unreadable(Exception):
    """A record could not be unpacked. Its words may quote it: they are for the confidential page alone."""


FORMATS = Registry(__name__, SourceFormat)


def titles(between: str) -> str:
    """The formats there are, in a sentence.

    >>> titles("or")
    'Parquet, CSV, SPSS, Stata or SAS'
    """
    *others, last = (each.title for each in FORMATS.entries())
    return f"{', '.join(others)} {between} {last}" if others else last


def format_of(ends: Ends) -> SourceFormat | None:
    """The first format that claims a file."""
    return next((each for each in FORMATS.entries() if each.claims(ends)), None)
