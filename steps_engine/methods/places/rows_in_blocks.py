"""Rows of places in blocks: every block has of every place of every level its part up to one row, and all of them add up to it.

Whole numbers of rows of all places are found once, and dealt to the blocks in turn: one row after the other, in the order of
places. Finest places that lie in one place stand together, so what holds of any run of rows holds of places of every level.

Of fine places a block has few rows for a cell, none for some by chance, and weights that make up for those err alike in every
block, in coarse tables too. So rows are brought back, last of all, to the tables that have rows enough for each of their cells,
and then to those that have many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from steps_engine.domain.blocks import ends_of_blocks
from steps_engine.domain.encoding import decode
from steps_engine.methods.blocks import Block, in_blocks, stream_of
from steps_engine.methods.pairs.estimate import Estimate
from steps_engine.methods.pairs.rows_in_blocks import InCommon, taken
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.pairs.synthesize import in_categories, weights
from steps_engine.methods.places.estimate import Measured
from steps_engine.methods.places.synthesize import Country, base_of, codes_of, country_of, in_places, place_rows
from steps_engine.noise import Randomness

FILLED = (16, 128)  # rows of a block for each cell: those are brought back to first, and last
LAST = 2  # sweeps of each


def blocks(measured: Measured, which_set: int, randomness: Randomness) -> list[Block]:
    """The records of one set (1…m), block by block: the country is made once, and all that its places have is dealt out."""
    (made, rows), domain = country_of(measured, which_set, randomness), measured.places.domain
    ends = ends_of_blocks(rows)
    if len(ends) == 2:
        return in_blocks(lambda _, more: decode(codes_of(measured, made, rows, more), domain, more), rows, randomness)
    finest = place_rows(measured, made, rows, randomness)[-1]
    shared = InCommonByPlace(*made.wanted, stream_of(randomness), ends[1], measured, made)

    def records(part: slice, more: Randomness) -> pa.Table:
        return decode(shared.codes_in(dealt(finest, ends, ends.index(part.start)), more), domain, more)

    return in_blocks(records, rows, randomness)


def dealt(rows: np.ndarray, ends: Sequence[int], block: int) -> np.ndarray:
    """Of the rows of every place those of one block. Blocks that are larger by a row take theirs first, so that each is full.

    >>> [dealt(np.array([5, 0, 1, 4]), [0, 3, 6, 10], block).tolist() for block in range(3)]
    [[2, 0, 0, 1], [1, 0, 1, 1], [2, 0, 0, 2]]
    """
    sizes = np.diff(ends)
    turn = int(np.flatnonzero(np.argsort(-sizes, kind="stable") == block)[0])
    own: np.ndarray = np.diff((np.cumsum(rows) + len(sizes) - 1 - turn) // len(sizes), prepend=0)
    return own


@dataclass(frozen=True)
class InCommonByPlace(InCommon):
    """What the blocks of a country share: weights agree with its tables at every level."""

    measured: Measured
    made: Country

    def codes_in(self, finest: np.ndarray, randomness: Randomness) -> np.ndarray:
        """Rows × attributes of codes, so many in every finest place."""
        drawn = in_categories(*self.made.base, self.agreeing(int(finest.sum()), randomness), randomness)
        return in_places(self.measured, self.made, drawn, finest, randomness)

    def taken_in_order(self, rows: int, randomness: Randomness) -> np.ndarray:
        """As all tables ask, and then as those that are filled well do."""
        base = super().taken_in_order(rows, randomness)
        for structure, found in map(self.filled, FILLED):
            base = taken(base, weights(structure, found, base, LAST), rows, randomness)
        return base

    def filled(self, each: int) -> tuple[Structure, Estimate]:
        """The tables of which a block has so many rows for each cell, and what was found of them."""
        structure, found = self.structure, self.found
        kept = [t for t, table in enumerate(found.tables) if table.size * each <= self.rows]
        tables, variances = [found.tables[t] for t in kept], [found.variances[t] for t in kept]
        named = tuple(structure.tables[t] for t in kept)
        return replace(structure, tables=named), replace(found, tables=tables, variances=variances)

    def base(self, rows: int, randomness: Randomness) -> np.ndarray:
        return base_of(self.measured, self.made, rows, randomness)
