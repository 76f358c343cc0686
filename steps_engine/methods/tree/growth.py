"""Growing a tree, one layer at a time and all nodes of a layer at once. Cells are never listed, only nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from steps_engine.domain.cells import Space
from steps_engine.domain.nodes import Layer, Split, walk_down, weights_of
from steps_engine.domain.prefixes import categories_left, complete, completions


@dataclass(frozen=True)
class Growth:
    """A tree so far, and the nodes of its newest layer as prefixes: cells with all attributes that are not fixed at 0."""

    space: Space
    splits: tuple[Split, ...]
    layers: tuple[Layer, ...]
    prefix: np.ndarray
    open: np.ndarray  # bool: nodes that are no leaf and so are split
    patterns: np.ndarray  # bool, distinct patterns × attributes: what a branch can have been split on
    pattern: np.ndarray  # of each node

    @classmethod
    def from_root(cls, space: Space) -> Growth:
        unused = np.zeros((1, len(space.domain.sizes)), dtype=bool)
        return cls(space, (), (), np.zeros(1, dtype=np.int64), np.ones(1, dtype=bool), unused, np.zeros(1, dtype=np.int64))

    @property
    def width(self) -> int:
        """Nodes of the newest layer."""
        return len(self.prefix)

    @property
    def used(self) -> np.ndarray:
        """Bool, nodes × attributes: what each branch was split on."""
        used: np.ndarray = self.patterns[self.pattern]
        return used

    def open_nodes(self) -> np.ndarray:
        """Nodes that hold more than one cell and so can be split."""
        return np.flatnonzero(self.open)

    def walking(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """CONFIDENTIAL if the codes are: which rows have not reached a leaf, and the open node in which each of them is."""
        rows, node = np.arange(len(codes)), np.zeros(len(codes), dtype=np.int64)
        for rows, node in walk_down(self.space.domain, self.splits, self.layers, codes):  # noqa: B007
            pass
        going = self.open[node]
        return rows[going], node[going]

    def remainder(self) -> tuple[tuple[Split, ...], np.ndarray]:
        """Each open node's unused attributes: the full cross-tabulation that ends a tree with L < p."""
        present, which = np.unique(self.pattern[self.open], return_inverse=True)
        rest_of = np.zeros(self.width, dtype=np.int64)
        rest_of[self.open] = which.reshape(-1)
        return tuple(tuple(np.flatnonzero(~row).tolist()) for row in self.patterns[present]), rest_of

    def allowed_categories(self, attribute: int) -> np.ndarray:
        """How many categories of an attribute the rules leave in each node: public, whatever the records say."""
        result = np.empty(self.width, dtype=np.int64)
        for nodes, fixed in self._by_pattern():
            result[nodes] = categories_left(self.space, self.prefix[nodes], fixed, attribute)
        return result

    def split(self, splits: tuple[Split, ...], split_of: np.ndarray, last: bool) -> Growth:
        """The next layer: node v is split on splits[split_of[v]]; combinations that no allowed cell has are not nodes."""
        sizes = np.array([math.prod(self.space.domain.sizes[j] for j in split) for split in splits])
        room = np.where(self.open, sizes[split_of], 0)
        parent = np.repeat(np.arange(self.width), room)
        code = np.arange(len(parent)) - np.repeat(np.cumsum(room) - room, room)
        below = self._below(splits, split_of, parent, code)
        number = below._each(completions)
        if not number.all():
            kept = np.flatnonzero(number)
            parent, code, number, below = parent[kept], code[kept], number[kept], below._only(kept)
        known = self.splits + tuple(split for split in splits if split not in self.splits)
        split_number = np.array([known.index(split) for split in splits], dtype=np.int32)[split_of[parent]]
        layer = Layer(parent, split_number, code, below._leaf_cells(number, last))
        return Growth(self.space, known, (*self.layers, layer), below.prefix, layer.cell < 0, below.patterns, below.pattern)

    def _below(self, splits: tuple[Split, ...], split_of: np.ndarray, parent: np.ndarray, code: np.ndarray) -> Growth:
        """Every combination of categories below the open nodes, allowed or not."""
        weights, prefix = weights_of(self.space.domain, splits), self.prefix[parent]
        for j in np.flatnonzero(weights.any(axis=0)):
            weight = weights[split_of, j][parent]
            digit = code // np.maximum(weight, 1) % self.space.domain.sizes[j]
            prefix += np.where(weight > 0, digit * self.space.strides[j], 0)
        pairs, pair_of = np.unique(np.stack([self.pattern, split_of])[:, self.open], axis=1, return_inverse=True)
        pair = np.zeros(self.width, dtype=np.int64)
        pair[self.open] = pair_of.reshape(-1)
        patterns, new = np.unique(self.patterns[pairs[0]] | (weights > 0)[pairs[1]], axis=0, return_inverse=True)
        pattern = new.reshape(-1)[pair][parent]
        return Growth(self.space, (), (), prefix, np.ones(len(prefix), dtype=bool), patterns, pattern)

    def _only(self, kept: np.ndarray) -> Growth:
        return Growth(self.space, (), (), self.prefix[kept], self.open[kept], self.patterns, self.pattern[kept])

    def _by_pattern(self) -> Iterator[tuple[np.ndarray | slice, frozenset[int]]]:
        """The nodes that fix the same attributes, with these."""
        fixed = [frozenset(np.flatnonzero(row).tolist()) for row in self.patterns]
        if len(fixed) == 1:
            yield slice(None), fixed[0]
            return
        order = np.argsort(self.pattern, kind="stable")
        ends = np.searchsorted(self.pattern[order], np.arange(len(fixed) + 1))
        for number, attributes in enumerate(fixed):
            if ends[number] < ends[number + 1]:
                yield order[ends[number] : ends[number + 1]], attributes

    def _each(self, function: Callable[..., np.ndarray], *arguments: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        result = np.empty(self.width, dtype=np.int64)
        for nodes, fixed in self._by_pattern():
            result[nodes] = function(self.space, self.prefix[nodes], fixed, *arguments)
        return result

    def _leaf_cells(self, number: np.ndarray, last: bool) -> np.ndarray:
        """The cell of each node that is a leaf, -1 for the others: a node with a single allowed cell is one."""
        if last:  # rules may settle attributes that no layer is split on
            return self.prefix if self.patterns.all() else self._each(complete, np.zeros_like)
        cell = np.full(self.width, -1, dtype=np.int64)
        single = np.flatnonzero(number == 1)
        cell[single] = self._only(single)._each(complete, np.zeros_like)
        return cell
