"""The laws of noise as exact tables: thresholds that random bits are compared with. Nothing here is random.

Every threshold is a rational function of exp(−q), q rational and not 0, hence irrational (Lindemann): it never equals a
binary fraction, so that enough digits settle each floor and each comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

LARGEST_SCALE = 2**40
GRID = Fraction(1, 2**20)  # scores are floored to whole multiples of this public step
SCORE_LIMIT = 2**40
BASE = 256  # a scale above DIRECT is split into digits of this base
DIRECT = 32
WIDEST = 2**54  # digits are split off below this width, so that blocks and digits together stay below 2^62
EXP_ERROR = 2.0**-45  # what the proof of a coin toss allows double precision; a good exp stays below 2^−50
OPEN = np.iinfo(np.int16).min  # marks a slot that 16 bits do not settle

Power = Callable[[int, int], Decimal]  # (k, digits): the k-th power of a fixed ratio

_ONES = 2**64 - 1
_GUARD = 20  # decimal digits spent on rounding and cancellation


@lru_cache(maxsize=16)  # every tail of a law has its ends in common
def exp_minus(x: Fraction, digits: int) -> Decimal:
    """exp(−x) for rational x ≥ 0, relative error below 10^−digits: Decimal rounds quotient and exp correctly."""
    context = context_of(digits + 3 + len(str(int(x))))
    return context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def floor_of(real: Callable[[int], Decimal], bits: int) -> int:
    """⌊2^bits·t⌋ of an irrational t > 0, where real(digits) is t with relative error below 10^(20 − digits).

    >>> floor_of(lambda digits: exp_minus(Fraction(1), digits), 10)  # 1024/e = 376.7…
    376
    """
    digits = _GUARD + 10 + bits // 3
    while True:
        context = context_of(digits)
        scaled = context.multiply(real(digits), 1 << bits)
        margin = context.scaleb(scaled, _GUARD + 1 - digits)
        low, high = int(context.subtract(scaled, margin)), int(context.add(scaled, margin))
        if low == high:
            return low
        digits *= 2


def near_to(real: Callable[[int], Decimal], bits: int) -> int:
    """A whole number less than 1 from 2^bits·t, 0 ≤ t ≤ 1, where real(digits) is t as for floor_of."""
    digits = _GUARD + 10 + bits // 3
    return round(context_of(digits + bits).multiply(real(digits), 1 << bits))


def context_of(digits: int) -> Context:
    """Decimal arithmetic in so many digits, with exponents as far as they go."""
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)


@dataclass(frozen=True)
class Law:
    """A law on the integers low…high, given by tail(k, digits): P(Y < k) if k ≤ 0, P(Y ≥ k) if k ≥ 1."""

    tail: Callable[[int, int], Decimal]
    low: float
    high: float

    def floor(self, k: int, bits: int) -> int:
        """⌊2^bits·P(Y < k)⌋; above 0 through the tail t = P(Y ≥ k): ⌊2^bits·(1 − t)⌋ = 2^bits − 1 − ⌊2^bits·t⌋."""
        part = floor_of(partial(self.tail, k), bits)
        return part if k <= 0 else (1 << bits) - 1 - part


@dataclass(frozen=True, eq=False)
class Table:
    """A law's thresholds floors[i] = ⌊2^64·P(Y < first + i)⌋, and its value for each settled head of 16 bits."""

    law: Law
    first: int
    floors: np.ndarray
    slots: np.ndarray


def tabulate(law: Law) -> Table:
    """Thresholds from 0 outwards, each way up to the first that 64 bits cannot tell from the law's end."""
    k, floors = 0, list[int]()
    while k > law.low and (not floors or floors[-1] > 0):
        floors.append(law.floor(k, 64))
        k -= 1
    floors.reverse()
    first, k = k + 1, 1
    while k <= law.high and (not floors or floors[-1] < _ONES):
        floors.append(law.floor(k, 64))
        k += 1
    thresholds = np.array(floors, np.uint64)
    start = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    below = np.searchsorted(thresholds, start, "left")
    settled = below == np.searchsorted(thresholds, start | np.uint64(2**48 - 1), "right")
    return Table(law, first, thresholds, np.where(settled, first - 1 + below, OPEN).astype(np.int16))


def _block_tail(scale: Fraction, width: int, k: int, digits: int) -> Decimal:
    """Tails of ⌊X/width⌋: P(X < width·k) = α^(1 − width·k)/(1 + α), P(X ≥ width·k) = α^(width·k)/(1 + α)."""
    steps, context = 1 - width * k if k <= 0 else width * k, context_of(digits)
    return context.divide(exp_minus(steps / scale, digits), context.add(1, exp_minus(1 / scale, digits)))


def _digit_tail(power: Power, k: int, digits: int) -> Decimal:
    """P(D ≥ k) = (β^k − β^256)/(1 − β^256) for a base-256 digit D of a geometric number, power(k, digits) = β^k."""
    end, context = power(BASE, digits), context_of(digits)
    return context.divide(context.subtract(power(k, digits), end), context.subtract(1, end))


def _noise_power(scale: Fraction, k: int, digits: int) -> Decimal:
    """α^k, α = exp(−1/scale)."""
    return exp_minus(k / scale, digits)


def _miss_power(scale: Fraction, threshold: int, k: int, digits: int) -> Decimal:
    """(1 − q)^k with q = P(X ≥ threshold) = α^threshold/(1 + α): k noises in a row that stay below the threshold."""
    spare = math.ceil(threshold / scale) + len(str(k)) + 3  # digits that a small q, and a large k, would cost
    context = context_of(digits + spare)
    chance = context.divide(exp_minus(threshold / scale, context.prec), context.add(1, exp_minus(1 / scale, context.prec)))
    return context.power(context.subtract(1, chance), k)


def _stretched(power: Power, width: int, k: int, digits: int) -> Decimal:
    return power(width * k, digits)


def _digit_tables(power: Power, mean: Fraction | float, reach: int = WIDEST) -> tuple[list[Table], int]:
    """The lower base-256 digits of a geometric number, as independent tables, and the width of what is above them."""
    width, digits = 1, []
    while mean > DIRECT * width and width < reach:
        digits.append(tabulate(Law(partial(_digit_tail, partial(_stretched, power, width)), 0, BASE - 1)))
        width *= BASE
    return digits, width


@lru_cache(maxsize=32)
def two_sided_geometric_tables(scale: Fraction) -> tuple[Table, ...]:
    """The block ⌊X/256^J⌋ and the J lower digits, as independent tables; J = 0 up to the scale DIRECT."""
    digits, width = _digit_tables(partial(_noise_power, scale), scale)
    return tabulate(Law(partial(_block_tail, scale, width), -math.inf, math.inf)), *digits


@lru_cache(maxsize=32)
def excess_tables(scale: Fraction) -> tuple[Table, ...]:
    """By how much a noise exceeds a threshold ≥ 0 that it reaches: P(Y ≥ k) = α^k, whatever the threshold."""
    power = partial(_noise_power, scale)
    digits, width = _digit_tables(power, scale)
    return tabulate(Law(partial(_stretched, power, width), 0, math.inf)), *digits


@lru_cache(maxsize=32)
def gap_tables(scale: Fraction, threshold: int, end: int) -> tuple[Table, ...]:
    """How many noises in a row stay below the threshold: P(G ≥ k) = (1 − q)^k; all that lies beyond `end` is one value."""
    return gap_tables_of(partial(_miss_power, scale, threshold), 1 / chance_of_reaching(scale, threshold), end)


def gap_tables_of(power: Power, mean: float, end: int) -> tuple[Table, ...]:
    """A geometric number with P(G ≥ k) = power(k), all that lies beyond `end` being one value."""
    digits, width = _digit_tables(power, mean, min(end, WIDEST))
    return tabulate(Law(partial(_stretched, power, width), 0, end // width + 1)), *digits


def chance_of_reaching(scale: Fraction, threshold: int) -> float:
    """q = P(X ≥ threshold) = α^threshold/(1 + α), in double precision: for planning, never for drawing."""
    return math.exp(-threshold / scale) / (1 + math.exp(-1 / scale))


def variance(scale: Fraction) -> float:
    """Var(X) = 2α/(1 − α)² of the two-sided geometric law, α = exp(−1/scale).

    >>> round(variance(Fraction(15)), 4)
    449.8334
    """
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def mean_size(scale: Fraction) -> float:
    """E|X| = 2α/(1 − α²) of the two-sided geometric law."""
    return -2 * math.exp(-1 / scale) / math.expm1(-2 / scale)


def chance_below(bound: np.ndarray, scale: Fraction) -> np.ndarray:
    """P(X < bound) of the two-sided geometric law in double precision: for estimates, never for drawing."""
    tail = np.exp(-np.where(bound > 0, bound, 1 - bound) / float(scale)) / (1 + math.exp(-1 / scale))
    return np.where(bound > 0, 1 - tail, tail)


def probability(value: np.ndarray, scale: Fraction) -> np.ndarray:
    """P(X = value) = (1 − α)/(1 + α)·α^|value| of the two-sided geometric law in double precision: for estimates."""
    result: np.ndarray = math.tanh(1 / (2 * float(scale))) * np.exp(-np.abs(value) / float(scale))
    return result


def must_be_scale(scale: Fraction, largest: int = LARGEST_SCALE) -> None:
    """Refuse what is not an exact number in reach of a draw."""
    if not isinstance(scale, Fraction):
        raise TypeError(f"a noise scale is an exact Fraction; found {type(scale).__name__}")
    if not 0 < scale <= largest:
        raise ValueError(f"a noise scale lies above 0 and at most at 2^{largest.bit_length() - 1}; found {scale}")


def losses(scores: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """best − score in whole multiples of GRID, 0 where not eligible."""
    if scores.ndim != 2 or scores.shape != eligible.shape or not eligible.any(axis=1).all():
        raise ValueError("an election takes scores and eligibility of one shape, with an eligible column in each row")
    if not (np.abs(scores[eligible]) < SCORE_LIMIT).all():
        raise ValueError("an eligible score is not finite, or not below 2^40; check the utility")
    units = np.floor(np.where(eligible, scores, 0.0) * GRID.denominator).astype(np.int64)
    best = np.where(eligible, units, np.iinfo(np.int64).min).max(axis=1, keepdims=True)
    return np.where(eligible, best - units, 0)


def chances(losses: np.ndarray, rate: Fraction) -> np.ndarray:
    """exp(−loss·rate) in double precision, within EXP_ERROR: the first look of a coin toss."""
    return np.exp(losses * -float(rate))


def must_have_a_good_exp() -> None:
    """Compares `chances`, on long arrays as elections call it and on short ones, with powers of an exact exp(−rate·step).

    Fine steps below 7; halves of log 2, where implementations change over; down to the smallest subnormal and on, where exp
    is 0; losses as large as they come.
    """
    halves_of_log_2 = Fraction(34_657_359_027_997_265, 10**17)
    for rate, step in ((Fraction(1, 3 * 2**20), 98_731), (halves_of_log_2, 1), (Fraction(37, 9), 1), (Fraction(9), 2**54)):
        losses, exact = step * np.arange(200), np.array(_exp_powers(rate * step, 200))
        short = [chances(losses[first : first + 5], rate) for first in range(0, 200, 5)]
        if not (np.abs(np.stack([chances(losses, rate), np.concatenate(short)]) - exact) <= EXP_ERROR).all():
            raise ImportError(
                "exp in this NumPy is off by more than the 2^−45 that elections can allow it. Install another build of NumPy."
            )


def _exp_powers(x: Fraction, number: int) -> list[float]:
    """exp(−k·x) for k = 0 … number − 1: powers in 40 digits of one exact exp."""
    context, ratio, power, powers = context_of(40), exp_minus(x, 40), Decimal(1), []
    for _ in range(number):
        powers.append(float(power))
        power = context.multiply(power, ratio)
    return powers


must_have_a_good_exp()
