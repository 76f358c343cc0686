"""More rows from a tree: cells in proportion to a plausible table's whole numbers; a condition leaves out other cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.methods.sources import Kept, measurement_of, plausible_plan
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.methods.tree.sparse import KeptCells, is_sampled
from steps_engine.methods.tree.synthesize import filled_cells
from steps_engine.methods.tree.tables import read_tree
from steps_engine.noise import Randomness, permutation, uniform


@dataclass(frozen=True)
class CellSource:
    """Cells and how many rows each holds."""

    space: Space
    cells: np.ndarray
    count: np.ndarray
    selects: bool = True

    def rows(self, number: int, kept: Kept, randomness: Randomness) -> np.ndarray:
        """By systematic sampling: each cell as often as its part of all says, up to one; in random order."""
        chosen = np.ones(len(self.cells), dtype=bool)
        for j, held in kept.items():
            chosen &= np.isin(self.space.digit(self.cells, j), held)
        cells, ends = self.cells[chosen], np.cumsum(self.count[chosen])
        if not len(cells):
            return np.zeros((0, len(self.space.strides)), dtype=np.int32)
        place = (permutation(number, randomness) + uniform(1, randomness)) * (ends[-1] / number)
        taken = np.minimum(np.searchsorted(ends, place, side="right"), len(cells) - 1)
        return self.space.codes(cells[taken])


def source(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], number: int, randomness: Randomness) -> CellSource:
    tree = read_tree(domain, tables["tree"], is_sampled(plan))
    noisy = _one_of(NoisyCounts.from_table(tables["noisy-counts"], is_sampled(plan)), measurement_of(plan, number))
    one = plausible_plan(plan, sets=1).model_copy(update={"sets": 1})
    made: ConsistentCounts = correct(tree, noisy, one, randomness)
    return CellSource(Space(domain), *filled_cells(tree, made, 1))


def _one_of(noisy: NoisyCounts, measurement: int) -> NoisyCounts:
    here = slice(measurement, measurement + 1)
    cells = None if noisy.cells is None else KeptCells(noisy.cells.cells, noisy.cells.noisy[here])
    return NoisyCounts(tuple(layer[here] for layer in noisy.layers), noisy.total, cells)
