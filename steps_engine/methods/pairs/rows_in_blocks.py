"""Rows of a set that has several blocks: weights of all blocks begin from angles that were fitted once, to a base of their own.

A base has weights log w = Σ θ_cell over the cells of all tables, but for its own chance: θ belongs to the law that bases are
drawn from, not to one of them. So a block needs a few sweeps where a single one needs many. What is in common follows from the
estimate and a seed of the set's stream, as blocks do: whoever makes a block has it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from steps_engine.domain.blocks import ends_of_blocks
from steps_engine.domain.encoding import decode
from steps_engine.inference.reweighting import fitted, tables_of
from steps_engine.methods.blocks import Block, in_blocks, stream_of
from steps_engine.methods.cascade.synthesize import leading_key
from steps_engine.methods.pairs.estimate import Estimate
from steps_engine.methods.pairs.implied import estimated
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.pairs.synthesize import (
    base_rows,
    base_size,
    by_weight,
    codes_of,
    demands,
    in_categories,
    rows_at,
    weights,
)
from steps_engine.noise import Randomness, permutation, uniform

BEGUN, AGAIN, BACK = 2, 7, (2,)  # sweeps: over the base, over rows taken from it, and back to what these had settled on
SWEPT = BEGUN + AGAIN + sum(BACK)


def blocks(structure: Structure, noisy: list[np.ndarray], which_set: int, randomness: Randomness) -> list[Block]:
    """The records of one set (1…m), block by block: the estimate is made once, and every block agrees with all of it."""
    plan, domain = structure.margins.plan, structure.margins.domain
    found = estimated(structure, noisy, which_set, randomness)
    rows = round(found.total) if plan.total == "estimated" else int(structure.margins.total[0])
    of_block = ends_of_blocks(rows)[1]
    shared = InCommon(structure, found, stream_of(randomness), of_block) if of_block < rows else None

    def records(part: slice, more: Randomness) -> pa.Table:
        number = part.stop - part.start
        if shared is None:
            return decode(codes_of(structure, found, number, more), domain, more)
        return decode(in_categories(structure, found, shared.agreeing(number, more), more), domain, more)

    return in_blocks(records, rows, randomness)


@dataclass(frozen=True)
class InCommon:
    """What the blocks of a set share, and a block from it."""

    structure: Structure  # of the tables that weights agree with
    found: Estimate
    stream: Callable[[], Randomness]
    rows: int  # of a block

    @cached_property
    def information(self) -> np.ndarray:
        return self.found.information(self.structure.tables)

    @cached_property
    def angles(self) -> list[np.ndarray]:
        """θ of every table, from a base that no block has."""
        base = self.base(self.rows, self.stream())
        return self._weighed(base, [np.zeros(table.shape) for table in self.found.tables])[1]

    def agreeing(self, rows: int, randomness: Randomness) -> np.ndarray:
        """Rows × attributes of groups, in random order."""
        return rows_at(self.taken_in_order(rows, randomness), permutation(rows, randomness))

    def taken_in_order(self, rows: int, randomness: Randomness) -> np.ndarray:
        """Taken by weight, taken again, and brought back to what the weights had settled on."""
        structure, found = self.structure, self.found
        base = self._in_order(self.base(rows, randomness))
        base = taken(base, self._weighed(base, self.angles, BEGUN)[0], rows, randomness)
        weight = weights(structure, found, base, AGAIN)
        settled = tables_of(base, structure.sizes, structure.tables, weight)
        base = taken(base, weight, rows, randomness)
        found = replace(found, tables=settled, variances=[np.zeros(table.size) for table in settled])
        for sweeps in BACK:
            base = taken(base, weights(structure, found, base, sweeps), rows, randomness)
        return base

    def base(self, rows: int, randomness: Randomness) -> np.ndarray:
        """What so many rows are taken from."""
        return base_rows(self.structure, self.found, self.information, base_size(rows), randomness)

    def _in_order(self, base: np.ndarray) -> np.ndarray:
        """Rows that are alike side by side, and in random order among themselves, as they came."""
        alike = leading_key(base, by_weight(self.structure, self.information), self.structure.sizes)
        return rows_at(base, np.argsort(alike, kind="stable"))

    def _weighed(self, base: np.ndarray, begun: list[np.ndarray], *sweeps: int) -> tuple[np.ndarray, list[np.ndarray]]:
        return fitted(base, self.structure.sizes, self.structure.tables, *demands(self.found, len(base)), begun, *sweeps)


def taken(base: np.ndarray, weight: np.ndarray, rows: int, randomness: Randomness) -> np.ndarray:
    """Systematic sampling along rows that are in order, which those that are taken stay in."""
    ends = np.cumsum(weight)
    place = (np.arange(rows) + uniform(1, randomness)) * (ends[-1] / rows)
    return rows_at(base, np.minimum(np.searchsorted(ends, place, side="right"), len(base) - 1))
