"""How much a measured table of two attributes says beyond noise and chance, from noisy counts and variances of their noise."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from steps_engine.inference.contrasts import interaction

WRONG = 20  # at most one release in so many calls some pair clear that is noise


class Side(NamedTuple):
    """One of the two margins of a table."""

    counts: np.ndarray
    variance: float  # of the noise in one of them


class Beyond(NamedTuple):
    """What two attributes add to their margins, over what noise and chance would add."""

    strength: float  # as root mean squares over the cells: about 1 where it is noise and chance
    freedom: float  # in how many directions of about the same size these vary: fewer directions reach further


def strength(table: np.ndarray, variance: np.ndarray) -> Beyond:
    """Of a table of counts whose noise is independent between cells.

    >>> even, tied = np.full((2, 2), 500.0), np.diag([1000.0, 1000.0])
    >>> strength(even, np.full((2, 2), 400.0)).strength, round(strength(tied, np.full((2, 2), 400.0)).strength, 1)
    (0.0, 33.3)
    """
    rows, columns = (Side(table.sum(axis=k), float(variance.sum(axis=k).mean())) for k in (1, 0))
    even = float(variance.sum() ** 2 / (variance.size * (variance**2).sum())) if variance.any() else 1.0
    return against(interaction(table), float(variance.mean()), rows, columns, float(table.sum()), even)


def against(found: np.ndarray, variance: float, rows: Side, columns: Side, total: float, even: float = 1.0) -> Beyond:
    """The same of an interaction, with the variance of its noise in every direction; `even` says how much alike that is in all.

    Four things are in what is left of it when the product of the margins is taken away, r·c′/n, each with a covariance V:
    * chance among independent people, n·A ⊗ B with A = diag(p) − pp′, which has no direction for a category that nobody is in;
    * noise of the interaction;
    * noise of each margin times the other margin: large where this one has few categories that most are in;
    * noise of both margins.
    A sum of squares with covariance V varies like one of (tr V)²/tr V² equal parts (Satterthwaite), small counts, near
    Poisson’s law, by half their mean more; ‖ΣV‖ ≤ Σ‖V‖, so there are never fewer parts than is said here.

    >>> half = Side(np.array([500.0, 500.0, 0.0, 0.0]), 0.0)
    >>> [round(against(np.zeros((4, 4)), v, half, half, 1000.0).freedom, 1) for v in (0.0, 50.0, 1e9)]
    [1.0, 3.1, 9.0]
    """
    n, p, q = max(total, 1.0), _shares(rows.counts), _shares(columns.counts)
    added = found - n * interaction(np.outer(p, q))
    one, other, of_p, of_q = len(p) - 1, len(q) - 1, _uneven(p), _uneven(q)
    chance, of_both = n * _trace(p) * _trace(q), rows.variance * columns.variance / n**2
    parts = [
        (chance, math.sqrt(n**2 * _squares(p) * _squares(q) + chance / 2)),
        (variance * one * other, variance * math.sqrt(one * other / even)),
        (rows.variance * one * of_q, rows.variance * math.sqrt(one) * of_q),
        (columns.variance * other * of_p, columns.variance * math.sqrt(other) * of_p),
        (of_both * one * other, of_both * math.sqrt(one * other)),
    ]
    alone, size = (sum(each) for each in zip(*parts, strict=True))
    if alone <= 0:
        return Beyond(math.inf, one * other)
    return Beyond(float(np.sqrt((added**2).sum() / alone)), (alone / size) ** 2)


def _shares(counts: np.ndarray) -> np.ndarray:
    counts = np.maximum(counts, 0.0)
    whole = float(counts.sum())
    return counts / whole if whole > 0 else np.full(len(counts), 1 / len(counts))


def _trace(p: np.ndarray) -> float:
    """Of A = diag(p) − pp′."""
    return float((p * (1 - p)).sum())


def _squares(p: np.ndarray) -> float:
    """The trace of A²."""
    return float((p**2).sum() - 2 * (p**3).sum() + (p**2).sum() ** 2)


def _uneven(p: np.ndarray) -> float:
    """The squared length of p, centred."""
    return float(((p - p.mean()) ** 2).sum())


def clear_from(freedom: float, pairs: int) -> float:
    """From which strength on a pair is clear of the noise, among so many pairs.

    A two-sided exponential noise exceeds x standard deviations with chance exp(−x·√2); the mean of `freedom` squares varies
    less, as 1/√freedom.

    >>> round(clear_from(1, 105), 2), round(clear_from(49, 105), 2)
    (5.41, 1.63)
    """
    return 1 + (math.log(WRONG * max(pairs, 1)) / math.sqrt(2) - 1) / math.sqrt(max(freedom, 1))
