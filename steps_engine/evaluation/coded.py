"""Coded tables: one small whole number per attribute and row, with the public number of categories beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.domain.places import places_of
from steps_engine.noise import Randomness, integers_below, permutation

LARGEST_KEY = 2**62


@dataclass(frozen=True)
class CodedLevel:
    """A level of places: in which of its places each category of an attribute lies."""

    name: str
    attribute: int
    place: np.ndarray


@dataclass(frozen=True, repr=False)
class Coded:
    """Rows × attributes of category codes; `weight` (whole numbers) says how many records each row stands for."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: np.ndarray
    weight: np.ndarray | None = None
    levels: tuple[CodedLevel, ...] = ()  # of places within places, coarsest first, the finest too

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or not self.codes.shape[1] == len(self.names) == len(self.sizes):
            raise SpecError(
                f"a coded table needs one column per attribute: {len(self.names)} names, {len(self.sizes)} sizes, "
                f"codes of shape {self.codes.shape} were given"
            )
        outside = np.zeros(len(self.names), bool)
        if len(self.codes):
            outside = (self.codes.min(axis=0) < 0) | (self.codes.max(axis=0) >= np.array(self.sizes))
        if outside.any():
            wrong = ", ".join(np.array(self.names, dtype=object)[outside])
            raise SpecError(f"some codes lie outside the domain's categories in: {wrong}. Validate the file first.")
        weight = self.counts
        if weight.dtype.kind not in "iu" or weight.shape != (len(self.codes),) or (weight < 0).any():
            raise SpecError("weights must be one whole number, 0 or more, for each row")

    def __repr__(self) -> str:
        return f"Coded({len(self.names)} attributes)"

    @cached_property
    def counts(self) -> np.ndarray:
        """How many records each row stands for."""
        return np.ones(len(self.codes), np.int64) if self.weight is None else self.weight

    @cached_property
    def total(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, repr=False)
class Stack:
    """The distinct rows of two tables, and how many records of each table every distinct row stands for."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: np.ndarray
    original: np.ndarray
    synthetic: np.ndarray


def stack(original: Coded, synthetic: Coded) -> Stack:
    """Equal rows become one: every figure below depends on the two counts of a distinct row alone."""
    keys = row_keys(np.concatenate([original.codes, synthetic.codes]), original.sizes)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    split = len(original.codes)
    count = [
        np.bincount(part, weights=table.counts, minlength=len(first))
        for part, table in ((inverse[:split], original), (inverse[split:], synthetic))
    ]
    rows = np.concatenate([original.codes, synthetic.codes])[first]
    seen = count[0] + count[1] > 0
    return Stack(original.names, original.sizes, rows[seen], count[0][seen], count[1][seen])


def row_keys(codes: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """One whole number per row, equal exactly for equal rows; compacted before the domain outgrows 64 bits.

    >>> row_keys(np.array([[0, 1], [1, 0], [0, 1]]), (2, 3)).tolist()
    [1, 3, 1]
    """
    keys, reach = np.zeros(len(codes), np.int64), 1
    for column, size in enumerate(sizes):
        if reach > LARGEST_KEY // max(size, 1):
            distinct, keys = np.unique(keys, return_inverse=True)
            reach = len(distinct)
        keys, reach = keys * size + codes[:, column], reach * size
    return keys


def tally(codes: np.ndarray, sizes: Sequence[int], weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells of a margin and Σ weight in each; a margin far larger than the table is listed by its occupied cells."""
    key = row_keys(codes, sizes)
    if prod(sizes) <= len(key) + 1_000_000:
        return np.arange(prod(sizes)), np.bincount(key, weight, prod(sizes))
    cell, place = np.unique(key, return_inverse=True)
    return cell, np.bincount(place, weight)


def coded(domain: Domain, codes: np.ndarray, weight: np.ndarray | None = None) -> Coded:
    """Rows of a domain's codes, with the levels of its places."""
    levels = [
        CodedLevel(places.levels[level - 1], places.attribute, places.at(level))
        for places in ([places_of(domain)] if domain.geographies else [])
        for level in range(1, places.finest + 1)
    ]
    return Coded(domain.names, domain.sizes, codes, weight, tuple(levels))


def sample(table: Coded, rows: int, randomness: Randomness) -> Coded:
    """So many records drawn without replacement, where there are more."""
    if table.total <= rows:
        return table
    taken, weight = taken_of(table.counts, some_of(table.total, rows, randomness))
    return replace(table, codes=table.codes[taken], weight=weight)


def some_of(total: int, rows: int, randomness: Randomness) -> np.ndarray:
    """So many different numbers below the total, increasing, every choice alike; all of them where there are no more.

    Of few among many, numbers are drawn until there are enough that differ: memory grows with those, not with the total.
    """
    if total <= 2 * rows:
        return np.sort(permutation(total, randomness)[:rows])
    found = np.zeros(0, dtype=np.int64)
    while len(found) < rows:
        drawn = np.concatenate([found, integers_below(total, rows - len(found) + rows // 8 + 1, randomness)])
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])][:rows]
    return np.sort(found)


def taken_of(counts: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows hold the records of these numbers, and how many each, where a row stands for so many records in order."""
    taken, weight = np.unique(np.searchsorted(np.cumsum(counts), chosen, side="right"), return_counts=True)
    return taken, weight


def resample(table: Coded, rows: int, randomness: Randomness) -> Coded:
    """A bootstrap: `rows` records drawn with replacement."""
    ends = np.cumsum(table.counts)
    drawn = np.searchsorted(ends, integers_below(int(ends[-1]), rows, randomness), side="right")
    return Coded(table.names, table.sizes, table.codes, np.bincount(drawn, minlength=len(table.codes)))


def must_compare(original: Coded, synthetics: Sequence[Coded]) -> None:
    """Refuses tables that cannot be compared, and says why."""
    if not synthetics:
        raise SpecError("no synthetic set was given; name at least one file to compare with the original")
    if original.total == 0:
        raise SpecError("the original has no rows; there is nothing to compare")
    for number, synthetic in enumerate(synthetics, start=1):
        if (synthetic.names, synthetic.sizes) != (original.names, original.sizes):
            missing = sorted(set(original.names) - set(synthetic.names)) or "none"
            extra = sorted(set(synthetic.names) - set(original.names)) or "none"
            raise SpecError(
                f"synthetic set {number} does not have the original's attributes and categories in the same order: "
                f"missing {missing}, not expected {extra}. Code both tables by one domain."
            )
        if synthetic.total == 0:
            raise SpecError(f"synthetic set {number} has no rows; there is nothing to compare")
