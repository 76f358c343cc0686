"""Databases that records are read from, one per file: which columns a query has, and its rows as a Parquet file.

Whatever is asked runs once, alone, in a transaction that can only read. What is said here reaches terminals and logs: it names
addresses, which hold no password, and what was asked; never a column found, a value or a number of rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import InfrastructureFault, SpecError
from schemas.registry import Registry
from schemas.spec.database import DatabaseSource
from tasks.reading.formats import MOST_COLUMNS, Columns

VALUES_PER_BATCH = 1_000_000


@dataclass(frozen=True)
class DatabaseKind:
    """`columns` asks the database to describe the query, and reads no record. `unpack` writes its rows to a Parquet file in a
    confidential folder, some at a time: columns c0, c1, … as described, those that are not wanted empty.
    """

    name: str  # the scheme of its addresses
    place: int
    columns: Callable[[DatabaseSource], Columns]
    unpack: Callable[[DatabaseSource, Path, Columns, Collection[int]], None]


DATABASES = Registry(__name__, DatabaseKind)


def described(source: DatabaseSource) -> Columns:
    """The columns of what is asked; a file that is none, a table or column that is not there, is refused."""
    if source.path is not None and not os.path.isfile(source.path):
        raise SpecError(f"source {source}: there is no such file; check the path, or the period in it.")
    columns = DATABASES.named(source.scheme).columns(source)
    if len(columns) > MOST_COLUMNS:
        raise SpecError(f"source {source}: more than {MOST_COLUMNS:,} columns.")
    return columns


def unusable(source: DatabaseSource, said: str) -> SpecError:
    """What is asked cannot be had, whoever asks again."""
    return SpecError(f"source {source}: {said}. No record was read; correct url, table or query in release.yaml.")


def one_select(source: DatabaseSource) -> SpecError:
    return SpecError(f"source {source}: the query must be one SELECT, without parameters and without a second statement.")


def out_of_reach(source: DatabaseSource, said: str, hint: str) -> InfrastructureFault:
    """Worth a retry."""
    return InfrastructureFault(f"source {source}: the database cannot be read now ({said}). {hint} Then run again.")
