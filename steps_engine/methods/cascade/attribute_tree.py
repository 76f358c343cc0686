"""One attribute's ragged tree over its predecessors, as arrays: one array per layer, no node objects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.cells import Component, Space
from steps_engine.domain.contingency import chunks, in_parallel
from steps_engine.domain.nodes import Split


@dataclass(frozen=True)
class AttributeTree:
    """Layers of splits from the root down; a node that has stopped has one child, itself, in every later layer."""

    domain: Domain
    attribute: int
    splits: tuple[Split, ...]  # the first is (): stop
    layers: tuple[np.ndarray, ...]  # per node of the layer: which split

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return self.domain.sizes

    @property
    def categories(self) -> int:
        return self.sizes[self.attribute]

    @cached_property
    def fanouts(self) -> tuple[np.ndarray, ...]:
        """Children of each node, per layer."""
        size = np.array([math.prod(self.sizes[j] for j in split) for split in self.splits], dtype=np.int64)
        return tuple(size[layer] for layer in self.layers)

    def width(self, depth: int) -> int:
        return int(self.fanouts[depth - 1].sum()) if depth else 1

    @property
    def leaves(self) -> int:
        return self.width(len(self.layers))

    def descend(self, codes: np.ndarray) -> np.ndarray:
        """The leaf of each row of codes."""
        flat = codes.T.reshape(-1)  # one attribute after the other: a view where codes lie that way
        found = in_parallel(lambda part: self._leaf(flat, len(codes), part), chunks(len(codes)))
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int32)

    def _leaf(self, flat: np.ndarray, length: int, part: slice) -> np.ndarray:
        rows = np.arange(part.start, part.stop)
        node = np.zeros(len(rows), dtype=np.int32)
        for layer, fanout in zip(self.layers, self.fanouts, strict=True):
            number, node = layer[node], (np.cumsum(fanout) - fanout).astype(np.int32)[node]
            for attribute, stride in self._steps(layer):
                node += stride[number] * flat[(attribute * length)[number] + rows]
        return node

    def _steps(self, layer: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Per split its first attribute and that one's stride, then its second, …: child = Σ stride · code."""
        longest = max(len(self.splits[number]) for number in np.unique(layer))
        for place in range(longest):
            attribute, stride = np.zeros((2, len(self.splits)), dtype=np.int64)
            for number, split in enumerate(self.splits):
                if place < len(split):
                    attribute[number] = split[place]
                    stride[number] = math.prod(self.sizes[j] for j in split[place + 1 :])
            yield attribute, stride.astype(np.int32)

    def branches(self, depth: int | None = None) -> np.ndarray:
        """Nodes × attributes: the category that each node's branch fixes, -1 where it fixes none."""
        codes = np.full((1, len(self.sizes)), -1, dtype=np.int32)
        for layer, fanout in zip(self.layers[:depth], self.fanouts[:depth], strict=True):
            number, codes = np.repeat(layer, fanout), np.repeat(codes, fanout, axis=0)
            rest = np.arange(len(codes)) - np.repeat(np.cumsum(fanout) - fanout, fanout)
            for chosen in np.unique(layer):
                rows = np.flatnonzero(number == chosen)
                for j in reversed(self.splits[chosen]):
                    codes[rows, j] = rest[rows] % self.sizes[j]
                    rest[rows] //= self.sizes[j]
        return codes

    def tidy(self) -> AttributeTree:
        """The same tree with only the splits that it uses, in a fixed order."""
        used = sorted({int(number) for layer in self.layers for number in np.unique(layer)} - {0}, key=lambda i: self.splits[i])
        new = np.zeros(len(self.splits), dtype=np.int32)
        new[used] = np.arange(1, len(used) + 1)
        splits = ((), *(self.splits[i] for i in used))
        return AttributeTree(self.domain, self.attribute, splits, tuple(new[layer] for layer in self.layers))

    @cached_property
    def elections(self) -> np.ndarray:
        """How many elections the path of each leaf held: up to the one that stopped it."""
        held, stopped = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
        for layer, fanout in zip(self.layers, self.fanouts, strict=True):
            held, stopped = held + ~stopped, stopped | (layer == 0)
            held, stopped = np.repeat(held, fanout), np.repeat(stopped, fanout)
        return held

    @cached_property
    def allowed(self) -> np.ndarray:
        """Leaves × categories that some allowed cell has; the others are no cells."""
        branches = self.branches()
        allowed = np.ones((len(branches), self.categories), dtype=bool)
        for component in Space(self.domain).components:
            allowed &= _allowed_in(component, branches, self.attribute)
        return allowed


def mixed_radix(codes: np.ndarray, split: Split, sizes: tuple[int, ...]) -> np.ndarray:
    """One number per row for the categories of a group of attributes, the first one slowest."""
    number = np.zeros(len(codes), dtype=np.int64)
    for j in split:
        number = number * sizes[j] + codes[:, j]
    return number


def _allowed_in(component: Component, branches: np.ndarray, attribute: int) -> np.ndarray:
    """Branches × categories of the attribute (or × 1) that the component's rules leave possible."""
    fixed = branches[:, list(component.attributes)] >= 0
    width = component.allowed.shape[component.attributes.index(attribute)] if attribute in component.attributes else 1
    result = np.ones((len(branches), width), dtype=bool)
    for pattern in np.unique(fixed, axis=0):
        rows = np.flatnonzero((fixed == pattern).all(axis=1))
        free = tuple(a for a, j in enumerate(component.attributes) if not pattern[a] and j != attribute)
        known = [j for a, j in enumerate(component.attributes) if pattern[a]]
        possible = component.completable(free)
        axis = [j for j in component.attributes if j in known or j == attribute]
        if attribute in axis:
            possible = np.moveaxis(possible, axis.index(attribute), -1)
        result[rows] = possible[tuple(branches[rows, j] for j in known)].reshape(-1, width)
    return result
