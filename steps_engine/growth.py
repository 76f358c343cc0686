"""Growing a tree: every allowed cell walks down one layer at a time, all of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from steps_engine.cells import Space
from steps_engine.nodes import Layer, Split


@dataclass(frozen=True)
class Growth:
    """A tree so far: the cells that have not reached a leaf, and the node of the newest layer in which each one is."""

    space: Space
    splits: tuple[Split, ...]
    layers: tuple[Layer, ...]
    cells: np.ndarray  # increasing
    node: np.ndarray  # of each cell
    used: np.ndarray  # bool, nodes × attributes: what the branch was split on

    @classmethod
    def from_root(cls, space: Space) -> Growth:
        cells = space.allowed()
        unused = np.zeros((1, len(space.domain.sizes)), dtype=bool)
        return cls(space, (), (), cells, np.zeros(len(cells), dtype=np.int64), unused)

    @property
    def width(self) -> int:
        """Nodes of the newest layer."""
        return len(self.used)

    def open_nodes(self) -> np.ndarray:
        """Nodes that hold more than one cell and so can be split."""
        present = np.zeros(self.width, dtype=bool)
        present[self.node] = True
        return np.flatnonzero(present)

    def remainder(self) -> tuple[tuple[Split, ...], np.ndarray]:
        """Each node's unused attributes: the full cross-tabulation that ends a tree with L < p."""
        distinct, which = np.unique(self.used, axis=0, return_inverse=True)
        return tuple(tuple(np.flatnonzero(~row).tolist()) for row in distinct), which.reshape(-1).astype(np.int32)

    def allowed_categories(self, attribute: int) -> np.ndarray:
        """How many categories of an attribute the rules leave in each node: public, whatever the records say."""
        size = self.space.domain.sizes[attribute]
        present = np.zeros(self.width * size, dtype=bool)
        present[self.node * size + self.space.digit(self.cells, attribute)] = True
        return present.reshape(self.width, size).sum(axis=1)

    def split(self, splits: tuple[Split, ...], split_of: np.ndarray, last: bool) -> Growth:
        """The next layer: node v is split on splits[split_of[v]]; combinations that no allowed cell has are not nodes."""
        size = np.array([math.prod(self.space.domain.sizes[j] for j in split) for split in splits])
        room = np.zeros(self.width, dtype=np.int64)
        room[self.open_nodes()] = size[split_of[self.open_nodes()]]
        base = np.cumsum(room) - room
        slot = base[self.node] + self._codes(splits, split_of)
        taken = np.zeros(int(room.sum()), dtype=bool)
        taken[slot] = True
        number = np.cumsum(taken) - 1
        child = number[slot]

        known = self.splits + tuple(split for split in splits if split not in self.splits)
        slots = np.flatnonzero(taken)
        parent = np.repeat(np.arange(self.width), room)[slots]
        layer = Layer(
            parent=parent,
            split=np.array([known.index(split) for split in splits], dtype=np.int32)[split_of[parent]],
            code=slots - base[parent],
            cell=self._leaf_cells(child, len(slots), last),
        )
        membership = np.array([np.isin(np.arange(self.used.shape[1]), split) for split in splits])
        walking = layer.cell[child] < 0
        used = self.used[parent] | membership[split_of[parent]]
        return Growth(self.space, known, (*self.layers, layer), self.cells[walking], child[walking], used)

    def _codes(self, splits: tuple[Split, ...], split_of: np.ndarray) -> np.ndarray:
        """Each cell's code among the children of its node: Σ digit_j · weight_j, weights depending on the node's split."""
        weight = np.zeros((len(splits), self.used.shape[1]), dtype=np.int64)
        for row, split in zip(weight, splits, strict=True):
            sizes = [self.space.domain.sizes[j] for j in split]
            row[list(split)] = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
        code = np.zeros(len(self.cells), dtype=np.int64)
        for j in np.flatnonzero(weight.any(axis=0)):
            code += self.space.digit(self.cells, j) * weight[split_of, j][self.node]
        return code

    def _leaf_cells(self, child: np.ndarray, width: int, last: bool) -> np.ndarray:
        """The cell of each child that is a leaf, -1 for the others. In the last layer a child is a cell."""
        cell = np.full(width, -1, dtype=np.int64)
        cell[child] = self.cells
        if not last:
            cell[np.bincount(child, minlength=width) > 1] = -1
        return cell
