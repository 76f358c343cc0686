"""Counts of linked tables: household rows and rows of their other members, in one table. CONFIDENTIAL.

A household's row has in every column of members the code behind the last category: nobody. Where households lie in places
within places, their rows are measured by places of every level, and those of members by the coarsest alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.domain.places import places_of


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


def measured_members(domain: Domain) -> Domain:
    """What rows of other members are measured by: the place of the coarsest level stands in place of the finest."""
    return places_of(domain.counted).at_level(domain.coarsest) if domain.geographies else domain.counted


def in_coarsest(domain: Domain, codes: np.ndarray) -> np.ndarray:
    """The same rows, of households or members, as those of members are measured."""
    if not domain.geographies:
        return codes
    places, found = places_of(domain), codes.copy(order="K")
    found[:, places.attribute] = places.at(domain.coarsest)[codes[:, places.attribute]]
    return found


def measured_parts(domain: Domain, counts: Counts) -> tuple[Counts, Counts]:
    """Household rows, and rows of other members as these are measured."""
    households, members = parted(domain, counts)
    return households, CoarseCounts(domain, members) if domain.geographies else members


class CoarseCounts(Counts):
    """CONFIDENTIAL. Rows by the place of the coarsest level, of which no more than a block need be held."""

    def __init__(self, domain: Domain, counts: Counts) -> None:
        object.__setattr__(self, "_domain", domain)
        object.__setattr__(self, "_counts", counts)

    _domain: Domain
    _counts: Counts

    def __repr__(self) -> str:
        return f"CoarseCounts(confidential, {self._counts!r})"

    @cached_property
    def codes(self) -> np.ndarray:
        return in_coarsest(self._domain, self._counts.codes)

    @cached_property
    def count(self) -> np.ndarray:
        return self._counts.count

    def blocks(self) -> Iterator[Counts]:
        return (Counts(in_coarsest(self._domain, block.codes), block.count) for block in self._counts.blocks())


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
