"""Tables as Parquet files that need not fit in memory: written block by block, read in batches, hashed as they stream."""

from __future__ import annotations

import hashlib
import hmac
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import StepsError

VALUES = 2**22  # read at a time: rows × columns
MOST_ROWS, FEWEST_ROWS = 2**20, 2**14
PIECE = 2**20  # bytes


@dataclass(frozen=True)
class Stored:
    """A table in a Parquet file. What it says of itself is the file's footer; rows come in batches, or a column at a time."""

    path: Path

    @cached_property
    def num_rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)

    @cached_property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def blocks(self, columns: Sequence[str] | None = None, rows: int | None = None) -> Iterator[pa.Table]:
        """The rows in order, at most so many at a time or as many as fit; of an empty table one block without rows.

        Arrow keeps what an iterator has read of a file until it ends: one over all of it would hold as much as the file.
        """
        chosen = None if columns is None else list(columns)
        rows = rows or _fitting(len(self.schema if chosen is None else chosen))
        with pq.ParquetFile(self.path) as file:
            for groups in _runs([file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)], rows):
                for batch in file.iter_batches(rows, row_groups=groups, columns=chosen):
                    yield pa.Table.from_batches([batch])
            if not file.metadata.num_rows:
                yield file.read(columns=chosen)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, in memory."""
        with pq.ParquetFile(self.path) as file:
            return file.read(columns=None if columns is None else list(columns))

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.read([name])[name]


def _fitting(columns: int) -> int:
    """Rows of a block: a power of two, so that blocks of 2²⁰ rows, as they are written, are whole numbers of these.

    >>> _fitting(1) == MOST_ROWS, _fitting(12) == 2**18, _fitting(1000) == FEWEST_ROWS
    (True, True, True)
    """
    return min(MOST_ROWS, max(FEWEST_ROWS, 1 << (VALUES // max(1, columns)).bit_length() - 1))


def _runs(sizes: Sequence[int], rows: int) -> Iterator[list[int]]:
    """Row groups by their numbers: each by itself, or small ones together until they have about so many rows.

    >>> list(_runs([8, 8, 3], 4)), list(_runs([1, 1, 1, 1, 1], 2)), list(_runs([], 4))
    ([[0], [1], [2]], [[0, 1], [2, 3], [4]], [])
    """
    ends = accumulate(sizes)
    for _, run in groupby(enumerate(ends), lambda group: (group[1] - 1) // rows):
        yield [number for number, _ in run]


def write_blocks(file: IO[bytes], table: pa.Table | Iterable[pa.Table], schema: pa.Schema, name: str) -> None:
    """A table, or what follows block by block, in exactly the declared schema. A block is a row group: the same rows make the
    same bytes, whoever made them.
    """
    blocks = [table] if isinstance(table, pa.Table) else table
    with writing(file, schema, name) as write:
        for block in blocks:
            write(block)
            del block  # before the next one is made


@contextmanager
def writing(file: IO[bytes], schema: pa.Schema, name: str) -> Iterator[Callable[[pa.Table], None]]:
    """The same, for whoever writes several tables side by side."""
    with pq.ParquetWriter(file, _without_notes(schema), compression="zstd") as writer:
        yield lambda block: writer.write_table(_declared(block, schema, name))


def digest_of(path: Path, key: bytes | None = None) -> str:
    """SHA-256 of a file, or HMAC-SHA256 under a key."""
    with path.open("rb") as file:
        if key is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.file_digest(file, lambda: hmac.new(key, digestmod=hashlib.sha256)).hexdigest()


def copy_into(path: Path, target: IO[bytes]) -> None:
    with path.open("rb") as file:
        shutil.copyfileobj(file, target, PIECE)


def _without_notes(schema: pa.Schema) -> pa.Schema:
    notes = {key: value for key, value in (schema.metadata or {}).items() if key != b"pandas"}
    return schema.with_metadata(notes or None)


def _declared(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """The table in exactly the declared schema, without pandas' notes. Messages name columns, never values."""
    if table.column_names != schema.names:
        raise StepsError(f"{name} must have columns {', '.join(schema.names)}; got {', '.join(table.column_names)}.")
    columns = []
    for field in schema:
        try:
            column = table[field.name].cast(field.type)
        except pa.ArrowException:
            raise StepsError(f'{name}: column "{field.name}" cannot be stored as {field.type} without loss.') from None
        if column.null_count and not field.nullable:
            raise StepsError(f'{name}: column "{field.name}" must not have missing values.')
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=_without_notes(schema))
