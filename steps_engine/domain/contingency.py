"""Exact tables of many groups of attributes from few passes over the rows.

A pass counts several attributes jointly; the table of every group within them is a sum of that joint table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split

CHUNK = 2**19  # rows whose cells are numbered at once: more than a joint table has cells, few enough for the cache
LARGEST_JOINT = 2**18  # cells of a joint table; a pass over few rows is not worth so many
ROWS_PER_CELL = 8
WORKERS = 2  # NumPy counts without Python's lock


def in_parallel(function: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
    """Results in the order of the parts; nothing in them is random."""
    parts = list(parts)
    if len(parts) < 2:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(function, parts))


def chunks(rows: int) -> list[slice]:
    return [slice(first, min(first + CHUNK, rows)) for first in range(0, rows, CHUNK)]


def largest_joint(rows: int) -> int:
    return min(LARGEST_JOINT, rows // ROWS_PER_CELL)


def covers(groups: Sequence[Split], sizes: tuple[int, ...], most: int) -> list[tuple[Split, list[int]]]:
    """Sets of attributes with at most `most` cells (or a single group), and which groups each is the first to contain.

    Greedy: the attribute that completes most of the remaining groups joins, per logarithm of its categories.
    """
    attributes = np.array(sorted({j for group in groups for j in group}))
    member = np.zeros((len(groups), len(attributes)), dtype=bool)
    for row, group in zip(member, groups, strict=True):
        row[np.searchsorted(attributes, group)] = True
    size, packed = np.array([sizes[j] for j in attributes], dtype=float), _packed(member)
    left, found = np.ones(len(groups), dtype=bool), []
    while left.any():
        inside = member[np.argmax(left)].copy()
        while (fits := ~inside & (size * np.prod(size, where=inside) <= most)).any():
            lacks = member[left] & ~inside
            gain = fits * lacks[lacks.sum(axis=1) == 1].sum(axis=0) / np.log(np.maximum(size, 2))
            gain = np.round(gain, 6)  # 2/log 4 is 1/log 2: which of the two a machine finds larger must not matter
            if not gain.any():
                break
            inside[np.argmax(gain)] = True
        served = left & ~(packed & ~_packed(inside[None])).any(axis=1)
        found.append((tuple(attributes[inside].tolist()), np.flatnonzero(served).tolist()))
        left &= ~served
    return found


def _packed(member: np.ndarray) -> np.ndarray:
    """Rows of truths, sixty-four in a word."""
    padded = np.zeros((len(member), -(-member.shape[1] // 64) * 64), dtype=bool)
    padded[:, : member.shape[1]] = member
    words: np.ndarray = np.packbits(padded, axis=1).view(np.uint64)
    return words


def joint_table(rows: Counts, place: np.ndarray, places: int, attributes: Split, sizes: tuple[int, ...]) -> np.ndarray:
    """CONFIDENTIAL. places × categories of each attribute: Σ count of the rows there. Exact: sums stay below 2^53."""
    shape = (places, *(sizes[j] for j in attributes))
    table = np.zeros(math.prod(shape))
    for part in chunks(len(place)):
        cell = place[part].copy()
        for j in attributes:
            cell *= sizes[j]
            cell += rows.codes[part, j]
        table += np.bincount(cell, weights=rows.count[part], minlength=len(table))
    return table.reshape(shape)


def margin(joint: np.ndarray, attributes: Split, group: Split) -> np.ndarray:
    """places × categories of the group (mixed radix, first slowest), from a joint table of places and attributes."""
    others = tuple(axis for axis, j in enumerate(attributes, start=1) if j not in group)
    table: np.ndarray = joint.sum(axis=others).reshape(len(joint), -1)
    return table
