"""Levels of places joined: exact least squares over a tree of places, column by column, and exact variances of any sum of them.

The two passes of least_squares.py make of noise at every level one estimate for every place. In their words: given its parent
h, a child has the mean z + (U/S)(h − Σz) and siblings have the covariance U·1{same} − UU'/S. So a sum Σ u·h over children is
one of their parent with weight Σ uU/S, plus what is independent of everything above, of variance Σ u²U − (Σ uU)²/S; from
level to level up to the root, whose variance is T. Covariances are the same with two weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steps_engine.domain.nodes import Layer, Tree
from steps_engine.inference.least_squares import Weights, least_squares, least_squares_weights


@dataclass(frozen=True)
class Level:
    """What was measured of every place of a level, places × columns, and the variance of its noise; ∞: nothing."""

    value: np.ndarray
    variance: float

    @classmethod
    def nothing(cls, places: int, columns: int) -> Level:
        return cls(np.zeros((places, columns)), math.inf)

    def joined(self, other: Level) -> Level:
        """Both, by precision."""
        if not math.isfinite(self.variance) or other.variance == 0:
            return other
        if not math.isfinite(other.variance) or self.variance == 0:
            return self
        both = 1 / self.variance + 1 / other.variance
        return Level((self.value / self.variance + other.value / other.variance) / both, 1 / both)


@dataclass(frozen=True)
class Levels:
    """Estimates of every place at every level, root first, places × columns; the noise of columns is alike and independent."""

    tree: Tree
    value: tuple[np.ndarray, ...]
    weights: Weights

    @property
    def depth(self) -> int:
        return len(self.tree.layers)

    @property
    def variance(self) -> tuple[np.ndarray, ...]:
        """Of one column of every place of every level."""
        return self.weights.variance

    def sums(self, classes: np.ndarray, whole: np.ndarray) -> Sums:
        """Of places of the deepest level by class (−1: none), and of those in the whole; one column's variances."""
        inside = np.flatnonzero(classes >= 0)
        terms = _Terms(inside, classes[inside], np.ones(len(inside)))
        number, both = int(classes.max(initial=-1)) + 1, whole.astype(float)
        variance, cross, whole_variance = np.zeros(number), np.zeros(number), 0.0
        for depth in range(self.depth, 0, -1):
            layer, up, below = self.tree.layers[depth - 1], self.weights.up[depth], self.weights.below[depth - 1]
            above = _Above(layer, up, np.where(below > 0, below, 1.0))
            handed = above.sum_up(both * up)
            left, parent = above.of_terms(terms)
            variance += np.bincount(terms.of, terms.weight**2 * up[terms.node], number)
            variance -= np.bincount(parent.of, left**2 / above.below[parent.node], number)
            cross += np.bincount(terms.of, terms.weight * (both * up)[terms.node], number)
            cross -= np.bincount(parent.of, left * handed[parent.node] / above.below[parent.node], number)
            whole_variance += float((both**2 * up).sum() - (handed**2 / above.below).sum())
            terms, both = parent, handed / above.below
        root = float(self.variance[0][0])
        variance += np.bincount(terms.of, terms.weight**2, number) * root
        cross += np.bincount(terms.of, terms.weight, number) * both[0] * root
        return Sums(np.maximum(variance, 0.0), cross, max(whole_variance + both[0] ** 2 * root, 0.0))


@dataclass(frozen=True)
class Sums:
    """Variances of sums of places, their covariances with the whole, and its variance."""

    variance: np.ndarray
    cross: np.ndarray
    whole: float


@dataclass(frozen=True)
class _Terms:
    """Weights of nodes in sums: each node once in each sum."""

    node: np.ndarray
    of: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class _Above:
    """One step up the tree."""

    layer: Layer
    up: np.ndarray
    below: np.ndarray

    @cached_property
    def nodes(self) -> int:
        return len(self.below)

    def sum_up(self, values: np.ndarray) -> np.ndarray:
        return self.layer.sum_up(values, self.nodes)

    def of_terms(self, terms: _Terms) -> tuple[np.ndarray, _Terms]:
        """Σ uU of the children of each parent in each sum, and the parents' terms."""
        sums = int(terms.of.max(initial=0)) + 1
        key, place = np.unique(self.layer.parent[terms.node] * sums + terms.of, return_inverse=True)
        left = np.bincount(place.ravel(), terms.weight * self.up[terms.node], len(key))
        node = key // sums
        return left, _Terms(node, key % sums, left / self.below[node])


def joined_levels(tree: Tree, said: Sequence[Level]) -> Levels:
    """Least squares over what was measured at every level, the root first; at the deepest level something was."""
    weights = least_squares_weights(tree, [np.full(len(each.value), each.variance) for each in said])
    columns = [least_squares(tree, weights, [each.value[:, c] for each in said]) for c in range(said[0].value.shape[1])]
    return Levels(tree, tuple(np.stack(of_level, axis=1) for of_level in zip(*columns, strict=True)), weights)
