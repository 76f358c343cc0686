"""How much a measured table of two attributes says beyond noise and chance, from noisy counts and variances of their noise."""

from __future__ import annotations

import math

import numpy as np

from steps_engine.inference.contrasts import interaction

WRONG = 20  # at most one release in so many calls some pair clear that is noise


def strength(table: np.ndarray, variance: np.ndarray) -> float:
    """Size of what two attributes add to their margins, over what noise and chance would add: about 1 where it is these.

    Both as root mean squares over the cells; noise is taken as independent between cells.

    >>> even, tied = np.full((2, 2), 500.0), np.diag([1000.0, 1000.0])
    >>> strength(even, np.full((2, 2), 400.0)), round(strength(tied, np.full((2, 2), 400.0)), 1)
    (0.0, 33.3)
    """
    return against(interaction(table), float(variance.mean()), table.sum(axis=1), table.sum(axis=0), float(table.sum()))


def against(found: np.ndarray, variance: float, rows: np.ndarray, columns: np.ndarray, total: float) -> float:
    """The same of an interaction, with the variance of its noise in every direction, and of margins that may be noise too.

    Chance is what independent people would show: n·p(1 − p)·q(1 − q) in a cell of two categories with shares p and q.
    """
    n, p, q = max(total, 1.0), _shares(rows), _shares(columns)
    added = found - n * interaction(np.outer(p, q))
    chance = n * float((p * (1 - p)).mean() * (q * (1 - q)).mean())
    alone = chance + variance * (1 - 1 / len(rows)) * (1 - 1 / len(columns))
    return float(np.sqrt((added**2).mean() / alone)) if alone > 0 else math.inf


def _shares(counts: np.ndarray) -> np.ndarray:
    counts = np.maximum(counts, 0.0)
    whole = float(counts.sum())
    return counts / whole if whole > 0 else np.full(len(counts), 1 / len(counts))


def clear_from(freedom: int, pairs: int) -> float:
    """From which strength on a pair is clear of the noise, among so many pairs.

    A two-sided exponential noise exceeds x standard deviations with chance exp(−x·√2); the mean of `freedom` squares varies
    less, as 1/√freedom.

    >>> round(clear_from(1, 105), 2), round(clear_from(49, 105), 2)
    (5.41, 1.63)
    """
    return 1 + (math.log(WRONG * max(pairs, 1)) / math.sqrt(2) - 1) / math.sqrt(max(freedom, 1))
