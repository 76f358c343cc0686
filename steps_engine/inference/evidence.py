"""What measured tables say of interactions: a table of counts says something of every set of its attributes.

A table of counts is the sum of orthogonal parts, one for every set of its axes: the interaction of the table in which the
other axes are summed out. Noise that is alike in every cell is alike in every direction of each part, and independent between
parts; so what several tables say of one interaction is joined by precision. An axis that was measured as a difference, or
centred, is in every part: what it leaves out was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Axes = tuple[int, ...]
LEAST_VARIANCE = 1e-9  # of noise that is practically 0


@dataclass(frozen=True)
class Said:
    """An interaction as measured, in rows, and the variance of its noise in every direction."""

    value: np.ndarray
    variance: float

    def joined(self, other: Said | None) -> Said:
        """Both, by precision."""
        if other is None:
            return self
        both = 1 / self.variance + 1 / other.variance
        return Said((self.value / self.variance + other.value / other.variance) / both, 1 / both)


def interactions(
    measured: np.ndarray, sizes: Sequence[int], variance: float, centred: bool, axes: Iterable[int] = (1, 2)
) -> Iterator[tuple[Axes, Said]]:
    """Of so many axes what a noisy contrast tells of them; `variance` is that of the noise in its entries. Of none: the sum."""
    every = range(len(sizes))
    fixed = {axis for axis in every if centred or measured.shape[axis] < sizes[axis]}
    for kept in (kept for number in axes for kept in combinations(every, number)):
        if fixed.issubset(kept):
            out = tuple(axis for axis in every if axis not in kept)
            times = math.prod(sizes[axis] for axis in out)
            yield kept, part(measured.sum(axis=out), [sizes[axis] for axis in kept], variance * times, centred)


def part(table: np.ndarray, sizes: Sequence[int], variance: float, centred: bool) -> Said:
    """A difference d of two categories is (−d, d)/2: of variance ½ along (−1, 1)/√2."""
    for axis, size in enumerate(sizes):
        if table.shape[axis] < size:
            table, variance = np.concatenate([-table, table], axis=axis) / 2, variance / 2
        elif centred:
            table, variance = (table - table.mean(axis=axis, keepdims=True)) / size, variance / size**2
        else:
            table = table - table.mean(axis=axis, keepdims=True)
    return Said(table, max(variance, LEAST_VARIANCE))
