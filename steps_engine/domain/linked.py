"""Counts of linked tables: household rows and rows of their other members, in one table. CONFIDENTIAL.

A household's row has in every column of members the code behind the last category: nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts, no_codes


def joined(domain: Domain, households: Counts, members: Counts) -> Counts:
    """Both as one, in the order of their codes."""
    sizes = domain.counted.sizes
    codes = no_codes(len(households.count) + len(members.count), sizes)
    first = len(domain.sizes)
    codes[: len(households.count), :first] = households.codes
    codes[: len(households.count), first:] = sizes[first:]
    codes[len(households.count) :] = members.codes
    count = np.concatenate([households.count, members.count])
    order = np.lexsort(codes.T[::-1])
    return Counts(np.asfortranarray(codes[order]), count[order])


def parted(domain: Domain, counts: Counts) -> tuple[Counts, Counts]:
    """Household rows, and rows of other members; read in blocks where all of them are."""
    return PartCounts(domain, counts, True), PartCounts(domain, counts, False)


class PartCounts(Counts):
    """CONFIDENTIAL. Those of household rows, or those of other members, of counts of both."""

    def __init__(self, domain: Domain, both: Counts, of_households: bool) -> None:
        object.__setattr__(self, "_both", both)
        object.__setattr__(self, "_of_households", of_households)
        object.__setattr__(self, "_sizes", domain.sizes if of_households else domain.counted.sizes)
        object.__setattr__(self, "_first", (len(domain.sizes), domain.counted.sizes[len(domain.sizes)]))

    _both: Counts
    _of_households: bool
    _sizes: tuple[int, ...]
    _first: tuple[int, int]  # the column of members that says of a row whose it is, and what stands there of nobody

    def __repr__(self) -> str:
        return f"PartCounts(confidential, {len(self._sizes)} attributes)"

    @cached_property
    def codes(self) -> np.ndarray:
        return np.asfortranarray(np.concatenate([no_codes(0, self._sizes), *(block.codes for block in self.blocks())]))

    @cached_property
    def count(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype=np.int64), *(block.count for block in self.blocks())])

    def blocks(self) -> Iterator[Counts]:
        column, nobody = self._first
        for block in self._both.blocks():
            kept = (block.codes[:, column] == nobody) == self._of_households
            yield Counts(np.asfortranarray(block.codes[kept, : len(self._sizes)]), block.count[kept])
