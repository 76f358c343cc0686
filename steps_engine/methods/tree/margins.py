"""One-way margins of a release with their exact standard errors, from published counts alone.

A margin is a sum of leaves, f = Σ q_leaf·h_leaf with q = 1 where the leaf has the category. Its variance after least squares
follows in one pass up the tree, with U = Var(total of the node), c = Cov(f, total), F = Var(f):
    leaf:   U = V, c = q·V, F = q·V                                                  (q is 0 or 1)
    inner:  S = ΣU, C = Σc, G = ΣF over the children; then with the node's own noisy count of variance V
            U = S − S²/(S+V),  c = C − C·S/(S+V),  F = G − C²/(S+V)                  (V = ∞: not counted, nothing changes)
The last line is the best linear update of (total, f) by one more measurement of the total.
"""

from __future__ import annotations

import itertools

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.inference.reach import reach_of, standard_errors
from steps_engine.inference.strength import strength
from steps_engine.methods.relations import Two
from steps_engine.methods.tree.branches import Branches, Nodes
from steps_engine.methods.views import Margin

MOST_NUMBERS = 50_000_000  # categories × inner nodes that are held at once
MOST_WORK = 500_000_000  # pairs × ends of branches that are looked at


def margins(branches: Branches, plan: Plan, estimate: np.ndarray, whole: np.ndarray) -> list[Margin]:
    """Every attribute with a choice that the tree counts. `estimate` and `whole` (sets × nodes) are per node, root first."""
    domain, widest = branches.space.domain, max([1, *(len(nodes) for nodes in branches.layers[:-1])])
    end_estimate, end_whole = estimate[1:][branches.end_row], whole.mean(axis=0)[1:][branches.end_row]
    found = []
    for j in branches.fixed:
        attribute = domain.attributes[j]
        if attribute.size == 1 or attribute.size * widest > MOST_NUMBERS:
            continue
        digit = branches.space.digit(branches.ends, j)
        sums = [np.bincount(digit, weights=weights, minlength=attribute.size) for weights in (end_estimate, end_whole)]
        error = np.sqrt(margin_variances(branches, plan, digit, attribute.size) / plan.measurements)
        reach = (
            _reaches(branches, plan, digit, attribute.size) if _is_plain_sum(branches, plan) else standard_errors(plan) * error
        )
        found.append(Margin(attribute.name, attribute.labels, sums[0], error, sums[1], reach))
    return found


def _is_plain_sum(branches: Branches, plan: Plan) -> bool:
    """Whether nothing but the leaves was counted: then least squares weighs nothing, and a margin is a sum of their counts."""
    return len(branches.layers) == 1 and bool(branches.layers[0].leaf.all()) and plan.total == "estimated"


def _reaches(branches: Branches, plan: Plan, digit: np.ndarray, size: int) -> np.ndarray:
    noise, m = noise_of(plan.count_draw(1, 1, "leaves")), plan.measurements
    return np.array(
        [reach_of(((noise, m * int(leaves)),), m) if leaves else 0.0 for leaves in np.bincount(digit, minlength=size)]
    )


def strengths(branches: Branches, plan: Plan, estimate: np.ndarray) -> dict[Two, float | None]:
    """Of every pair of attributes that the tree counts; None where that would take too long."""
    domain, chosen = branches.space.domain, [j for j in branches.fixed if branches.space.domain.sizes[j] > 1]
    pairs = list(itertools.combinations(sorted(chosen), 2))
    work, nodes = len(pairs) * len(branches.ends), sum(len(layer) for layer in branches.layers)
    if work > MOST_WORK:
        return dict.fromkeys(pairs)
    digits = {j: branches.space.digit(branches.ends, j) for j in chosen}
    end_estimate, found = estimate[1:][branches.end_row], dict[Two, float | None]()
    bound = _leaf_noise(branches, plan)
    for i, j in pairs:
        shape = domain.sizes[i], domain.sizes[j]
        cell, size = digits[i] * shape[1] + digits[j], shape[0] * shape[1]
        exact = len(pairs) * nodes * size <= MOST_NUMBERS
        variance = margin_variances(branches, plan, cell, size) if exact else np.bincount(cell, bound, size)
        table = np.bincount(cell, end_estimate, size).reshape(shape)
        found[i, j] = strength(table, variance.reshape(shape) / plan.measurements)
    return found


def _leaf_noise(branches: Branches, plan: Plan) -> np.ndarray:
    """V of every end of a branch: what least squares can only make less."""
    depths = enumerate(branches.layers, start=1)
    noise: np.ndarray = np.concatenate([_noise(nodes, plan, depth) for depth, nodes in depths])[branches.end_row]
    return noise


def margin_variances(branches: Branches, plan: Plan, digit: np.ndarray, size: int) -> np.ndarray:
    """F of every category at the root, for one set. `digit` is the category of each end of a branch."""
    category = np.full(sum(len(nodes) for nodes in branches.layers), -1)
    category[branches.end_row] = digit
    start = len(category)
    total, covariance, margin = np.zeros(1), np.zeros((0, size)), np.zeros((0, size))  # U, c, F of the layer below: none yet
    for depth in range(len(branches.layers), 0, -1):
        nodes = branches.layers[depth - 1]
        start -= len(nodes)
        noise = _noise(nodes, plan, depth)
        above = 1 if depth == 1 else len(branches.layers[depth - 2])
        slot = nodes.parent * size + np.maximum(category[start : start + len(nodes)], 0)
        ends = nodes.leaf | (depth == len(branches.layers))
        leaves = np.bincount(slot, weights=np.where(ends, noise, 0.0), minlength=above * size).reshape(above, size)
        sums = _sums(nodes, ends, above, noise, leaves, total, covariance, margin)
        known = _root_noise(plan) if depth == 1 else _noise(branches.layers[depth - 2], plan, depth - 1)
        total, covariance, margin = _update(*sums, known)
    variances: np.ndarray = np.maximum(margin[0], 0.0)
    return variances


def _noise(nodes: Nodes, plan: Plan, depth: int) -> np.ndarray:
    """V of every node. Measurements have equal scales, so that the first one stands for all."""
    draws = (draw for draw in plan.draws if (draw.kind, draw.layer, draw.set) == ("count", depth, plan.served[0]))
    kinds = {draw.nodes: noise_of(draw).variance for draw in draws}
    return np.where(nodes.leaf, kinds.get("leaves", np.nan), kinds.get("inner", np.nan))


def _root_noise(plan: Plan) -> np.ndarray:
    return np.array([np.inf if plan.total == "estimated" else 0.0])


def _sums(
    nodes: Nodes,
    ends: np.ndarray,
    above: int,
    noise: np.ndarray,
    leaves: np.ndarray,
    total: np.ndarray,
    covariance: np.ndarray,
    margin: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """S, C and G of the layer above: ends of branches by category, inner nodes by what was found below them."""
    inner = np.flatnonzero(~ends)
    sums = np.bincount(nodes.parent, weights=np.where(ends, noise, total), minlength=above)
    both = [leaves.copy(), leaves.copy()]
    if len(inner):
        first = np.flatnonzero(np.diff(nodes.parent[inner], prepend=-1))
        for sum_, values in zip(both, (covariance, margin), strict=True):
            sum_[nodes.parent[inner][first]] += np.add.reduceat(values[inner], first, axis=0)
    return sums, both[0], both[1]


def _update(
    sums: np.ndarray, covariance: np.ndarray, margin: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The node's own count taken into account; a leaf of the layer has no children and keeps zeros that nobody reads."""
    whole = sums + noise
    weight = np.where(np.isfinite(whole) & (sums > 0), 1 / np.where(whole > 0, whole, 1.0), 0.0)
    return (
        sums - sums**2 * weight,
        covariance * (1 - sums * weight)[:, None],
        margin - covariance**2 * weight[:, None],
    )
