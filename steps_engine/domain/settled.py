"""Interactions that rules settle: where no row can be, a table is nought, and what it adds to smaller tables may follow."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from steps_engine.domain.cells import Space

MOST_DIMENSIONS = 100  # of an interaction that is looked at; a larger one counts as open
Table = tuple[int, ...]


def is_settled(space: Space, table: Table) -> bool:
    """Whether smaller tables and the rules say all of a table's interaction.

    Where rows are forbidden the table is nought, so that its interaction is there what its smaller tables add up to, negated.
    If no interaction but nought vanishes in all forbidden combinations of the tied attributes, these values tell all of it,
    whatever other attributes the table has.
    """
    return bool(settling(space, table))


def settling(space: Space, table: Table) -> Table:
    """The tied attributes of a table whose forbidden combinations settle its interaction; none: it is open."""
    for component in space.components:
        tied = tuple(j for j in component.attributes if j in table)
        sizes = [space.domain.sizes[j] for j in tied]
        if len(tied) < 2 or not 0 < math.prod(size - 1 for size in sizes) <= MOST_DIMENSIONS:
            continue
        others = tuple(axis for axis, j in enumerate(component.attributes) if j not in table)
        forbidden = ~component.completable(others).ravel()
        basis = reduce(np.kron, (_sums_to_nought(size) for size in sizes))
        if np.linalg.matrix_rank(basis[forbidden]) == basis.shape[1]:
            return tied
    return ()


def _sums_to_nought(size: int) -> np.ndarray:
    """Columns that span the vectors which sum to nought."""
    return np.eye(size)[:, 1:] - np.eye(size)[:, :1]
