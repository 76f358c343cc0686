"""Tables from the leaves of a cascade or a Bayesian network: what every tree counts of a table's attributes, least squares.

The leaves of a tree share no row, so that sums of their cells tell of a table by the tree's own attribute and those that every
branch of it fixes, with independent noise. Each tree tells of the part of a table that it knows; one must know all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import possible_cells
from steps_engine.inference.reach import standard_errors
from steps_engine.methods.cascade.attribute_tree import AttributeTree, mixed_radix
from steps_engine.methods.cascade.sanitize import Cascade
from steps_engine.methods.cascade.synthesize import leaf_variances
from steps_engine.methods.cascade.tables import read_sanitized
from steps_engine.methods.protocol import Tables
from steps_engine.methods.tabulated import MOST_TOGETHER, Asked, Joint, Tabulated


def lacking(domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    cascade = read_sanitized(domain, tables)
    return [() if _knowing(cascade, of) else (" × ".join(domain.names[j] for j in of),) for of in asked]


def _knowing(cascade: Cascade, of: Sequence[int]) -> list[int]:
    """Trees that count a table of these attributes."""
    return [i for i, tree in enumerate(cascade.trees) if set(_known(tree, of)) == set(of)]


def _known(tree: AttributeTree, of: Sequence[int]) -> tuple[int, ...]:
    fixed: np.ndarray = np.asarray((tree.branches() >= 0).all(axis=0))
    return tuple(j for j in of if fixed[j] or j == tree.attribute or tree.sizes[j] == 1)


@dataclass(frozen=True)
class _Part:
    """What one tree counts: for every cell of the table the sum that holds it, the noisy sums and their variances."""

    place: np.ndarray
    noisy: np.ndarray
    variance: np.ndarray


def _part(tree: AttributeTree, noisy: np.ndarray, plan: Plan, codes: np.ndarray, of: Sequence[int]) -> _Part:
    """`codes` are those of the table's cells, by all attributes."""
    known = _known(tree, of)
    branches = np.repeat(np.maximum(tree.branches(), 0), tree.categories, axis=0)
    branches[:, tree.attribute] = np.tile(np.arange(tree.categories), tree.leaves)
    place = mixed_radix(branches, known, tree.sizes)
    size = int(np.prod([tree.sizes[j] for j in known], dtype=np.int64))
    variance = (leaf_variances(tree, plan)[:, None] * tree.allowed / plan.measurements).ravel()
    counts = np.where(tree.allowed, noisy.mean(axis=0), 0.0).ravel()
    sums = (np.bincount(place, weights, size) for weights in (counts, variance))
    return _Part(mixed_radix(codes, known, tree.sizes), *sums)


def tabulate(domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
    return tabulated(domain, plan, read_sanitized(domain, tables), asked)


def tabulated(domain: Domain, plan: Plan, cascade: Cascade, asked: Asked) -> Tabulated | str:
    of = asked.all
    if not (knowing := _knowing(cascade, of)):
        return f"no tree of this release counts {' × '.join(domain.names[j] for j in of)}"
    shape = tuple(domain.sizes[j] for j in of)
    possible = np.flatnonzero(possible_cells(domain, of))
    codes = np.zeros((len(possible), len(domain.sizes)), dtype=np.int64)
    codes[:, list(of)] = np.stack(np.unravel_index(possible, shape), axis=1)
    cell, size = asked.cell_of(lambda j: codes[:, j], len(codes), domain), asked.cells(domain)
    inside = cell >= 0
    trees = range(len(cascade.trees)) if len(possible) <= MOST_TOGETHER else knowing
    parts = [_part(cascade.trees[i], cascade.noisy[i], plan, codes, of) for i in trees]
    numbers = (
        _together(parts, cascade.total, cell, inside, size)
        if len(possible) <= MOST_TOGETHER
        else _alone(parts, cell, inside, size)
    )
    group = tuple(asked.class_of(j, domain) for j in asked.attributes)
    return Tabulated(group, *numbers, np.bincount(cell[inside], minlength=size) > 0, factor=standard_errors(plan))


Numbers = tuple[np.ndarray, np.ndarray, np.ndarray, float, float]


def _together(parts: list[_Part], total: int | None, cell: np.ndarray, inside: np.ndarray, size: int) -> Numbers:
    """Least squares over all trees: precisions add up; then the number of rows, where it is known."""
    precision, weighted = np.zeros((len(cell), len(cell))), np.zeros(len(cell))
    for part in parts:
        holds = np.zeros((len(part.noisy), len(cell)))
        holds[part.place, np.arange(len(cell))] = 1.0
        precision += holds.T @ (holds / part.variance.clip(min=1e-300)[:, None])
        weighted += (part.noisy / part.variance.clip(min=1e-300))[part.place]
    covariance = np.linalg.inv(precision)
    joint = Joint(covariance @ weighted, covariance)
    if total is not None:
        joint = joint.given(np.ones((1, len(cell))), np.array([float(total)]))
    picked = np.zeros((size, len(cell)))
    picked[cell[inside], np.flatnonzero(inside)] = 1.0
    found = joint.summed(picked)
    cross = found.covariance.sum(axis=1)
    return (
        found.value,
        np.maximum(np.diag(found.covariance), 0.0),
        cross,
        float(found.value.sum()),
        max(float(cross.sum()), 0.0),
    )


def _alone(parts: list[_Part], cell: np.ndarray, inside: np.ndarray, size: int) -> Numbers:
    """Of many cells: by precision what the trees say that count each by itself. Then noise is independent between cells."""
    precision = sum(1 / part.variance[part.place] for part in parts)
    value = sum((part.noisy / part.variance.clip(min=1e-300))[part.place] for part in parts) / precision
    estimate, variance = (np.bincount(cell[inside], each[inside], size) for each in (value, 1 / precision))
    return estimate, variance, variance, float(estimate.sum()), float(variance.sum())
