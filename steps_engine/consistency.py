"""Noisy counts made consistent: exact least squares on any tree, then whole non-negative numbers, top-down.

Least squares (the best linear unbiased estimate given that children sum to their parent), in two passes over the tree:
    up:   S = Σ U_child,  U = VS/(V+S),  z = (S·y + V·Σz_child)/(V+S)          leaf: U = V, z = y
    down: h = z + (U/S_parent)·(h_parent − Σz_sibling),  T = U − aU + a²T_parent with a = U/S_parent
V is the variance of a noisy count y (0: known exactly, ∞: not measured); T is the variance of the result h. With equal
fan-out and variances this is Hay et al. (2010), Theorem 3; real fan-outs need no phantom categories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.plan import Plan
from steps_engine import noise
from steps_engine.nodes import Layer, Tree
from steps_engine.sanitize import NoisyCounts, kinds_of_nodes
from steps_engine.whole import whole_numbers


@dataclass(frozen=True)
class ConsistentCounts:
    """Root first: least-squares estimates (mean over sets) with standard errors; whole numbers as sets × nodes."""

    estimates: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]
    whole: tuple[np.ndarray, ...]

    def to_table(self) -> pa.Table:
        parts = []
        for depth, (estimate, error, whole) in enumerate(zip(self.estimates, self.errors, self.whole, strict=True)):
            columns = {"layer": np.full(len(estimate), depth, dtype=np.int16), "node": np.arange(len(estimate))}
            columns |= {"estimate": estimate, "standard_error": error}
            parts.append(pa.table(columns | {f"whole_{i}": row for i, row in enumerate(whole, start=1)}))
        return pa.concat_tables(parts).cast(tables.consistent_counts(len(self.whole[0])))

    @classmethod
    def from_table(cls, table: pa.Table) -> ConsistentCounts:
        depth = table["layer"].to_numpy()
        whole = np.stack([table[name].to_numpy() for name in table.column_names[4:]])
        layers = [depth == d for d in range(int(depth.max()) + 1)]
        estimate, error = table["estimate"].to_numpy(), table["standard_error"].to_numpy()
        return cls(tuple(estimate[d] for d in layers), tuple(error[d] for d in layers), tuple(whole[:, d] for d in layers))


@dataclass(frozen=True)
class Weights:
    """The data-independent half of least squares, per layer, root first."""

    own: tuple[np.ndarray, ...]  # S/(V+S): how much of z is the node's own noisy count
    gain: tuple[np.ndarray, ...]  # a = U/S_parent: how much of the parent's correction a child takes
    variance: tuple[np.ndarray, ...]  # T


def correct(tree: Tree, noisy: NoisyCounts, plan: Plan, source: noise.Source) -> ConsistentCounts:
    """Estimates with error bars for inference, and for each set the whole numbers behind its rows.

    Sets have independent noise of equal variance, so the mean of their estimates has variance T/m. T does not describe
    the whole numbers: keeping them non-negative makes them biased.
    """
    weights = least_squares_weights(tree, variances(tree, plan))
    sums = [np.zeros(width) for width in tree.widths()]
    whole = [np.empty((plan.sets, width), dtype=np.int64) for width in tree.widths()]
    for set_ in range(plan.sets):
        total = np.array([noisy.total or 0], dtype=float)
        estimates = least_squares(tree, weights, [total, *(layer[set_] for layer in noisy.layers)])
        for depth, row in enumerate(whole_numbers(tree, estimates, source)):
            sums[depth] += estimates[depth]
            whole[depth][set_] = row
    errors = tuple(np.sqrt(variance / plan.sets) for variance in weights.variance)
    return ConsistentCounts(tuple(total / plan.sets for total in sums), errors, tuple(whole))


def variances(tree: Tree, plan: Plan) -> list[np.ndarray]:
    """V of every node, root first: ∞ for a root that is not measured, 0 for one that is known."""
    result = [np.array([np.inf if plan.total == "estimated" else 0.0])]
    for depth, layer in enumerate(tree.layers, start=1):
        variance = np.empty(len(layer))
        for nodes, chosen in kinds_of_nodes(layer).items():
            variance[chosen] = noise.variance(plan.count_draw(depth, 1, nodes).scale)
        result.append(variance)
    return result


def least_squares_weights(tree: Tree, variance: list[np.ndarray]) -> Weights:
    """Both passes of U, S and T: they depend on the tree and the plan alone."""
    up, own, below = [variance[-1]], [np.ones(1)], [np.zeros(1)]  # the last layer holds leaves only: U = V
    for layer, spread in zip(reversed(tree.layers), reversed(variance[:-1]), strict=True):
        below.insert(0, layer.sum_up(up[0], len(spread)))
        own.insert(0, _own_share(layer, spread, below[0]))
        up.insert(0, np.where(np.isfinite(spread), own[0] * np.where(np.isfinite(spread), spread, 0.0), below[0]))
    gain, spread = [np.zeros(1)], [up[0]]
    for depth, layer in enumerate(tree.layers):
        share = layer.hand_down(np.where(below[depth] > 0, below[depth], 1.0))
        np.divide(up[depth + 1], share, out=share)
        gain.append(share)
        spread.append(up[depth + 1] * (1 - share))
        spread[-1] += share**2 * layer.hand_down(spread[-2])
    return Weights(tuple(own), tuple(gain), tuple(np.maximum(t, 0.0, out=t) for t in spread))


def _own_share(layer: Layer, variance: np.ndarray, below: np.ndarray) -> np.ndarray:
    """S/(V+S): 0 for a node that is not measured, 1 for one that is known or has no children."""
    measured, parents = np.isfinite(variance), np.zeros(len(variance), dtype=bool)
    parents[layer.families] = True
    finite = np.where(measured, variance, 0.0)
    share = below / np.where(finite + below > 0, finite + below, 1.0)
    return np.where(measured, np.where(parents & (finite > 0), share, 1.0), 0.0)


def least_squares(tree: Tree, weights: Weights, noisy: list[np.ndarray]) -> list[np.ndarray]:
    """z on the way up, h on the way down; root first."""
    result = [None] * len(noisy)
    sums = [None] * len(tree.layers)
    result[-1] = noisy[-1].astype(float)
    for depth in range(len(tree.layers) - 1, -1, -1):
        sums[depth] = tree.layers[depth].sum_up(result[depth + 1], len(noisy[depth]))
        result[depth] = weights.own[depth] * noisy[depth] + (1 - weights.own[depth]) * sums[depth]
    for depth, layer in enumerate(tree.layers):
        correction = layer.hand_down(result[depth] - sums[depth])
        correction *= weights.gain[depth + 1]
        result[depth + 1] += correction
    return result
