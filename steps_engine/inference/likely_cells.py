"""What every cell of a table is likely to hold, given noisy counts of all of them and the law of their noise.

A cell holds about what its pairs of attributes imply, and how far cells lie from that all of them together tell. So x, what
is in a cell, is taken as Poisson's with mean μ·r: μ is the table of greatest entropy whose pairs are those that x is
expected to have, and r follows a law g, of cells with like μ, that makes the noisy counts most probable. Expecting x and
fitting μ and g in turn is EM (Dempster, Laird and Rubin 1977; of g, Laird 1978). Cells that pairs leave empty lose their
noise, and those that differ from what pairs imply keep what is their own. Post-processing of what was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import pdtr

from steps_engine.accounting.mechanisms import CountNoise
from steps_engine.domain.contingency import covers
from steps_engine.domain.nodes import Split
from steps_engine.inference.posterior import FAR, NEAR, STEPS_PER_WIDTH

ROUNDS = {0: 20, 1: 20, 2: 25}  # by how many attributes μ knows of together: margins first, then pairs
NOISES = 3  # times the noise that is in a cell of a pair: so far it must be from independence
RUNGS = 4  # of the ladder of means, for a factor of e
LEAST = 1e-8  # rows: cells that are implied to hold less are alike
FARTHEST = 5  # r is 0, or from e⁻⁵ to e⁵
UNSEEN = 1  # cells that g counts beside those at hand, spread evenly
STEPS = 3  # of g in a round
LARGEST_JOINT = 2**15
NEXT_TO_NOUGHT = 1e-9  # rows: what is not expected now may be later
OFFSETS = FARTHEST * RUNGS
RATIOS = np.exp(np.arange(-OFFSETS, OFFSETS + 1) / RUNGS)  # r, but for 0

Digits = Callable[[int], np.ndarray]


@dataclass(frozen=True)
class _Ladder:
    """Of each binned noisy count y: P(y | λ) for λ = 0 and each rung, E[x; y | λ] and E[x²; y | λ], x Poisson's with mean λ."""

    lowest: int  # noisy count
    step: int
    first: int  # rung that stands at OFFSETS: the lowest that μ may have
    rungs: int  # that μ may have
    at_nought: np.ndarray  # P(y | 0)
    chance: np.ndarray
    expected: np.ndarray
    squared: np.ndarray

    @classmethod
    def of(cls, noisy: np.ndarray, noise: CountNoise) -> _Ladder:
        step = max(1, math.floor(noise.width / STEPS_PER_WIDTH))
        lowest, highest = int(noisy.min(initial=0)), max(int(noisy.max(initial=0)), 1)
        begins = np.concatenate([[0], 1 + step * np.arange(-(-highest // step))])  # bin 0 of the exact counts is 0 alone
        exact = np.where(begins > 0, begins + (step - 1) / 2, 0.0)
        middle = lowest + step * np.arange((highest - lowest) // step + 1) + (step - 1) / 2
        kernel = step * noise.probability(middle[:, None] - exact)
        first, last = math.floor(RUNGS * math.log(LEAST)), math.ceil(RUNGS * math.log(highest))
        means = np.exp(np.arange(first - OFFSETS, last + OFFSETS + 1) / RUNGS)
        below = pdtr(np.append(begins, begins[-1] + step)[:, None] - 1.0, means)
        below[0] = 0.0
        poisson = np.diff(below, axis=0)
        moments = (kernel * exact**power @ poisson for power in (0, 1, 2))
        return cls(lowest, step, first, last - first + 1, kernel[:, 0], *moments)

    @property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.expected, self.squared

    def places(self, noisy: np.ndarray) -> np.ndarray:
        return ((noisy - self.lowest) // self.step).astype(np.int32)

    def levels(self, mean: np.ndarray) -> np.ndarray:
        """The rung of each μ, from 0."""
        rung = np.rint(RUNGS * np.log(np.maximum(mean, LEAST))).astype(np.int32)
        levels: np.ndarray = np.clip(rung - self.first, 0, self.rungs - 1)
        return levels


class _Law:
    """g: how cells lie about what is implied; r = 0 first.

    It begins with E r ≤ 1. What noise hides says nothing of g, and a mean above 1 would let μ grow there round by round.
    """

    def __init__(self, ladder: _Ladder) -> None:
        self.ladder = ladder
        about = np.minimum(1, 1 / RATIOS)  # as much below 1 as above: Σ r·about = Σ about
        self.g = np.concatenate([[0.3], about / about.sum()]) / 1.3

    def expected(self, place: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[x | y] and Var[x | y] of each cell, after g is fitted to all of them."""
        ladder, rungs = self.ladder, self.ladder.rungs
        kind = place * np.int32(rungs) + level
        cells = np.bincount(kind, minlength=len(ladder.chance) * rungs)
        kinds = np.flatnonzero(cells)
        y, rung = np.divmod(kinds, rungs)
        reached = y[:, None], rung[:, None] + np.arange(2 * OFFSETS + 1)
        chance = np.concatenate([ladder.at_nought[y][:, None], ladder.chance[reached]], axis=1)
        for _ in range(STEPS):
            fitted = (cells[kinds] / np.maximum(chance @ self.g, 1e-300)) @ chance * self.g + UNSEEN / len(self.g)
            self.g = fitted / fitted.sum()
        found = np.zeros((2, len(cells)))
        mean, square = (moment[reached] @ self.g[1:] / np.maximum(chance @ self.g, 1e-300) for moment in ladder.moments)
        found[0, kinds], found[1, kinds] = mean, np.maximum(square - mean**2, 0)
        return found[0].take(kind), found[1].take(kind)


@dataclass(frozen=True)
class _Margins:
    """Tables whose margins μ is to have, in passes over a few joint tables; `place` is each cell's in a joint one."""

    passes: list[tuple[Split, tuple[int, ...], list[Split], np.ndarray]]

    @classmethod
    def of(cls, digit: Digits, sizes: tuple[int, ...], ways: int, cells: int) -> _Margins:
        tables, passes = list(combinations(_divided(sizes), ways)), []
        for attributes, served in covers(tables, sizes, min(LARGEST_JOINT, cells)) if ways else []:
            shape, place = tuple(sizes[j] for j in attributes), np.zeros(cells, dtype=np.int32)
            for j in attributes:
                place *= sizes[j]
                place += digit(j).astype(np.int32)
            passes.append((attributes, shape, [tables[t] for t in served], place))
        return cls(passes)

    def fit(self, mean: np.ndarray, wanted: np.ndarray, noise: np.ndarray) -> None:
        """One sweep of iterative proportional fitting: μ with the margins of what is wanted, as far as it is more than noise.

        `noise` is the variance of the noise that is in each cell of what is wanted.
        """
        for attributes, shape, tables, place in self.passes:
            have, want, error = (np.bincount(place, of, math.prod(shape)).reshape(shape) for of in (mean, wanted, noise))
            factor = np.ones(shape)
            for table in tables:
                others = tuple(axis for axis, j in enumerate(attributes) if j not in table)
                held, asked, unsure = (counts.sum(axis=others, keepdims=True) for counts in (have, want, error))
                asked = _beyond_noise(asked, unsure) if len(table) == 2 else asked
                ratio = np.divide(asked, held, out=np.ones(held.shape), where=held > 0)
                have *= ratio
                factor *= ratio
            mean *= factor.ravel().take(place)
            np.maximum(mean, NEXT_TO_NOUGHT, out=mean)


def _beyond_noise(table: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """A table of a pair, each cell as far from independence as its noise allows: R(1 − cV/R²) where that has R's sign."""
    first, second = (axis for axis, size in enumerate(table.shape) if size > 1)
    implied = table.sum(axis=first, keepdims=True) * table.sum(axis=second, keepdims=True) / max(table.sum(), 1e-300)
    beyond = table - implied
    kept = np.maximum(1 - NOISES * variance / np.maximum(beyond**2, 1e-30), 0)
    found: np.ndarray = np.maximum(implied + kept * beyond, 0)
    return found


def _known(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of how many attributes together μ knows, in turn: fewer than there are, or it would be the table itself."""
    return {0: (0,), 1: (0,), 2: (1,)}.get(len(_divided(sizes)), (1, 2))


def _divided(sizes: tuple[int, ...]) -> list[int]:
    return [j for j, size in enumerate(sizes) if size > 1]


def likely_cells(noisy: np.ndarray, noise: CountNoise, start: np.ndarray, digit: Digits, sizes: Sequence[int]) -> np.ndarray:
    """Expected counts of the cells, of the total that `start` has: a first guess without negative counts.

    `digit(j)` is the category of attribute j in each cell.
    """
    shape, total = tuple(sizes), start.sum()
    seen, near = noisy <= math.floor(FAR * noise.width), noisy <= math.floor(NEAR * noise.width)
    ladder = _Ladder.of(noisy[seen], noise)
    law, place = _Law(ladder), ladder.places(noisy[seen])
    mean, expected, passed = np.full(len(noisy), total / len(noisy)), start, np.zeros(len(noisy))
    for ways in _known(shape):
        margins = _Margins.of(digit, shape, ways, len(noisy))
        for _ in range(ROUNDS[ways]):
            margins.fit(mean, expected, passed)
            likely, variance = (each[near[seen]] for each in law.expected(place, ladder.levels(mean[seen])))
            expected, passed = noisy.astype(float), np.full(len(noisy), noise.variance)
            expected[near], passed[near] = likely, np.minimum(variance, noise.variance) ** 2 / max(noise.variance, 1e-300)
            expected *= total / max(expected.sum(), 1e-300)
    return expected
