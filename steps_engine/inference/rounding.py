"""Whole non-negative numbers that add up: each parent's children are projected on {x ≥ 0, Σx = parent}, then rounded.

Cutting negative counts to zero instead would keep all of the positive noise: on sparse tables most rows would be noise.
"""

from __future__ import annotations

import numpy as np

from schemas.spec.weights import LARGEST_SET
from steps_engine import noise
from steps_engine.domain.nodes import Layer, Tree


def whole_numbers(
    tree: Tree, estimates: list[np.ndarray], randomness: noise.Randomness, most: int = LARGEST_SET
) -> list[np.ndarray]:
    """Top-down, root first: every sum is kept exactly. The root is at most `most`."""
    root = np.round(estimates[0], 6)  # a half is a half on every machine
    result = [np.clip(np.rint(root), 0, most).astype(np.int64)]
    for layer, estimate in zip(tree.layers, estimates[1:], strict=True):
        kept, values, sizes = project(layer, estimate, result[-1])
        whole = np.zeros(len(layer), dtype=np.int64)
        whole[kept] = round_keeping_sums(values, sizes, result[-1][layer.families], randomness)
        result.append(whole)
    return result


def project(layer: Layer, estimate: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nearest point with x ≥ 0 and Σx = total in every family: x = max(h − τ, 0) (Held et al. 1974).

    Michelot's iteration: τ = (Σh − total)/size over the children still positive; it only grows, so dropping those at or
    below it ends at the projection. Returns the positive children, their values, and how many each family keeps.
    """
    kept, values, sizes = None, estimate, layer.fanout
    totals = totals[layer.families].astype(float)
    while True:
        families = np.flatnonzero(sizes)
        first = (np.cumsum(sizes) - sizes)[families]
        sums = np.add.reduceat(values, first) if len(values) else np.zeros(0)
        above = values - np.repeat((sums - totals[families]) / sizes[families], sizes[families])
        positive = np.flatnonzero(above > 0)
        if len(positive) == len(values):
            return np.arange(len(values)) if kept is None else kept, above, sizes
        sizes = sizes.copy()
        sizes[families] = np.diff(np.searchsorted(positive, np.append(first, len(values))))
        kept, values = positive if kept is None else kept[positive], values[positive]


def round_keeping_sums(values: np.ndarray, sizes: np.ndarray, totals: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
    """Controlled rounding by systematic sampling: each value goes to its floor or the next whole number, unbiased.

    With one uniform offset u per family, value i is rounded up when a whole number lies in (C_i−1 + u, C_i + u], C the
    running sum of fractions: expectations are kept, and so is every family's total; any run of neighbours is within 1.
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    whole: np.ndarray = np.floor(values).astype(np.int64)
    families = np.flatnonzero(sizes)
    length, last = sizes[families], np.cumsum(sizes[families]) - 1
    first = last - length + 1
    missing = totals[families] - np.add.reduceat(whole, first)
    running = np.cumsum(values - whole)
    before = running[first] - (values - whole)[first]
    running -= np.repeat(before, length)
    running[last] = missing
    reached = np.floor(running + np.repeat(noise.uniform(len(families), randomness), length)).astype(np.int64)
    reached = np.clip(reached, 0, np.repeat(missing, length))
    up = np.diff(reached, prepend=0)
    up[first] = reached[first]
    whole += up
    return whole
