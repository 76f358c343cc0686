"""Sanitize: the histograms at the leaves of every attribute's tree plus the noise that the plan prescribes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.contingency import joint_table
from steps_engine.domain.counting import Counts
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.plan import tree_draws
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class Cascade:
    """Trees in order, and of each its noisy histograms: measurements × leaves × categories. Public."""

    domain: Domain
    trees: tuple[AttributeTree, ...]
    noisy: tuple[np.ndarray, ...]
    total: int | None  # the exact number of rows where that is public or invariant


def sanitize(domain: Domain, trees: tuple[AttributeTree, ...], plan: Plan, counts: Counts, randomness: Randomness) -> Cascade:
    """Every cell of every leaf gets noise, empty ones too, in every measurement."""
    exact = [_histograms(tree, counts) for tree in trees]
    drawn = [_measurement(trees, plan, exact, number, randomness) for number in range(plan.measurements)]
    total = None if plan.total == "estimated" else int(counts.count.sum())
    return Cascade(domain, trees, tuple(np.stack(of_tree) for of_tree in zip(*drawn, strict=True)), total)


def _histograms(tree: AttributeTree, counts: Counts) -> np.ndarray:
    """CONFIDENTIAL. Leaves × categories of exact counts."""
    exact = joint_table(counts, tree.descend(counts.codes), tree.leaves, (tree.attribute,), tree.sizes)
    return exact.astype(np.int64)


def _measurement(
    trees: tuple[AttributeTree, ...], plan: Plan, histograms: list[np.ndarray], number: int, randomness: Randomness
) -> list[np.ndarray]:
    """Histograms plus the noise of one measurement; a cell that breaks a rule is no cell and stays 0."""
    noisy = []
    for tree, histogram in zip(trees, histograms, strict=True):
        values, held = histogram.copy(), tree.elections[:, None]
        for draw in tree_draws(plan, tree.domain.names[tree.attribute]).counts[number]:
            cells = np.nonzero(tree.allowed & (held == draw.layer))
            values[cells] += noise_of(draw).draw(len(cells[0]), randomness)
        noisy.append(values)
    return noisy
