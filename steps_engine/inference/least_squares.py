"""Exact least squares on any tree: the best linear unbiased estimate given that children sum to their parent.

Two passes:
    up:   S = Σ U_child,  U = VS/(V+S),  z = (S·y + V·Σz_child)/(V+S)          leaf: U = V, z = y
    down: h = z + (U/S_parent)·(h_parent − Σz_sibling),  T = U − aU + a²T_parent with a = U/S_parent
V is the variance of a noisy count y (0: known exactly, ∞: not counted); T is the variance of the result h. With equal
fan-out and variances this is Hay et al. (2010), Theorem 3; real fan-outs need no phantom categories.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import CountNoise, noise_of
from steps_engine.domain.nodes import Layer, Tree, kinds_of_nodes


@dataclass(frozen=True)
class Weights:
    """The data-independent half of least squares, per layer, root first."""

    own: tuple[np.ndarray, ...]  # S/(V+S): how much of z is the node's own noisy count
    gain: tuple[np.ndarray, ...]  # a = U/S_parent: how much of the parent's correction a child takes
    variance: tuple[np.ndarray, ...]  # T
    up: tuple[np.ndarray, ...]  # U
    below: tuple[np.ndarray, ...]  # S


def variances(tree: Tree, plan: Plan) -> list[np.ndarray]:
    """V of every node, root first: ∞ for a root that is not counted, 0 for one that is known."""
    result = [np.array([np.inf if plan.total == "estimated" else 0.0])]
    for depth, layer in enumerate(tree.layers, start=1):
        variance = np.empty(len(layer))
        for chosen, noise in noises_of(layer, depth, plan).values():
            variance[chosen] = noise.variance
        result.append(variance)
    return result


def noises_of(layer: Layer, depth: int, plan: Plan) -> dict[str, tuple[slice | np.ndarray, CountNoise]]:
    """Inner nodes and leaves of a layer, each with their noise."""
    return {nodes: (chosen, noise_of(plan.count_draw(depth, 1, nodes))) for nodes, chosen in kinds_of_nodes(layer).items()}


def least_squares_weights(tree: Tree, variance: list[np.ndarray]) -> Weights:
    """Both passes of U, S and T: they depend on the tree and the plan alone."""
    up, own, below = [variance[-1]], [np.ones(1)], [np.zeros(1)]  # the last layer holds leaves only: U = V
    for layer, noise in zip(reversed(tree.layers), reversed(variance[:-1]), strict=True):
        below.insert(0, layer.sum_up(up[0], len(noise)))
        own.insert(0, _own_share(layer, noise, below[0]))
        up.insert(0, np.where(np.isfinite(noise), own[0] * np.where(np.isfinite(noise), noise, 0.0), below[0]))
    gain, result = [np.zeros(1)], [up[0]]
    for depth, layer in enumerate(tree.layers):
        share = layer.hand_down(np.where(below[depth] > 0, below[depth], 1.0))
        np.divide(up[depth + 1], share, out=share)
        gain.append(share)
        result.append(up[depth + 1] * (1 - share))
        result[-1] += share**2 * layer.hand_down(result[-2])
    positive = tuple(np.maximum(t, 0.0, out=t) for t in result)
    return Weights(tuple(own), tuple(gain), positive, tuple(up), tuple(below))


def _own_share(layer: Layer, variance: np.ndarray, below: np.ndarray) -> np.ndarray:
    """S/(V+S): 0 for a node that is not counted, 1 for one that is known or has no children."""
    counted, parents = np.isfinite(variance), np.zeros(len(variance), dtype=bool)
    parents[layer.families] = True
    finite = np.where(counted, variance, 0.0)
    share = below / np.where(finite + below > 0, finite + below, 1.0)
    return np.where(counted, np.where(parents & (finite > 0), share, 1.0), 0.0)


def least_squares(tree: Tree, weights: Weights, noisy: list[np.ndarray]) -> list[np.ndarray]:
    """z on the way up, h on the way down; root first."""
    result: list[np.ndarray] = [noisy[-1].astype(float)]
    sums: list[np.ndarray] = []
    for layer, own, y in zip(reversed(tree.layers), reversed(weights.own[:-1]), reversed(noisy[:-1]), strict=True):
        sums.insert(0, layer.sum_up(result[0], len(y)))
        result.insert(0, own * y + (1 - own) * sums[0])
    for depth, layer in enumerate(tree.layers):
        correction = layer.hand_down(result[depth] - sums[depth])
        correction *= weights.gain[depth + 1]
        result[depth + 1] += correction
    return result
