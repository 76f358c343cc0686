"""Tables with given margins: scaled to one after the other (iterative proportional fitting, Deming and Stephan 1940)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST_SHARE = 1e-9  # of all rows: so that a margin can be had where all its cells were cut off
RAKINGS = 30

Margin = tuple[tuple[int, ...], np.ndarray]  # axes, increasing, and the shares of their table


def raked(table: np.ndarray, margins: Sequence[Margin], allowed: np.ndarray | None) -> np.ndarray:
    """The table cut at nought, made to have these margins as far as the allowed cells can."""
    table = np.maximum(table, 0) + LEAST_SHARE / table.size
    if allowed is not None:
        table = table * allowed
    for _ in range(RAKINGS):
        for axes, wanted in margins:
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            have = table.sum(axis=others, keepdims=True)
            table = table * (wanted.reshape(have.shape) / np.maximum(have, 1e-300))
    total = table.sum()
    return table / total if total > 0 else table
