"""The cascade f(X1) f(X2|X1) …: for each attribute one ragged tree over its predecessors, elected, then measured.

At a node the group of predecessors on which the attribute depends most is elected; `()`, to stop, competes. The leaves
hold the attribute's noisy histogram. Nothing here branches on an exact count: counts become scores, which only an
election reads, and histograms, which only Sanitize reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.domain import Domain
from schemas.plan import Draw, Plan
from steps_engine import noise
from steps_engine.attribute_tree import AttributeTree, mixed_radix
from steps_engine.cascade_plan import candidate_splits, penalty, tree_draws
from steps_engine.counting import Counts


@dataclass(frozen=True)
class Cascade:
    """Trees in order, and of each its noisy histograms: measurements × leaves × categories. Public."""

    domain: Domain
    trees: tuple[AttributeTree, ...]
    noisy: tuple[np.ndarray, ...]
    total: int | None  # the exact number of rows where that is public or invariant


def fit(domain: Domain, plan: Plan, counts: Counts, source: noise.Source) -> Cascade:
    """Elect all trees, then sanitize the histograms of their leaves."""
    trees = grow(domain, plan, counts, source)
    return Cascade(domain, trees, measure(trees, plan, counts, source), _known_total(plan, counts))


def _known_total(plan: Plan, counts: Counts) -> int | None:
    return None if plan.total == "estimated" else int(counts.count.sum())


def grow(domain: Domain, plan: Plan, counts: Counts, source: noise.Source) -> tuple[AttributeTree, ...]:
    """The trees of a plan, in its order."""
    order = tuple(domain.index(layer.attributes[0]) for layer in plan.layers)
    rows = _rows_for_growing(domain, plan, counts, source)
    trees = []
    for position, prefix in enumerate(_prefixes(domain, counts, order)):
        draws = tree_draws(plan, domain.names[order[position]])
        scale = float(draws.counts[0][-1].scale)
        splits = candidate_splits(domain.sizes, order[:position], order[position], scale, rows)
        tree = AttributeTree(domain, order[position], splits, ())
        for draw in draws.elections:
            tree = _split(tree, prefix, draw, scale, source)
        trees.append(tree.tidy())
    return tuple(trees)


def _rows_for_growing(domain: Domain, plan: Plan, counts: Counts, source: noise.Source) -> int:
    """n̂ that decides which splits may compete: expected, known, or the plan's first draw."""
    if domain.expected_rows is not None or plan.total != "estimated":
        return domain.expected_rows or int(counts.count.sum())
    draw = next(draw for draw in plan.draws if draw.name == "total")
    return max(1, int(counts.count.sum() + noise.two_sided_geometric(draw.scale, 1, source)[0]))


def _prefixes(domain: Domain, counts: Counts, order: tuple[int, ...]) -> Iterator[Counts]:
    """CONFIDENTIAL. For each attribute the distinct rows of it and its predecessors: few where there are few of these."""
    number, sizes = np.zeros(len(counts.codes), dtype=np.int64), domain.sizes
    for j in order:
        _, first, number = np.unique(number * sizes[j] + counts.codes[:, j], return_index=True, return_inverse=True)
        yield Counts(counts.codes[first], np.bincount(number, weights=counts.count, minlength=len(first)))


def _split(tree: AttributeTree, rows: Counts, draw: Draw, scale: float, source: noise.Source) -> AttributeTree:
    """One more layer: an election at every node of the newest one. Nodes are disjoint: the layer costs one election."""
    scores = _scores(tree, rows)
    scores -= [penalty(tree.sizes, split, tree.attribute, scale) for split in tree.splits]
    elected = noise.permute_and_flip(scores, _eligible(tree), draw.epsilon, draw.sensitivity, source)
    return AttributeTree(tree.domain, tree.attribute, tree.splits, (*tree.layers, elected.astype(np.int32)))


def _eligible(tree: AttributeTree) -> np.ndarray:
    """Nodes × splits, from the branches alone: a predecessor splits a branch once, and what has stopped stays so."""
    used = tree.branches() >= 0
    member = np.array([np.isin(np.arange(used.shape[1]), split) for split in tree.splits])
    eligible = ~(used @ member.T)
    if tree.layers:
        eligible[np.repeat(tree.layers[-1] == 0, tree.fanouts[-1]), 1:] = False
    return eligible


def _scores(tree: AttributeTree, rows: Counts) -> np.ndarray:
    """CONFIDENTIAL. Nodes × splits: how much the attribute depends on each group of predecessors; 0 for stop."""
    sizes, nodes, categories = tree.sizes, tree.leaves, tree.categories
    node = tree.descend(rows.codes)
    scores = np.zeros((nodes, len(tree.splits)))
    for number, split in enumerate(tree.splits[1:], start=1):
        groups = math.prod(sizes[j] for j in split)
        cell = (node * groups + mixed_radix(rows.codes, split, sizes)) * categories + rows.codes[:, tree.attribute]
        table = np.bincount(cell, weights=rows.count, minlength=nodes * groups * categories)
        scores[:, number] = dependence(table.reshape(nodes, groups, categories))
    return scores


def dependence(table: np.ndarray) -> np.ndarray:
    """½ Σ |n_zx − n_z·n_x/n| of each table (the last two axes): ½ the L1 error of taking z and x as independent.

    A record more in cell (a, b) changes n_zx − n_z·n_x/n by n/(n+1)·(1[z=a] − n_z/n)(1[x=b] − n_x/n), whose absolute sum
    is 4·n/(n+1)·(1 − n_a/n)(1 − n_b/n) < 4: the score moves by less than 2, up or down. PRIVACY.md, dependence.

    >>> dependence(np.array([[[2, 0], [0, 2]], [[1, 1], [1, 1]]])).tolist()
    [2.0, 0.0]
    """
    z, x = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    return np.abs(table - z * x / np.maximum(x.sum(axis=-1, keepdims=True), 1)).sum(axis=(-1, -2)) / 2


def measure(trees: tuple[AttributeTree, ...], plan: Plan, counts: Counts, source: noise.Source) -> tuple[np.ndarray, ...]:
    """Measurements × leaves × categories of noisy counts for every tree, empty leaves too."""
    exact = [_histograms(tree, counts) for tree in trees]
    drawn = [sanitize(trees, plan, exact, number, source) for number in range(plan.measurements)]
    return tuple(np.stack(of_tree) for of_tree in zip(*drawn, strict=True))


def _histograms(tree: AttributeTree, counts: Counts) -> np.ndarray:
    """CONFIDENTIAL. Leaves × categories of exact counts."""
    cell = tree.descend(counts.codes) * tree.categories + counts.codes[:, tree.attribute]
    exact = np.bincount(cell, weights=counts.count, minlength=tree.leaves * tree.categories)
    return exact.astype(np.int64).reshape(tree.leaves, tree.categories)


def sanitize(
    trees: tuple[AttributeTree, ...], plan: Plan, histograms: list[np.ndarray], measurement: int, source: noise.Source
) -> list[np.ndarray]:
    """Histograms plus the noise of one measurement; a cell that breaks a rule is no cell and stays 0."""
    noisy = []
    for tree, histogram in zip(trees, histograms, strict=True):
        values, held = histogram.copy(), tree.elections[:, None]
        for draw in tree_draws(plan, tree.domain.names[tree.attribute]).counts[measurement]:
            cells = np.nonzero(tree.allowed & (held == draw.layer))
            values[cells] += noise.two_sided_geometric(draw.scale, len(cells[0]), source)
        noisy.append(values)
    return noisy
