"""Rows that are a sample, exchanged for others until their tables of three attributes are those of what they were taken from.

A sample that agrees in pairs errs in triples by chance. Of a larger pool with weights, whose tables would count t in as many
rows, the rows' own counts c are brought towards least Σ (c − t)²/(t + 1) over the cells of all pairs and triples: a row
leaves, and one of the pool comes, where that falls. Post-processing: it reads rows and weights that follow from noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from steps_engine.inference.reweighting import tables_of
from steps_engine.noise import Randomness, permutation, uniform

PASSES = 4  # over all rows: a fifth brings little more
TOGETHER, PARTS = 2**6, 2**7  # rows that are judged at once, and at least so many times: of more, each undoes what others do
NEAR = 2**18  # cells of rows that are judged at once: as many as a core keeps near
MOST_VISITS = 2**27  # of a row to a triple, all passes together
MOST_CELLS = 2**22  # of all triples
SECONDS_PER_ROW, SECONDS_PER_VISIT = 8e-7, 2.5e-8  # of each pass; of a row that is held against a triple


@dataclass(frozen=True)
class Tables:
    """All tables of two and of three attributes, one behind the other.

    Not of those with one category: it would be the table without them once more, and an array has 64 axes at most.
    """

    sizes: tuple[int, ...]

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        return [*self._pairs, *combinations(divided(self.sizes), 3)]

    @cached_property
    def _pairs(self) -> list[tuple[int, ...]]:
        return list(combinations(divided(self.sizes), 2))

    @cached_property
    def cells(self) -> np.ndarray:
        """Of each table."""
        return np.array([math.prod(self.sizes[j] for j in table) for table in self.tables])

    @cached_property
    def _steps(self) -> tuple[np.ndarray, ...]:
        """The pairs, with which of them each triple begins, its third attribute, and where the cells of each table begin."""
        place, triples = {pair: i for i, pair in enumerate(self._pairs)}, self.tables[len(self._pairs) :]
        begins = (np.cumsum(self.cells) - self.cells)[:, None]
        return np.array(self._pairs).T, np.array([place[of[:2]] for of in triples]), np.array([of[2] for of in triples]), begins

    def at(self, codes: np.ndarray) -> np.ndarray:
        """Tables × rows: the cell of each row (rows × attributes) in each table."""
        (first, second), begun, third, begins = self._steps
        column, size, pairs = codes.T.astype(np.intp), np.array(self.sizes)[:, None], len(self._pairs)
        cell = np.empty((len(self.tables), len(codes)), dtype=np.intp)
        cell[:pairs] = column[first] * size[second] + column[second]
        cell[pairs:] = cell[begun]
        cell[pairs:] *= size[third]
        cell[pairs:] += column[third]
        cell += begins
        return cell

    def shares(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.concatenate([table.ravel() for table in tables_of(codes, self.sizes, self.tables, weight)])


@dataclass
class _Balance:
    """What leaving and coming would bring, cell by cell."""

    beyond: np.ndarray  # c − t
    weight: np.ndarray  # 1/(t + 1)

    def __post_init__(self) -> None:
        self.leaves, self.comes = (2 * self.beyond - 1) * self.weight, (2 * self.beyond + 1) * self.weight

    def gain(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Of each row, if it is exchanged alone; a cell that it stays in has no part in it."""
        gain = self.leaves.take(old)
        gain -= self.comes.take(new)
        gain *= old != new
        total: np.ndarray = gain.sum(axis=0)
        return total

    def exchange(self, old: np.ndarray, new: np.ndarray) -> None:
        np.subtract.at(self.beyond, old, 1.0)
        np.add.at(self.beyond, new, 1.0)
        for cells in (old, new):
            twice, weight = 2 * self.beyond[cells], self.weight[cells]
            self.leaves[cells], self.comes[cells] = (twice - 1) * weight, (twice + 1) * weight


def exchanged(
    rows: np.ndarray, pool: np.ndarray, weight: np.ndarray, sizes: tuple[int, ...], randomness: Randomness
) -> np.ndarray:
    """The rows, some of them replaced by rows of the pool; as they are where there is too much to be looked at."""
    passes, tables = passes_over(len(rows), sizes), Tables(sizes)
    if not passes:
        return rows
    target = tables.shares(pool, weight) * len(rows)
    counts = np.rint(tables.shares(rows, np.ones(len(rows))) * len(rows))
    balance = _Balance(counts - target, 1 / (target + 1))
    rows = rows.copy()
    together = max(1, min(TOGETHER, len(rows) // PARTS, NEAR // len(tables.tables)))
    for part, drawn in _offers(len(rows), weight, passes, together, randomness):
        other = pool[drawn]
        old, new = tables.at(rows[part]), tables.at(other)
        better = balance.gain(old, new) > 0
        balance.exchange(old[:, better].ravel(), new[:, better].ravel())
        rows[part[better]] = other[better]
    return rows


def passes_over(rows: int, sizes: Sequence[int]) -> int:
    """How often all rows are looked at, from public numbers: their work and memory are bounded.

    >>> passes_over(45_000, (5,) * 15), passes_over(10**6, (5,) * 100), passes_over(100, (2, 2, 1))
    (4, 0, 0)
    """
    visits = rows * _triples(sizes)
    if not 0 < visits <= MOST_VISITS or cells_of(sizes) > MOST_CELLS:
        return 0
    return min(PASSES, MOST_VISITS // visits)


def seconds(rows: int, sizes: Sequence[int]) -> float:
    """About how long a core takes to exchange so many rows."""
    return rows * passes_over(rows, sizes) * (SECONDS_PER_ROW + _triples(sizes) * SECONDS_PER_VISIT)


def divided(sizes: Sequence[int]) -> list[int]:
    """The attributes that tell rows apart."""
    return [j for j, size in enumerate(sizes) if size > 1]


def _triples(sizes: Sequence[int]) -> int:
    return math.comb(len(divided(sizes)), 3)


def cells_of(sizes: Sequence[int]) -> int:
    """Of all tables of three: the third elementary symmetric polynomial of the sizes that are more than one.

    >>> cells_of((2, 3, 4)), cells_of((2, 3, 1, 4, 5))
    (24, 154)
    """
    one = two = three = 0
    for size in (sizes[j] for j in divided(sizes)):
        one, two, three = one + size, two + one * size, three + two * size
    return three


def _offers(
    rows: int, weight: np.ndarray, passes: int, together: int, randomness: Randomness
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows at a time, and for each one of the pool: by weight, every pass over other rows of it."""
    ends = np.cumsum(weight)
    for _ in range(passes):
        place = (np.arange(rows) + uniform(1, randomness)) * (ends[-1] / rows)
        drawn = np.minimum(np.searchsorted(ends, place, side="right"), len(weight) - 1)[permutation(rows, randomness)]
        order = permutation(rows, randomness)
        for begin in range(0, rows, together):
            yield order[begin : begin + together], drawn[begin : begin + together]
