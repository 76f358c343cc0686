"""Small coded tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from steps_engine.evaluation.coded import Coded
from steps_engine.noise import SeededRandomness
from steps_engine.studies.standin import TRAITS, youth_voter


def coded(codes, sizes=None, weight=None) -> Coded:
    codes = np.asarray(codes, np.int32)
    sizes = tuple(sizes) if sizes is not None else tuple((codes.max(axis=0) + 1).tolist())
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: len(sizes)])
    return Coded(names, sizes, codes, None if weight is None else np.asarray(weight))


def dependent(rows: int, seed: int, strength: float = 0.6) -> Coded:
    """Four attributes in a chain: each repeats its neighbour with probability `strength`."""
    draw = np.random.default_rng(seed)
    columns = [draw.integers(0, 2, rows)]
    for size in (3, 4, 2):
        columns.append(np.where(draw.random(rows) < strength, columns[-1] % size, draw.integers(0, size, rows)))
    return coded(np.column_stack(columns), (2, 3, 4, 2))


def shuffled(table: Coded, seed: int) -> Coded:
    """The same 1-way margins, nothing else."""
    draw = np.random.default_rng(seed)
    return Coded(table.names, table.sizes, np.column_stack([draw.permutation(column) for column in table.codes.T]))


def voters(rows: int, seed: int) -> tuple[pd.DataFrame, Coded]:
    frame, categories = youth_voter(rows, SeededRandomness(seed)), {trait.name: trait.categories for trait in TRAITS}
    codes = np.column_stack([pd.Categorical(frame[name], categories=categories[name]).codes for name in frame])
    return frame, Coded(tuple(frame), tuple(len(categories[name]) for name in frame), codes.astype(np.int32))
