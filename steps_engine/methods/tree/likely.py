"""The whole numbers of a flat table: what each of its cells is likely to hold, rounded, and exchanged where rounding errs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.cells import Space
from steps_engine.domain.nodes import Tree
from steps_engine.inference import exchanging
from steps_engine.inference.likely_cells import likely_cells
from steps_engine.inference.rounding import project, whole_numbers
from steps_engine.noise import Randomness

MOST_CELLS, MOST_ROWS = 2**21, 2**20  # whose rows are exchanged: of more, rounding is a small part of what is wrong
FINEST = 2.0**20  # steps of an expected count: machines differ by less


def are_exchanged(cells: int, rows: int, sizes: Sequence[int]) -> bool:
    """Not where a table of three attributes is the table itself, whose cells rounding leaves within a row."""
    return cells <= MOST_CELLS and rows <= MOST_ROWS and sum(size > 1 for size in sizes) > 3


def likely_table(
    tree: Tree, noisy: np.ndarray, plan: Plan, total: np.ndarray, most: int, randomness: Randomness
) -> list[np.ndarray]:
    """Root first, as `whole_numbers` has them, of the noisy counts of all cells."""
    (layer,), space = tree.layers, Space(tree.domain)
    root = np.clip(np.rint(np.round(total, 6)), 0, most).astype(np.int64)
    kept, values, _ = project(layer, noisy.astype(float), root)
    start = np.zeros(len(layer))
    start[kept] = values
    noise = noise_of(plan.count_draw(1, 1, "leaves"))
    expected = likely_cells(noisy, noise, start, lambda j: space.digit(layer.cell, j), tree.domain.sizes)
    expected = np.rint(expected * FINEST) / FINEST
    root, whole = whole_numbers(tree, [root, expected], randomness, most)
    if are_exchanged(len(layer), int(root[0]), tree.domain.sizes):
        whole = _exchanged(layer.cell, whole, expected, space, randomness)
    return [root, whole]


def _exchanged(cells: np.ndarray, whole: np.ndarray, expected: np.ndarray, space: Space, randomness: Randomness) -> np.ndarray:
    """Whole numbers of the same sum, whose tables of two and three are nearer to those of what is expected."""
    pool = np.flatnonzero((expected > 0) | (whole > 0))  # rounding may put a row where next to nothing is expected
    codes = space.codes(cells[pool])
    weight, rows = np.maximum(expected[pool], 1 / FINEST), np.repeat(codes, whole[pool], axis=0)
    rows = exchanging.exchanged(rows, codes, weight, space.domain.sizes, randomness)
    order = np.argsort(cells)
    counts: np.ndarray = np.bincount(order[np.searchsorted(cells, space.cells(rows), sorter=order)], minlength=len(cells))
    return counts
