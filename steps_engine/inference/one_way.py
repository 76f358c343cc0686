"""One-way tables from noisy counts: nonnegative, of a given total, smooth where noise explains the differences; and groups.

A table of many ordered categories is halved again and again; what two halves differ by is shrunk by what noise explains.
"""

from __future__ import annotations

import numpy as np

from steps_engine.inference.shrinking import shrunk

FEW = 8  # categories that are not smoothed


def on_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest nonnegative values with this sum."""
    ranked = np.sort(values)[::-1]
    tau = (np.cumsum(ranked) - total) / np.arange(1, len(values) + 1)
    nearest: np.ndarray = np.maximum(values - tau[np.flatnonzero(ranked > tau)[-1]], 0)
    return nearest


def smoothed(noisy: np.ndarray, variance: float, total: float) -> np.ndarray:
    """A nonnegative table with this total; `variance` is that of the noise in a cell."""
    if len(noisy) <= FEW or variance == 0:
        return on_simplex(noisy, total)
    low, middle, high = halves(len(noisy)).T
    left, right, both = middle - low, high - middle, high - low
    ends = np.concatenate([[0], np.cumsum(noisy)])
    difference = ((ends[middle] - ends[low]) * right - (ends[high] - ends[middle]) * left) / both
    size = np.maximum(ends[high] - ends[low], np.sqrt(variance * both))
    one_table, whole = np.zeros(len(low), dtype=np.int64), np.ones(len(low))
    found = shrunk(difference, variance * left * right / both, size * np.sqrt(left * right) / both, one_table, whole, 2.0)
    return _divided(low, middle, high, found.mean, total)


def _divided(low: np.ndarray, middle: np.ndarray, high: np.ndarray, more: np.ndarray, total: float) -> np.ndarray:
    """From the whole down, generation by generation: the left half gets its even part and what it has more."""
    table = np.full(int(high.max()), 0.0)
    above = {(0, len(table)): total}
    for a, m, b, x in zip(low.tolist(), middle.tolist(), high.tolist(), more.tolist(), strict=True):
        whole = above[a, b]
        part = min(max(whole * (m - a) / (b - a) + x, 0.0), whole)
        above[a, m], above[m, b] = part, whole - part
    for k in range(len(table)):
        table[k] = above[k, k + 1]
    return table


def halves(size: int) -> np.ndarray:
    """(low, middle, high) of every node of a balanced tree over so many categories, parents first."""
    found, open_ = [], [(0, size)]
    for low, high in open_:
        if high - low > 1:
            middle = (low + high) // 2
            found.append((low, middle, high))
            open_ += [(low, middle), (middle, high)]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def joined(table: np.ndarray, least: float) -> np.ndarray:
    """A group for every category: neighbours together until they hold `least`, the last ones with those before them."""
    group, here = np.zeros(len(table), dtype=np.int64), 0.0
    for k in range(1, len(table)):
        here += table[k - 1]
        new = here > 0 and (here >= least or table[k] >= least)
        group[k] = group[k - 1] + new
        here = 0.0 if new else here
    last = group == group[-1]
    if group[-1] and table[last].sum() < least:
        group[last] -= 1
    return group
