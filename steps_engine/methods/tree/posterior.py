"""Plausible tables given one measurement: m draws of the exact counts from what the noisy counts and their law leave open.

Cells are exchangeable within a layer, among families of like size; the size of a family is known from the layer above. A
draw of the leaves (inference/posterior.py) is then tied to the layers above by Matheron's rule: least squares applied to
(leaf draw, inner counts minus fresh noise), the leaves weighted by their posterior variance, is a draw given both. All of
it is post-processing of what was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import CountNoise
from steps_engine.domain.nodes import Layer, Tree
from steps_engine.inference.least_squares import least_squares, least_squares_weights, noises_of, variances
from steps_engine.inference.posterior import Prior
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.noise import Randomness

MOST_GROUPS, LARGE_GROUP = 16, 2_000  # cells with a prior of their own: enough of them to speak for themselves


@dataclass(frozen=True)
class _Sanitized:
    """Nodes of one layer whose noise has the same scale. Leaves have a prior; inner nodes follow from their leaves."""

    depth: int
    nodes: slice | np.ndarray
    noisy: np.ndarray
    noise: CountNoise
    prior: Prior | None

    def variances(self) -> np.ndarray | float:
        return self.noise.variance if self.prior is None else self.prior.variances(self.noisy)

    def draw(self, randomness: Randomness) -> np.ndarray:
        if self.prior is not None:
            return self.prior.draw(self.noisy, randomness)
        drawn: np.ndarray = self.noisy - self.noise.draw(len(self.noisy), randomness)
        return drawn


def _parts(tree: Tree, noisy: NoisyCounts, plan: Plan) -> Iterator[_Sanitized]:
    """Inner nodes layer by layer; leaves in groups that are exchangeable, each with a prior of its own."""
    last = len(tree.layers)  # its nodes have no layer below to follow from: they are leaves, or their cells are sampled
    counts = [np.array([float(noisy.total or 0)]), *(layer[0] for layer in noisy.layers)]
    estimates = least_squares(tree, least_squares_weights(tree, variances(tree, plan)), counts)
    for depth, layer in enumerate(tree.layers, start=1):
        for kind, (nodes, noise) in noises_of(layer, depth, plan).items():
            if kind != "leaves" and depth < last:
                yield _Sanitized(depth, nodes, counts[depth][nodes], noise, None)
                continue
            for alike in _alike(layer, np.arange(len(layer))[nodes], estimates[depth - 1]):
                yield _Sanitized(depth, alike, counts[depth][alike], noise, Prior.fit(counts[depth][alike], noise))


def _alike(layer: Layer, nodes: np.ndarray, parents: np.ndarray) -> list[np.ndarray]:
    """The nodes in groups, by the rows that their parent is estimated to have for each of its children."""
    children = np.bincount(layer.parent, minlength=len(parents))[layer.parent[nodes]]
    order = np.argsort(np.round(parents[layer.parent[nodes]] / children, 6), kind="stable")
    return np.array_split(nodes[order], min(MOST_GROUPS, 1 + len(nodes) // LARGE_GROUP))


def plausible_tables(tree: Tree, noisy: NoisyCounts, plan: Plan, randomness: Randomness) -> Iterator[list[np.ndarray]]:
    """m consistent tables, root first; each is one draw of the exact counts given all noisy counts."""
    parts, variance = list(_parts(tree, noisy, plan)), variances(tree, plan)
    for part in parts:
        variance[part.depth][part.nodes] = part.variances()
    weights = least_squares_weights(tree, variance)
    for _ in range(plan.sets):
        table = [np.full(width, float(noisy.total or 0)) for width in tree.widths()]
        for part in parts:
            table[part.depth][part.nodes] = part.draw(randomness)
        yield least_squares(tree, weights, table)
