"""Rows in blocks: what grows with the rows is made, written, read and checked so many of them at a time, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from schemas.spec.domain import Domain
from steps_engine.domain.records import codes_of

BLOCK = 2**20  # rows that are held at a time; a set of no more is one block


@runtime_checkable
class Blocks(Protocol):
    """A table of records that is not in memory."""

    @property
    def num_rows(self) -> int: ...

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Its rows in order, from the first one on every time; of these columns, or of all."""
        ...


def blocks_of(records: Any, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a table, or of one that is not in memory."""
    if isinstance(records, Blocks):
        yield from records.blocks(columns)
        return
    chosen = records if columns is None else records.select(columns)
    for first in range(0, max(len(chosen), 1), BLOCK):
        yield chosen.slice(first, BLOCK)


class Reading:
    """Rows in order, as many at a time as is asked for, however large the blocks are in which they come."""

    def __init__(self, records: Any, columns: Sequence[str] | None = None) -> None:
        self._blocks = blocks_of(records, columns)
        self._rest = next(self._blocks)  # there is one, if only without rows

    def take(self, rows: int) -> pa.Table:
        """The next ones; fewer where there are no more."""
        found = [self._rest.slice(0, rows)]
        self._rest, rows = self._rest.slice(rows), rows - len(found[0])
        while rows and (block := next(self._blocks, None)) is not None:
            found.append(block.slice(0, rows))
            self._rest, rows = block.slice(rows), rows - len(found[-1])
        return pa.concat_tables(found)


def held(records: Any) -> pa.Table:
    """All rows, in memory."""
    return records if isinstance(records, pa.Table) else pa.concat_tables(blocks_of(records))


def ends_of_blocks(rows: int) -> list[int]:
    """0 and where each block ends: as few as can be, of as many rows each, up to one.

    >>> ends_of_blocks(7), np.diff(ends_of_blocks(3 * BLOCK + 2)).tolist()
    ([0, 7], [786432, 786433, 786432, 786433])
    """
    number = max(1, -(-rows // BLOCK))
    return [rows * i // number for i in range(number + 1)]


def one_way_counts(records: Any, domain: Domain) -> list[np.ndarray]:
    """Of every attribute how many rows each category has."""
    found = [np.zeros(size, dtype=np.int64) for size in domain.sizes]
    for block in blocks_of(records, domain.names):
        for counts, codes in zip(found, codes_of(block, domain).T, strict=True):
            counts += np.bincount(codes, minlength=len(counts))
    return found
