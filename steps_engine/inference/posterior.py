"""Plausible tables given one measurement: m draws of the exact counts from what the noisy counts and their law leave open.

Cells are exchangeable within a layer, among families of like size: x ~ g, y = x + two-sided geometric noise. The prior g is
estimated from the noisy counts themselves (nonparametric maximum likelihood by EM: Kiefer and Wolfowitz 1956, Laird 1978), so
a table that is mostly empty is recognised as such and its zeros stay zeros; projection alone would spread the noise over them.
The size of a family is known from the layer above. A draw of the leaves is then tied to the layers above by Matheron's rule:
least squares applied to (leaf draw, inner counts minus fresh noise), the leaves weighted by their posterior variance, is a draw
given both. All of it is post-processing of what was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from schemas.plan import Plan
from steps_engine import laws, noise
from steps_engine.domain.nodes import Layer, Tree
from steps_engine.inference.least_squares import kinds_of_scales, least_squares, least_squares_weights, variances

if TYPE_CHECKING:
    from steps_engine.methods.tree.sanitize import NoisyCounts

NEAR, FAR = 24, 34  # in scales: noisy counts up to NEAR use the prior, which is fitted up to FAR; beyond, it would be flat
STEPS_PER_SCALE = 8  # the grid is finer than the noise
MOST_GROUPS, LARGE_GROUP = 16, 2_000  # cells with a prior of their own: enough of them to speak for themselves
ROUNDS = 200  # EM from half a flat start and half an atom at zero; stopping early keeps the prior smooth


def flat_weight(cells: int) -> float:
    """Weight of a flat prior beside the cells': a handful of cells must not look certain; many speak for themselves."""
    return 20 / (1 + cells / 100)


@dataclass(frozen=True)
class Prior:
    """Posterior of a cell for every binned noisy count: rows of probabilities over bins of exact counts."""

    scale: Fraction
    lowest: int  # of the binned noisy counts
    step: int  # width of a bin; bin 0 of the exact counts is the single value 0
    cumulative: np.ndarray  # noisy bins × exact bins
    variance: np.ndarray  # per noisy bin

    @classmethod
    def fit(cls, noisy: np.ndarray, scale: Fraction, unseen: int = 0, threshold: int = 0) -> Prior:
        """From the noisy counts at hand; `unseen` more are known only to have stayed below a threshold."""
        step = max(1, math.floor(scale / STEPS_PER_SCALE))
        seen = noisy[noisy <= math.floor(FAR * scale)]
        lowest, highest = int(seen.min(initial=0)), max(int(seen.max(initial=0)), 1)
        cells = np.bincount((seen - lowest) // step, minlength=(highest - lowest) // step + 1)
        exact = np.concatenate([[0.0], 1 + step * np.arange(-(-highest // step)) + (step - 1) / 2])
        middle = lowest + step * np.arange(len(cells)) + (step - 1) / 2
        likelihood = np.exp(-np.abs(middle[:, None] - exact) / float(scale))
        if unseen:
            height = step * math.tanh(1 / (2 * float(scale)))  # a bin's part of the noise's law is about this × likelihood
            likelihood = np.vstack([height * likelihood, laws.chance_below(threshold - exact, scale)])
            cells = np.append(cells, unseen)
        flat = flat_weight(len(noisy) + unseen) / len(exact)
        prior = np.full(len(exact), 0.5 / len(exact))
        prior[0] += 0.5
        for _ in range(ROUNDS):
            posterior = likelihood * prior
            prior = (cells / posterior.sum(axis=1)) @ posterior + flat
            prior /= prior.sum()
        posterior = (likelihood * prior)[: len(middle)]
        posterior /= posterior.sum(axis=1, keepdims=True)
        mean = posterior @ exact
        spread = np.maximum(posterior @ exact**2 - mean**2, 0) + (step**2 - 1) / 12 * (1 - posterior[:, 0])
        return cls(scale, lowest, step, np.cumsum(posterior, axis=1), spread)

    def near(self, noisy: np.ndarray) -> np.ndarray:
        return np.flatnonzero(noisy <= math.floor(NEAR * self.scale))

    def variances(self, noisy: np.ndarray) -> np.ndarray:
        result, near = np.full(len(noisy), laws.variance(self.scale)), self.near(noisy)
        result[near] = self.variance[(noisy[near] - self.lowest) // self.step]
        return result

    def draw(self, noisy: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
        """One plausible exact count per cell. Where the prior is flat: the noisy count minus fresh noise."""
        near = self.near(noisy)
        far = np.ones(len(noisy), dtype=bool)
        far[near] = False
        result = np.zeros(len(noisy), dtype=np.int64)
        result[far] = noisy[far] - noise.two_sided_geometric(self.scale, int(far.sum()), randomness)
        row = (noisy[near] - self.lowest) // self.step
        ladder = (self.cumulative / self.cumulative[:, -1:] + np.arange(len(self.cumulative))[:, None]).ravel()
        width = self.cumulative.shape[1]
        rung = np.searchsorted(ladder, row + noise.uniform(len(near), randomness), side="right")
        bin_ = np.minimum(rung - row * width, width - 1)
        within = noise.integers_below(self.step, len(near), randomness) if self.step > 1 else 0
        result[near] = np.where(bin_ > 0, 1 + (bin_ - 1) * self.step + within, 0)
        return result


@dataclass(frozen=True)
class _Measured:
    """Nodes of one layer whose noise has the same scale. Leaves have a prior; inner nodes follow from their leaves."""

    depth: int
    nodes: slice | np.ndarray
    noisy: np.ndarray
    scale: Fraction
    prior: Prior | None

    def variances(self) -> np.ndarray | float:
        return laws.variance(self.scale) if self.prior is None else self.prior.variances(self.noisy)

    def draw(self, randomness: noise.Randomness) -> np.ndarray:
        if self.prior is not None:
            return self.prior.draw(self.noisy, randomness)
        return self.noisy - noise.two_sided_geometric(self.scale, len(self.noisy), randomness)


def _parts(tree: Tree, noisy: NoisyCounts, plan: Plan) -> Iterator[_Measured]:
    """Inner nodes layer by layer; leaves in groups that are exchangeable, each with a prior of its own."""
    last = len(tree.layers)  # its nodes have no layer below to follow from: they are leaves, or their cells are sampled
    counts = [np.array([float(noisy.total or 0)]), *(layer[0] for layer in noisy.layers)]
    estimates = least_squares(tree, least_squares_weights(tree, variances(tree, plan)), counts)
    for depth, layer in enumerate(tree.layers, start=1):
        for kind, (nodes, scale) in kinds_of_scales(layer, depth, plan).items():
            if kind != "leaves" and depth < last:
                yield _Measured(depth, nodes, counts[depth][nodes], scale, None)
                continue
            for alike in _alike(layer, np.arange(len(layer))[nodes], estimates[depth - 1]):
                yield _Measured(depth, alike, counts[depth][alike], scale, Prior.fit(counts[depth][alike], scale))


def _alike(layer: Layer, nodes: np.ndarray, parents: np.ndarray) -> list[np.ndarray]:
    """The nodes in groups, by the rows that their parent is estimated to have for each of its children."""
    children = np.bincount(layer.parent, minlength=len(parents))[layer.parent[nodes]]
    order = np.argsort(parents[layer.parent[nodes]] / children, kind="stable")
    return np.array_split(nodes[order], min(MOST_GROUPS, 1 + len(nodes) // LARGE_GROUP))


def plausible_tables(tree: Tree, noisy: NoisyCounts, plan: Plan, randomness: noise.Randomness) -> Iterator[list[np.ndarray]]:
    """m consistent tables, root first; each is one draw of the exact counts given everything that was measured."""
    parts, spread = list(_parts(tree, noisy, plan)), variances(tree, plan)
    for part in parts:
        spread[part.depth][part.nodes] = part.variances()
    weights = least_squares_weights(tree, spread)
    for _ in range(plan.sets):
        table = [np.full(width, float(noisy.total or 0)) for width in tree.widths()]
        for part in parts:
            table[part.depth][part.nodes] = part.draw(randomness)
        yield least_squares(tree, weights, table)
