"""★ NOISE IS DRAWN HERE, and only here: counts, elections, shuffles.

No floating-point rounding decides an outcome. A draw compares random bits with a real number; where the bits at hand
leave that open, more bits and more digits are taken until it is settled. PRIVACY.md has the proofs, by function.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from steps_engine import bits, cube, gaussian, laws
from steps_engine.bits import Randomness as Randomness
from steps_engine.bits import integers_below as integers_below
from steps_engine.bits import permutation as permutation
from steps_engine.bits import uniform as uniform
from steps_engine.laws import BASE, OPEN, Table
from steps_engine.laws import GRID as GRID
from steps_engine.laws import LARGEST_SCALE as LARGEST_SCALE

FARTHEST = 2**62  # a noise this far out has probability below exp(−2^22); it is refused, so that int64 never overflows
MOST_CELLS = 2**61

_CHUNK = 2**18  # draws made at a time: bounds temporary memory

Choose = Callable[[np.ndarray, np.ndarray, Fraction, Randomness], np.ndarray]  # of losses, eligibility and rate


@dataclass(frozen=True)
class SystemRandomness:
    """The operating system's randomness: the only source a release may use."""

    def words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
        return np.frombuffer(os.urandom(n * np.dtype(dtype).itemsize), dtype)


class SeededRandomness:
    """A repeatable stream, for public data: tests, studies, what follows the noise. A seed is a path of numbers and words.

    >>> SeededRandomness(7).child("tree", 3)
    SeededRandomness((7, 'tree', 3))
    """

    def __init__(self, seed: int | str | tuple[int | str, ...]) -> None:
        path = seed if isinstance(seed, tuple) else (seed,)
        self.path = tuple(part if isinstance(part, str) else operator.index(part) for part in path)
        self._bits = np.random.PCG64(int.from_bytes(hashlib.sha256(repr(self.path).encode()).digest(), "big"))

    def __repr__(self) -> str:
        return f"SeededRandomness({self.path!r})"

    def child(self, *key: int | str) -> SeededRandomness:
        """An independent stream named by `key`; child(a).child(b) is child(a, b)."""
        return SeededRandomness(self.path + key)

    def words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
        return self._bits.random_raw(-(-n * np.dtype(dtype).itemsize // 8)).view(dtype)[:n]


# --- counts


def two_sided_geometric(scale: Fraction, size: int, randomness: Randomness) -> np.ndarray:
    """`size` independent integers with P(X = x) ∝ exp(−|x|/scale), exactly (Ghosh, Roughgarden, Sundararajan 2012).

    >>> two_sided_geometric(Fraction(15), 5, SeededRandomness(1)).tolist()
    [2, -27, 8, -8, -11]
    """
    laws.must_be_scale(scale)
    return _compose(laws.two_sided_geometric_tables(scale), size, randomness)


def zeros_that_reach(threshold: int, scale: Fraction, cells: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
    """Which of `cells` zeros reach the threshold > 0 once each has its noise, increasing, and their noisy counts.

    The law of drawing for every cell, at the cost of what is kept: noises are independent, so misses between hits are
    geometric, and so is what a hit exceeds the threshold by (Cormode, Procopiuc, Srivastava, Tran 2012).

    >>> where, noisy = zeros_that_reach(52, Fraction(2), 10**12, SeededRandomness(1))
    >>> where.tolist(), noisy.tolist()
    ([133071069292, 463295641832, 748910692895], [55, 52, 53])
    """
    laws.must_be_scale(scale)
    _must_be_sparse(threshold, cells)
    chance = laws.chance_of_reaching(scale, threshold)
    found = _successes(laws.gap_tables(scale, threshold, cells), chance, cells, randomness)
    return found, threshold + _compose(laws.excess_tables(scale), len(found), randomness)


def _must_be_sparse(threshold: int, cells: int) -> None:
    if not (0 < threshold and 0 < cells <= MOST_CELLS):
        raise ValueError(f"a threshold is at least 1 and cells at most 2^61; found {threshold} and {cells}")


def _successes(gaps: tuple[Table, ...], chance: float, cells: int, randomness: Randomness) -> np.ndarray:
    """The places of successes in so many independent trials, increasing, from the law of the gaps between them."""
    hits, next_cell = [], 0
    while next_cell < cells:
        expected = (cells - next_cell) * chance
        drawn = _compose(gaps, int(expected + 4 * math.sqrt(expected)) + 16, randomness)
        inside = int(np.searchsorted(np.cumsum(drawn + 1.0), 1.5 * (cells - next_cell)))  # beyond, int64 could overflow
        places = next_cell + np.cumsum(drawn[: inside + 1] + 1)
        hits.append(places[places <= cells] - 1)
        next_cell = int(places[-1])
    return np.concatenate(hits)


def _compose(tables: tuple[Table, ...], size: int, randomness: Randomness) -> np.ndarray:
    """Numbers from their block and independent lower digits; below 0 the digits count down."""
    block, *digits = tables
    width = BASE ** len(digits)
    numbers = np.empty(size, np.int64)
    for part in _chunks(size, 1):
        blocks = bits.draw(block, part.stop - part.start, randomness)
        if max(blocks.max(), -blocks.min()) >= FARTHEST // width:
            raise OverflowError("a noise beyond 2^62 was drawn and is refused (probability below exp(−2^22))")
        if digits:
            rest = sum(bits.draw(digit, blocks.size, randomness) << 8 * j for j, digit in enumerate(digits))
            blocks = width * blocks + np.where(blocks < 0, width - 1 - rest, rest)
        numbers[part] = blocks
    return numbers


# --- counts: the discrete Gaussian


def discrete_gaussian(variance: Fraction, size: int, randomness: Randomness) -> np.ndarray:
    """`size` independent integers with P(X = x) ∝ exp(−x²/(2·variance)), exactly (Canonne, Kamath, Steinke 2020).

    >>> discrete_gaussian(Fraction(225), 5, SeededRandomness(1)).tolist()
    [2, -21, 8, -8, -11]
    """
    laws.must_be_scale(variance, gaussian.LARGEST_VARIANCE)
    table, numbers = gaussian.ziggurat(variance), np.empty(size, np.int64)
    for part in _chunks(size, 1):
        chunk = numbers[part]
        chunk[:], wanted = _propose(table, chunk.size, randomness)
        while wanted.size:
            chunk[wanted], refused = _propose(table, wanted.size, randomness)
            wanted = wanted[refused]
    return numbers


def _propose(table: gaussian.Ziggurat, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and the places of those refused: 16 bits choose a slot of a block, which is the number's or is open."""
    head = randomness.words(size, np.uint16)
    short = table.settled[head]
    unsettled = np.flatnonzero(short == OPEN)
    numbers: np.ndarray = short.astype(np.int64)
    numbers[unsettled] = blocks = table.blocks[head[unsettled]]
    if table.shift:
        numbers <<= table.shift
        numbers |= (randomness.words(size, table.word) & table.word(2**table.shift - 1)).astype(np.int64)
    accepted = bits.under(table.bell, table.places[head[unsettled]], numbers[unsettled], randomness)
    for i in np.flatnonzero((blocks == table.reach) | (blocks < -table.reach)):
        numbers[unsettled[i]], accepted[i] = _propose_beyond(table, -1 if blocks[i] < 0 else 1, randomness)
    return numbers, unsettled[~accepted]


def _propose_beyond(table: gaussian.Ziggurat, sign: int, randomness: Randomness) -> tuple[int, bool]:
    """A number from the table's reach on, and whether it is accepted; below 0 the reach itself lies in a block."""
    head = int(randomness.words(1, np.uint64)[0])
    if head > table.far or not bits.Uniform(head, 64, randomness).below(partial(laws.floor_of, table.taken)):
        return 0, False
    excess, accepted = _exceed(table.beyond, 1, randomness)
    return sign * (table.beyond.start + int(excess[0])), bool(accepted[0] and (sign > 0 or excess[0] > 0))


def _exceed(envelope: gaussian.Envelope, size: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
    """Proposals for what a noise exceeds the envelope's start by, and which are accepted."""
    excess = _compose(laws.excess_tables(envelope.scale), size, randomness)
    return excess, bits.under(envelope.bell, np.zeros(size, np.int64), excess, randomness)


def gaussian_zeros_that_reach(
    threshold: int, variance: Fraction, cells: int, randomness: Randomness
) -> tuple[np.ndarray, np.ndarray]:
    """What zeros_that_reach is to the two-sided geometric law: candidates by their gaps, and of these the accepted.

    >>> where, noisy = gaussian_zeros_that_reach(14, Fraction(4), 10**12, SeededRandomness(1))
    >>> where.tolist(), noisy.tolist()
    ([604251616815, 762175963242, 781685493970], [14, 14, 14])
    """
    laws.must_be_scale(variance, gaussian.LARGEST_VARIANCE)
    _must_be_sparse(threshold, cells)
    law = gaussian.reaching(variance, threshold)
    found = _successes(gaussian.candidate_gap_tables(law.rate, cells), law.chance, cells, randomness)
    excess, accepted = _exceed(law.envelope, len(found), randomness)
    accepted &= bits.coins(law.worth, len(found), randomness)
    return found[accepted], threshold + excess[accepted]


# --- counts: vectors, by their largest coordinate


def max_norm(scale: Fraction, dimension: int, copies: int, randomness: Randomness) -> np.ndarray:
    """`copies` independent whole vectors with P(x) ∝ exp(−max|x_i|/scale), exactly (Hardt, Talwar 2010): copies × dimension.

    >>> max_norm(Fraction(2), 3, 2, SeededRandomness(1)).tolist()
    [[-3, -4, 0], [-2, 3, -1]]
    """
    if not 0 < dimension <= cube.MOST_DIMENSIONS:
        raise ValueError(f"a vector of noise has 1 to 2^17 coordinates; found {dimension}")
    law = cube.Radius(scale, dimension)
    laws.must_be_scale(scale)
    laws.must_be_scale(law.proposed)
    vectors = np.empty((copies, dimension), np.int64)
    for part in _chunks(copies, dimension):
        radius = _radii(law, part.stop - part.start, randomness).repeat(dimension)
        vectors[part] = (integers_below(2 * radius + 1, radius.size, randomness) - radius).reshape(-1, dimension)
    return vectors


def _radii(law: cube.Radius, size: int, randomness: Randomness) -> np.ndarray:
    """By rejection; about √dimension proposals for each."""
    radii, wanted = np.empty(size, np.int64), np.arange(size)
    while wanted.size:
        radii[wanted] = _compose(laws.excess_tables(law.proposed), wanted.size, randomness)
        wanted = wanted[~bits.accepted(law, radii[wanted], randomness)]
    return radii


# --- elections


def permute_and_flip(
    scores: np.ndarray, eligible: np.ndarray, epsilon: Fraction, spread: Fraction, randomness: Randomness
) -> np.ndarray:
    """The elected column of each row: in random order, the first accepted (McKenna, Sheldon 2020).

    A column is accepted with probability exp(−ε·(best − score)/spread), where one record moves all scores of a row by
    amounts at most `spread` apart. Each coin is tossed at most once, so the first accepted in a uniformly random order
    is a uniform choice among all accepted; the best column always is.
    """
    return _elect(_any_accepted, scores, eligible, epsilon, spread, randomness)


def exponential_mechanism(
    scores: np.ndarray, eligible: np.ndarray, epsilon: Fraction, spread: Fraction, randomness: Randomness
) -> np.ndarray:
    """The elected column of each row, P(column) ∝ exp(ε·score/spread) (McSherry, Talwar 2007), by rejection."""
    return _elect(_first_accepted, scores, eligible, epsilon, spread, randomness)


def rate_of(epsilon: Fraction, spread: Fraction) -> Fraction:
    """ε per unit of score. Floor and floating-point error, each below GRID, widen a row's spread by less than 2·GRID + 4·GRID;
    rows that lie in nodes of their own widen one each, so that a larger spread is widened in proportion."""
    return epsilon / (spread + 6 * GRID * max(Fraction(1), spread))


def _elect(
    choose: Choose, scores: np.ndarray, eligible: np.ndarray, epsilon: Fraction, spread: Fraction, randomness: Randomness
) -> np.ndarray:
    for name, value in (("epsilon", epsilon), ("spread", spread)):
        if not isinstance(value, Fraction) or value <= 0:
            raise ValueError(f"an election's {name} is a Fraction above 0; found {value!r}")
    eligible = np.asarray(eligible, bool)
    losses = laws.losses(np.asarray(scores, np.float64), eligible)
    rate = GRID * rate_of(epsilon, spread)
    chosen = np.empty(len(losses), np.int64)
    for part in _chunks(*losses.shape):
        chosen[part] = choose(losses[part], eligible[part], rate, randomness)
    return chosen


def _any_accepted(losses: np.ndarray, eligible: np.ndarray, rate: Fraction, randomness: Randomness) -> np.ndarray:
    accepted = eligible & bits.flip(losses, rate, randomness)
    pick = integers_below(accepted.sum(axis=1), len(accepted), randomness)
    chosen: np.ndarray = (accepted.cumsum(axis=1) > pick[:, None]).argmax(axis=1)
    return chosen


def _first_accepted(losses: np.ndarray, eligible: np.ndarray, rate: Fraction, randomness: Randomness) -> np.ndarray:
    """Each round makes as many uniform proposals per undecided row as there are columns: P(none accepted) < 1/e."""
    columns, counts = np.argsort(~eligible, axis=1, kind="stable"), eligible.sum(axis=1)
    chosen, undecided = np.empty(len(losses), np.int64), np.arange(len(losses))
    while undecided.size:
        shape = undecided.size, losses.shape[1]
        places = integers_below(np.repeat(counts[undecided], shape[1]), math.prod(shape), randomness).reshape(shape)
        proposals = np.take_along_axis(columns[undecided], places, axis=1)
        accepted = bits.flip(np.take_along_axis(losses[undecided], proposals, axis=1), rate, randomness)
        first, done = accepted.argmax(axis=1), accepted.any(axis=1)
        chosen[undecided[done]] = proposals[done, first[done]]
        undecided = undecided[~done]
    return chosen


def _chunks(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, columns))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
