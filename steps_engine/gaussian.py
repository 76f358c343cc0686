"""The discrete Gaussian law, P(X = x) ∝ g(x) = exp(−x²/(2σ²)): exact tables to draw by, and moments for planning.

Nothing here is random. Its scale is σ², an exact fraction, everywhere. PRIVACY.md has the proofs, under `discrete_gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from scipy import special

from steps_engine import laws
from steps_engine.laws import OPEN, Table, context_of, exp_minus, floor_of

LARGEST_VARIANCE = 2**80
SPAN = 6  # blocks reach this many σ; what lies beyond is drawn from a geometric envelope
FINEST = 64  # σ in block widths is at most this, and at least half of it where blocks are wider than 1
MARGIN = 2.0**-27  # of factor·g in double precision: factor ≤ 2^16 times an error below 2^−44, and rounding

_SLOTS = 2**16
_NEGLIGIBLE = 2**60  # exp(−this) is nothing to double precision
_SUMMED = 10_000  # up to this variance moments are sums over all values that matter, beyond it their expansions


@dataclass(frozen=True)
class Bell:
    """x ↦ height·exp(−(x − centre)²/(2σ²)), height a whole number up to 2^16."""

    variance: Fraction
    height: int = 1
    centre: Fraction = Fraction(0)

    def rough(self, x: np.ndarray) -> np.ndarray:
        """In double precision, within height·2^−44: the first look of a coin toss."""
        off = x - float(self.centre)
        return self.height * np.exp(off * off * -float(min(1 / (2 * self.variance), Fraction(_NEGLIGIBLE))))

    def at(self, x: int, digits: int) -> Decimal:
        """Relative error below 10^(20 − digits); irrational but at the centre."""
        return context_of(digits).multiply(self.height, exp_minus((x - self.centre) ** 2 / (2 * self.variance), digits))


@dataclass(frozen=True)
class Envelope:
    """Over the excess j ≥ 0 above `start`: g(start + j) = top·exp(−j/scale)·bell(j), bell being 1 at most."""

    variance: Fraction
    start: int

    @property
    def centre(self) -> Fraction:
        return self.variance / (math.isqrt(math.floor(self.variance)) + 1)

    @property
    def bell(self) -> Bell:
        return Bell(self.variance, 1, self.centre)

    @property
    def scale(self) -> Fraction:
        return self.variance / (self.start + self.centre)

    def mass(self, digits: int) -> Decimal:
        """top/(1 − exp(−1/scale)), what lies under the envelope, relative error below 10^(20 − digits)."""
        more = context_of(digits + len(str(int(self.scale))) + 3)
        base = more.subtract(1, exp_minus(1 / self.scale, more.prec))
        top = exp_minus((self.start**2 - self.centre**2) / (2 * self.variance), digits)
        return context_of(digits).divide(top, base)


@dataclass(frozen=True, eq=False)
class Ziggurat:
    """For each head of 16 bits: its block, or OPEN where it may be refused; and its place among the block's slots.

    Block b holds the numbers from b·2^shift on, 2^shift of them; the outermost on each side, ±reach, stand for all beyond.
    """

    variance: Fraction
    shift: int
    factor: int  # a number x in a block takes factor·g(x) of the block's slots
    reach: int
    settled: np.ndarray
    blocks: np.ndarray
    places: np.ndarray
    far: int  # floor of 2^64 times the chance that a slot for all beyond is taken at all

    @property
    def bell(self) -> Bell:
        return Bell(self.variance, self.factor)

    @property
    def word(self) -> type[np.unsignedinteger]:
        """Words wide enough for a number's place in its block."""
        return np.uint8 if self.shift <= 8 else np.uint16 if self.shift <= 16 else np.uint64

    @property
    def beyond(self) -> Envelope:
        return Envelope(self.variance, self.reach << self.shift)

    def taken(self, digits: int) -> Decimal:
        """The share of a slot for all beyond that its envelope takes."""
        context = context_of(digits)
        return context.divide(context.multiply(self.factor, self.beyond.mass(digits)), 1 << self.shift)


@lru_cache(maxsize=32)
def ziggurat(variance: Fraction) -> Ziggurat:
    """Slots for blocks by the largest g in each, rounded up; what is left over goes to block 0, where it is refused."""
    root = math.isqrt(math.floor(variance)) + 1
    shift = max(0, (root // FINEST).bit_length())
    width = 1 << shift
    reach = -(-SPAN * root // width)
    blocks = np.arange(-reach, reach)
    least = np.where(blocks < 0, -width * (blocks + 1) + 1, width * blocks)  # the smallest |x| in a block
    high, low = Bell(variance).rough(least), Bell(variance).rough(least + (width - 1))
    factor = math.floor((_SLOTS - 2 - 2 * len(blocks)) / high.sum())
    slots = np.floor(factor * high + MARGIN).astype(np.int64) + 1
    slots[reach] += _SLOTS - 2 - slots.sum()
    sure = np.floor(np.maximum(factor * low - MARGIN, 0)).astype(np.int64)
    of_slot = np.concatenate([[-reach - 1], np.repeat(blocks, slots), [reach]])
    places = np.concatenate([[0], np.arange(_SLOTS - 2) - np.repeat(np.cumsum(slots) - slots, slots), [0]])
    settled = np.where(places < np.concatenate([[0], np.repeat(sure, slots), [0]]), of_slot, OPEN)
    table = Ziggurat(variance, shift, factor, reach, settled.astype(np.int16), of_slot.astype(np.int16), places, 0)
    return Ziggurat(**{**vars(table), "far": floor_of(table.taken, 64)})


# --- of many zeros, those that reach a threshold


@dataclass(frozen=True)
class Reaching:
    """A zero is a candidate with chance 1 − exp(−rate), and a candidate is worth an excess with chance `worth`."""

    envelope: Envelope
    rate: Fraction

    @property
    def chance(self) -> float:
        return -math.expm1(-self.rate)

    def worth(self, digits: int) -> Decimal:
        """mass/(Z·(1 − exp(−rate))) ≤ 1, relative error below 10^(20 − digits)."""
        more = context_of(digits + len(str(int(1 / self.rate))) + 3)
        candidates = more.subtract(1, exp_minus(self.rate, more.prec))
        context = context_of(digits)
        part = context.divide(self.envelope.mass(digits), normaliser(self.envelope.variance, digits))
        return context.divide(part, candidates)


@lru_cache(maxsize=32)
def reaching(variance: Fraction, threshold: int) -> Reaching:
    """Candidates a little more frequent than what lies under the envelope: by a relative 2^−30, and at least 2^−90."""
    envelope = Envelope(variance, threshold)
    chance = float(context_of(40).divide(envelope.mass(40), normaliser(variance, 40)))
    return Reaching(envelope, Fraction(max(-math.log1p(-chance) * (1 + 2.0**-30), 2.0**-90)))


@lru_cache(maxsize=32)
def candidate_gap_tables(rate: Fraction, end: int) -> tuple[Table, ...]:
    """How many zeros in a row are no candidates: P(G ≥ k) = exp(−k·rate); all that lies beyond `end` is one value."""
    return laws.gap_tables_of(partial(_no_candidate, rate), float(1 / rate), end)


def _no_candidate(rate: Fraction, k: int, digits: int) -> Decimal:
    return exp_minus(k * rate, digits + len(str(int(1 / rate))) + 3)  # digits that a small rate would cost


def normaliser(variance: Fraction, digits: int) -> Decimal:
    """Z = Σ g(x), relative error below 10^(10 − digits); by Poisson's formula √(2πσ²)·Σ exp(−2π²σ²k²) where σ² ≥ 1/6."""
    context = context_of(digits + 10)
    if 6 * variance < 1:
        return _theta(exp_minus(1 / (2 * variance), context.prec), context)
    pi, spread = _pi(context), context.divide(variance.numerator, variance.denominator)
    ratio = context.exp(context.multiply(context.multiply(-2, spread), context.multiply(pi, pi)))
    return context.multiply(context.sqrt(context.multiply(context.multiply(2, pi), spread)), _theta(ratio, context))


def _theta(ratio: Decimal, context: Context) -> Decimal:
    """Σ ratio^(k²) over all whole k, for ratio < 1/19: what is left out is less than the last term, below 10^−prec."""
    total, k, term = Decimal(1), 0, Decimal(1)
    while term > Decimal(10) ** -context.prec:
        k += 1
        term = context.power(ratio, k * k)
        total = context.add(total, context.multiply(2, term))
    return total


def _pi(context: Context) -> Decimal:
    """π = 16·arctan(1/5) − 4·arctan(1/239), in whole multiples of 10^−(prec + 5)."""
    unit = 10 ** (context.prec + 5)
    return context.divide(16 * _arctan(5, unit) - 4 * _arctan(239, unit), unit)


def _arctan(inverse: int, unit: int) -> int:
    power, total, n = unit // inverse, 0, 1
    while power:
        total += power // n if n % 4 == 1 else -(power // n)
        power, n = power // inverse**2, n + 2
    return total


# --- in double precision: for planning and estimates, never for drawing


@lru_cache(maxsize=64)
def _summed(variance: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """All x ≥ 0 up to 40σ, and P(X = x)."""
    x = np.arange(40 * (math.isqrt(math.floor(variance)) + 1) + 1)
    chance = Bell(variance).rough(x)
    return x, chance / (2 * chance.sum() - 1)


def variance(scale: Fraction) -> float:
    """Var(X): σ² up to a relative exp(−2π²σ²)·8π²σ² once σ is not small.

    >>> variance(Fraction(225)), round(variance(Fraction(1, 4)), 4)
    (225.0, 0.215)
    """
    if scale > 100:
        return float(scale)
    x, chance = _summed(scale)
    return float(2 * (x * x * chance).sum())


def mean_size(scale: Fraction) -> float:
    """E|X|; for large σ by Euler and Maclaurin, Σ x·g(x) over x > 0 being σ² − 1/12 − 1/(240σ²) − …"""
    if scale > _SUMMED:
        return math.sqrt(2 * float(scale) / math.pi) * (1 - 1 / (12 * float(scale)))
    x, chance = _summed(scale)
    return float(2 * (x * chance).sum())


def probability(value: np.ndarray, scale: Fraction) -> np.ndarray:
    """P(X = value), its formula taken for any real value."""
    return Bell(scale).rough(np.asarray(value)) / float(normaliser(scale, 20))


def chance_below(bound: np.ndarray, scale: Fraction) -> np.ndarray:
    """P(X < bound)."""
    upper = np.asarray(bound) > 0
    tail = _chance_of_reaching(np.where(upper, bound, 1 - np.asarray(bound)), scale)
    return np.where(upper, 1 - tail, tail)


def _chance_of_reaching(bound: np.ndarray, scale: Fraction) -> np.ndarray:
    """P(X ≥ bound), bound ≥ 1; for large σ the integral from bound − ½ on and the first term of what the sum differs by."""
    bound = np.ceil(bound)
    if scale <= _SUMMED:
        tails = np.append(np.cumsum(_summed(scale)[1][::-1])[::-1], 0.0)
        return np.asarray(tails[np.minimum(bound, len(tails) - 1).astype(np.int64)])
    sigma, start = math.sqrt(scale), bound - 0.5
    slope = start / sigma**2 * np.exp(-((start / sigma) ** 2) / 2) / (24 * sigma * math.sqrt(2 * math.pi))
    return np.asarray(special.ndtr(-start / sigma) - slope)


def threshold(scale: Fraction, chance: float) -> int:
    """The lowest θ ≥ 1 with P(X ≥ θ) at most `chance`."""
    low, high = 0, 40 * (math.isqrt(math.floor(scale)) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _chance_of_reaching(np.array(middle), scale) <= chance else (middle, high)
    return high
