"""What a table adds to its margins, as whole numbers: the interaction of its attributes, measured by contrasts.

Along each axis of a table of counts: a difference where there are two categories, K·count − Σ counts where there are K > 2
(under ρ), or the counts as they are (under ε, where no centring pays). The contrast of a table is all of these in turn.
Under ε of a table of more than two axes the counts are measured: they tell of all its parts, and each part would cost as much.

One row changes the contrast by a vector of whole numbers whose length does not depend on the row: its square is the product of
1 for a difference or counts, and of (K − 1)² + (K − 1) = K(K − 1) for a centred axis; its sum of sizes, where no axis is
centred, is 1. What noise adds beside the space of interactions is projected away: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

PAIR = 2  # axes


def is_counted(axes: Sequence[object], centred: bool) -> bool:
    """Whether the counts of a table are its contrast, as they are."""
    return len(axes) > PAIR and not centred


def contrast(table: np.ndarray, centred: bool) -> np.ndarray:
    """The contrast of a table of whole counts: exact in integers."""
    if is_counted(table.shape, centred):
        return table
    for axis, size in enumerate(table.shape):
        if size == 2:
            table = np.diff(table, axis=axis)
        elif centred:
            table = size * table - table.sum(axis=axis, keepdims=True)
    return table


def squared_length(sizes: Sequence[int], centred: bool) -> int:
    """By how much one row changes a contrast: the square of the vector's length."""
    return math.prod(size * (size - 1) for size in sizes if centred and size > 2)


def contrast_shape(sizes: Sequence[int], centred: bool) -> tuple[int, ...]:
    return tuple(1 if size == 2 and not is_counted(sizes, centred) else size for size in sizes)


def residual(measured: np.ndarray, sizes: Sequence[int], centred: bool) -> np.ndarray:
    """The interaction part of a table, as numbers of rows, from its noisy contrast: the nearest one."""
    if is_counted(sizes, centred):
        return interaction(measured)
    for axis, size in enumerate(sizes):
        if size == 2:
            measured = np.concatenate([-measured, measured], axis=axis) / 2
        else:
            measured = (measured - measured.mean(axis=axis, keepdims=True)) / (size if centred else 1)
    return measured


def residual_variance(sizes: Sequence[int], centred: bool) -> float:
    """Variance of a cell of the residual for independent noise of variance 1 in the contrast: the same in every cell."""
    if is_counted(sizes, centred):
        return math.prod(1 - 1 / size for size in sizes)
    return math.prod(1 / 4 if size == 2 else (1 - 1 / size) / (size**2 if centred else 1) for size in sizes)


def interaction(table: np.ndarray) -> np.ndarray:
    """What a table adds to its margins: its part that sums to zero along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
