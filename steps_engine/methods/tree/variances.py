"""Exact variances of sums of leaves after least squares, from the tree and the plan alone.

A sum of leaves is f = Σ q_leaf·h_leaf with q = 1 where the leaf is in it, and d = Σ r_leaf·h_leaf is one that holds it. In one
pass up the tree, with U = Var(total of the node), c = Cov(f, total), F = Var(f), X = Cov(f, d):
    leaf:   U = V, c = q·V, F = q·V, X = q·V                                         (q and r are 0 or 1, q ≤ r)
    inner:  S = ΣU, C = Σc, G = ΣF, Y = ΣX over the children; then with the node's own noisy count of variance V
            U = S − S²/(S+V),  c = C − C·S/(S+V),  F = G − C²/(S+V),  X = Y − C·C_d/(S+V)      (V = ∞: nothing changes)
The last line is the best linear update of (total, f, d) by one more measurement of the total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.methods.tree.branches import Branches, Nodes


@dataclass(frozen=True)
class Spread:
    """Of one measurement, at the root: Var(f) and Cov(f, d) of every sum, and Var(d)."""

    variance: np.ndarray
    cross: np.ndarray
    whole: float


def margin_variances(branches: Branches, plan: Plan, digit: np.ndarray, size: int) -> np.ndarray:
    """Var(f) of every category for one set. `digit` is the category of each end of a branch."""
    variances: np.ndarray = np.maximum(_at_root(branches, plan, digit, size, None)[1][0], 0.0)
    return variances


def spreads(branches: Branches, plan: Plan, digit: np.ndarray, size: int, inside: np.ndarray) -> Spread:
    """`digit` is the sum in which each end of a branch is, -1: none of them; `inside` says whether it is in d."""
    _, variance, cross, _, whole = _at_root(branches, plan, digit, size, inside)
    return Spread(np.maximum(variance[0], 0.0), cross[0], max(float(whole[0, 0]), 0.0))


def _at_root(branches: Branches, plan: Plan, digit: np.ndarray, size: int, inside: np.ndarray | None) -> list[np.ndarray]:
    """c and F, and with d also X, c_d and F_d: each nodes × sums, here of the root alone."""
    number = sum(len(nodes) for nodes in branches.layers)
    category, within, start = np.full(number, -1), np.zeros(number), number
    category[branches.end_row] = digit
    within[branches.end_row] = 0.0 if inside is None else inside
    of = [0, 0] if inside is None else [0, 0, 0, 1, 1]  # of a sum, or of d
    total, state = np.zeros(1), [np.zeros((0, (size, 1)[which])) for which in of]  # of the layer below: none yet
    for depth in range(len(branches.layers), 0, -1):
        nodes = branches.layers[depth - 1]
        start -= len(nodes)
        here = slice(start, start + len(nodes))
        above = 1 if depth == 1 else len(branches.layers[depth - 2])
        noise, ends = noise_variances(nodes, plan, depth), nodes.leaf | (depth == len(branches.layers))
        leaves = _leaves(nodes, np.where(ends, noise, 0.0), category[here], within[here], above, size)
        sums = _sums(nodes, ends, [leaves[which] for which in of], state)
        own = np.bincount(nodes.parent, weights=np.where(ends, noise, total), minlength=above)
        known = _root_noise(plan) if depth == 1 else noise_variances(branches.layers[depth - 2], plan, depth - 1)
        total, state = _update(own, sums, known)
    return state


def noise_variances(nodes: Nodes, plan: Plan, depth: int) -> np.ndarray:
    """V of every node. Measurements have equal scales, so that the first one stands for all."""
    draws = (draw for draw in plan.draws if (draw.kind, draw.layer, draw.set) == ("count", depth, plan.served[0]))
    kinds = {draw.nodes: noise_of(draw).variance for draw in draws}
    return np.where(nodes.leaf, kinds.get("leaves", np.nan), kinds.get("inner", np.nan))


def _root_noise(plan: Plan) -> np.ndarray:
    return np.array([np.inf if plan.total == "estimated" else 0.0])


def _leaves(
    nodes: Nodes, noise: np.ndarray, category: np.ndarray, within: np.ndarray, above: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Σ V of the children that are ends of branches: by the sum they are in, and of those in d."""
    slot = nodes.parent * size + np.maximum(category, 0)
    by_sum = np.bincount(slot, weights=np.where(category >= 0, noise, 0.0), minlength=above * size)
    return by_sum.reshape(above, size), np.bincount(nodes.parent, noise * within, above)[:, None]


def _sums(nodes: Nodes, ends: np.ndarray, leaves: list[np.ndarray], state: list[np.ndarray]) -> list[np.ndarray]:
    """Over the children of each node above: ends of branches, and inner nodes by what was found below them."""
    sums, inner = [each.copy() for each in leaves], np.flatnonzero(~ends)
    if len(inner):
        first = np.flatnonzero(np.diff(nodes.parent[inner], prepend=-1))
        for sum_, values in zip(sums, state, strict=True):
            sum_[nodes.parent[inner][first]] += np.add.reduceat(values[inner], first, axis=0)
    return sums


def _update(own: np.ndarray, sums: list[np.ndarray], noise: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The node's own count taken into account; a leaf of the layer has no children and keeps zeros that nobody reads."""
    whole = own + noise
    weight = np.where(np.isfinite(whole) & (own > 0), 1 / np.where(whole > 0, whole, 1.0), 0.0)[:, None]
    kept, covariance = 1 - own[:, None] * weight, sums[0]
    state = [covariance * kept, sums[1] - covariance**2 * weight]
    if len(sums) > 2:
        state += [sums[2] - covariance * sums[3] * weight, sums[3] * kept, sums[4] - sums[3] ** 2 * weight]
    return own * kept[:, 0], state
