"""The paper's correction exactly as printed, to show its effect. For studies only: what it releases does not add up.

    bottom: z = n* at the leaves (layer L); above, z = ((b^(L−l) − b^(L−l−1))·n* + (b^(L−l−1) − 1)·Σz_child) / (b^(L−l) − 1)
    top:    leaves keep z; above, n̄ = z + (n̄_parent − Σz_sibling) / b
with b the largest number of categories of any attribute: smaller families are filled up with phantoms held at 0.
The leaves, which are all that is released, never meet the layers above them: they are plain noisy counts.
"""

from __future__ import annotations

import numpy as np

from schemas.plan import Plan
from steps_engine.domain.nodes import Tree
from steps_engine.inference.rounding import round_keeping_sums
from steps_engine.methods.tree.correct import ConsistentCounts
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.noise import Randomness


def as_printed(tree: Tree, noisy: list[np.ndarray]) -> list[np.ndarray]:
    """n̄ of every layer, root first; `noisy` begins with n, which the paper takes as public."""
    fanout, last = max(2, *tree.domain.sizes), len(tree.layers)
    z = [noisy[-1].astype(float)]
    for depth in range(last - 1, 0, -1):
        here, below = float(fanout) ** (last - depth), float(fanout) ** (last - depth - 1)
        children = tree.layers[depth].sum_up(z[0], len(noisy[depth]))
        z.insert(0, ((here - below) * noisy[depth] + (below - 1) * children) / (here - 1))
    result = [np.asarray(noisy[0], dtype=float)]
    for layer, estimate in zip(tree.layers[:-1], z[:-1], strict=True):
        residual = result[-1] - layer.sum_up(estimate, len(result[-1]))
        result.append(estimate + layer.hand_down(residual) / fanout)
    return [*result, z[-1]]


def correct_as_printed(tree: Tree, noisy: NoisyCounts, plan: Plan, randomness: Randomness) -> ConsistentCounts:
    """n̄ of every set; its rows come from the leaves, negative counts cut to zero, scaled to n, rounded."""
    total = _known_total(noisy)
    sets = [as_printed(tree, [np.array([total]), *(layer[i] for layer in noisy.layers)]) for i in range(plan.sets)]
    whole = [np.stack([_rounded(tree.layers[-1].cell, each[-1], total, randomness) for each in sets])]
    above = [np.zeros((plan.sets, width), dtype=np.int64) for width in tree.widths()[:-1]]
    estimates = tuple(np.mean(layer, axis=0) for layer in zip(*sets, strict=True))
    return ConsistentCounts(estimates, tuple(np.full(len(each), np.nan) for each in estimates), (*above, *whole))


def _known_total(noisy: NoisyCounts) -> int:
    if noisy.total is None:
        raise ValueError("the correction as printed needs the exact number of rows; say total: public or invariant")
    return noisy.total


def _rounded(cell: np.ndarray, leaves: np.ndarray, total: int, randomness: Randomness) -> np.ndarray:
    cut = np.where(cell >= 0, np.maximum(leaves, 0.0), 0.0)
    if not cut.any():
        return np.zeros(len(cut), dtype=np.int64)
    scaled = cut * (total / cut.sum())
    return round_keeping_sums(scaled, np.array([len(scaled)]), np.array([total]), randomness)
