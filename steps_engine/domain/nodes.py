"""The nodes of a tree as arrays: one array per layer, children of a node side by side. No node objects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts

Split = tuple[int, ...]  # attribute indices, the first one slowest in `code`


@dataclass(frozen=True)
class Layer:
    """Nodes of one layer, ordered by parent, then by code."""

    parent: np.ndarray  # index in the layer above
    split: np.ndarray  # index into Tree.splits: the attributes on which the parent was split
    code: np.ndarray  # category of the node among its siblings
    cell: np.ndarray  # the cell of a leaf, -1 for a node that is split further

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def first(self) -> np.ndarray:
        """Where each family of siblings begins."""
        return np.flatnonzero(np.diff(self.parent, prepend=-1))

    @cached_property
    def families(self) -> np.ndarray:
        """The parent of each family, increasing."""
        parents: np.ndarray = self.parent[self.first]
        return parents

    @cached_property
    def fanout(self) -> np.ndarray:
        return np.diff(self.first, append=len(self))

    def sum_up(self, values: np.ndarray, above: int) -> np.ndarray:
        """Children's values summed for each node of the layer above (0 for one without children)."""
        sums = np.zeros(above, dtype=values.dtype)
        sums[self.families] = np.add.reduceat(values, self.first)
        return sums

    def hand_down(self, values: np.ndarray) -> np.ndarray:
        """Each parent's value repeated for its children."""
        return np.repeat(values[self.families], self.fanout)


def kinds_of_nodes(layer: Layer) -> dict[str, slice | np.ndarray]:
    """Inner nodes and leaves of a layer: a leaf above the last layer spends the rest of its path at once."""
    leaf = layer.cell >= 0
    if leaf.all() or not leaf.any():
        return {"leaves" if leaf.all() else "inner": slice(None)}
    return {"inner": np.flatnonzero(~leaf), "leaves": np.flatnonzero(leaf)}


@dataclass(frozen=True)
class Tree:
    """Layers below the root (layer 0, node 0), top first."""

    domain: Domain
    splits: tuple[Split, ...]
    layers: tuple[Layer, ...]

    def widths(self) -> tuple[int, ...]:
        """Nodes per layer, the root's included."""
        return (1, *(len(layer) for layer in self.layers))

    def branches(self, depth: int) -> np.ndarray:
        """Nodes × attributes of one layer: the category that each node's branch fixes, -1 where it fixes none."""
        codes = np.full((self.widths()[depth], len(self.domain.sizes)), -1, dtype=np.int32)
        node = np.arange(len(codes))
        for layer in reversed(self.layers[:depth]):
            for number in np.unique(layer.split[node]):
                rows = np.flatnonzero(layer.split[node] == number)
                rest = layer.code[node[rows]]
                for j in reversed(self.splits[number]):
                    codes[rows, j] = rest % self.domain.sizes[j]
                    rest = rest // self.domain.sizes[j]
            node = layer.parent[node]
        return codes

    def node_counts(self, counts: Counts) -> tuple[np.ndarray, ...]:
        """CONFIDENTIAL. Exact count of every node, root first; empty nodes included."""
        exact, ways = [np.array([counts.count.sum()])], walk_down(self.domain, self.splits, self.layers, counts.codes)
        for layer, (rows, node) in zip(self.layers, ways, strict=True):
            exact.append(np.zeros(len(layer), dtype=np.int64))
            np.add.at(exact[-1], node, counts.count[rows])
        return tuple(exact)


def weights_of(domain: Domain, splits: tuple[Split, ...]) -> np.ndarray:
    """Splits × attributes: a child's code is Σ code_j · weight_j, first attribute slowest; 0 where not split on."""
    weights = np.zeros((len(splits), len(domain.sizes)), dtype=np.int64)
    for row, split in zip(weights, splits, strict=True):
        sizes = [domain.sizes[j] for j in split]
        row[list(split)] = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return weights


def walk_down(
    domain: Domain, splits: tuple[Split, ...], layers: tuple[Layer, ...], codes: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Per layer: which rows of codes have not ended in a leaf above, and the node in which each of them is."""
    weights, rows, node, above = weights_of(domain, splits), np.arange(len(codes)), np.zeros(len(codes), dtype=np.int64), 1
    for layer in layers:
        split_of = np.zeros(above, dtype=np.int32)
        split_of[layer.families] = layer.split[layer.first]
        code = np.zeros(len(rows), dtype=np.int64)
        for j in np.flatnonzero(weights[np.unique(split_of)].any(axis=0)):
            code += codes[rows, j] * weights[split_of, j][node]
        room = int(layer.code.max()) + 1
        child = np.minimum(np.searchsorted(layer.parent * room + layer.code, node * room + code), len(layer) - 1)
        if ((layer.parent[child] != node) | (layer.code[child] != code)).any():
            raise ValueError("some records lie in cells that the domain's rules exclude; validate them first")
        yield rows, child
        going = layer.cell[child] < 0
        rows, node, above = rows[going], child[going], len(layer)
