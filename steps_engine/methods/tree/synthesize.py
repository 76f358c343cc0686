"""Whole counts to records: each leaf's cell as many times as its count says, shuffled, values drawn within their bins."""

from __future__ import annotations

import numpy as np

from steps_engine import noise
from steps_engine.domain.cells import Space
from steps_engine.domain.nodes import Tree
from steps_engine.methods.blocks import Block, decoded
from steps_engine.methods.tree.correct import ConsistentCounts


def synthesize(tree: Tree, consistent: ConsistentCounts, which_set: int, randomness: noise.Randomness) -> list[Block]:
    """The records of one set (1…m). Reads no record and no exact count: post-processing, free of charge."""
    cells, count = filled_cells(tree, consistent, which_set)
    codes = Space(tree.domain).codes(cells)
    rows = np.repeat(np.arange(len(codes)), count)
    rows = rows[noise.permutation(len(rows), randomness)]
    return decoded(lambda part: codes[rows[part]], len(rows), tree.domain, randomness)


def filled_cells(tree: Tree, consistent: ConsistentCounts, which_set: int) -> tuple[np.ndarray, np.ndarray]:
    """The cells that hold rows in a set, and how many."""
    cells, count = [], []
    for layer, whole in zip(tree.layers, consistent.whole[1:], strict=True):
        filled = np.flatnonzero((layer.cell >= 0) & (whole[which_set - 1] > 0))
        cells.append(layer.cell[filled])
        count.append(whole[which_set - 1][filled])
    if consistent.cells is not None:
        filled = np.flatnonzero(consistent.cells.whole[which_set - 1])
        cells.append(consistent.cells.cells[filled])
        count.append(consistent.cells.whole[which_set - 1][filled])
    return np.concatenate(cells), np.concatenate(count)
