"""Exact counts of occupied cells: the last confidential value. Empty cells are the domain's, not the table's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.weights import LARGEST_SET

LARGEST_UNEXPECTED = 2**26  # rows, where nobody expected any number


@dataclass(frozen=True, repr=False)
class Counts:
    """CONFIDENTIAL. One row of category codes per occupied cell, and how many records it holds."""

    codes: np.ndarray  # whole numbers, cells × attributes; of a large table narrow ones, an attribute's side by side
    count: np.ndarray  # int64

    def __repr__(self) -> str:
        return f"Counts(confidential, {self.codes.shape[1]} attributes)"

    def blocks(self) -> Iterator[Counts]:
        """Some cells at a time: all of them, where they are in memory."""
        yield self

    def columns(self) -> Iterator[Iterable[np.ndarray]]:
        """Each attribute's codes and then the counts, piece by piece."""
        yield from ([column] for column in self.codes.T)
        yield [self.count]

    def to_table(self, domain: Domain) -> pa.Table:
        schema = tables.cells(domain)
        columns = [pa.array(self.codes[:, j].astype(schema.types[j].to_pandas_dtype())) for j in range(self.codes.shape[1])]
        return pa.Table.from_arrays([*columns, pa.array(self.count, pa.int64())], schema=schema)

    @classmethod
    def from_table(cls, domain: Domain, table: pa.Table) -> Counts:
        codes = no_codes(table.num_rows, domain.counted.sizes)
        for j, name in enumerate(domain.counted.names):
            codes[:, j] = table[name]
        return cls(codes, table[tables.COUNT].to_numpy())


def most_rows(domain: Domain) -> int:
    """How many rows a synthetic set may have at most, whatever the noise says: public, so that a set always fits somewhere."""
    return min(LARGEST_SET, 100 * domain.expected_units) if domain.expected_units else LARGEST_UNEXPECTED


def no_codes(rows: int, sizes: tuple[int, ...]) -> np.ndarray:
    """Rows × attributes of zeros, attribute by attribute, in the narrowest type that holds every code.

    Behind its categories an attribute has codes for values that are none.
    """
    return np.zeros((rows, len(sizes)), dtype=tables.code_type(max(sizes)).to_pandas_dtype(), order="F")


def count_codes(codes: np.ndarray) -> Counts:
    """Distinct rows of codes with how often each occurs.

    >>> count_codes(np.array([[1, 0], [0, 0], [1, 0]])).count.tolist()
    [1, 2]
    """
    distinct, count = np.unique(np.asarray(codes, dtype=np.int32), axis=0, return_counts=True)
    return Counts(distinct, count.astype(np.int64))
