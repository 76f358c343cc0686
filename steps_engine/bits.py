"""Random bits against real numbers: values of tables, coins and uniform choices, exactly.

Words are handed in; noise.py alone calls this. Where the bits
at hand leave a comparison open, more bits and more digits are taken until it is settled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np

from steps_engine import cube, gaussian, laws
from steps_engine.laws import EXP_ERROR, OPEN, Law, Table

MARGIN = 2 * EXP_ERROR  # over a hundred times the error of exp in double precision


class Randomness(Protocol):
    """Independent, uniformly random machine words."""

    def words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray: ...


@dataclass
class Uniform:
    """A uniform real of which all but its binary digits beyond the first `bits` are drawn so far: they are `head`."""

    head: int
    bits: int
    randomness: Randomness

    def below(self, floor: Callable[[int], int]) -> bool:
        """u < t for an irrational t with floor(bits) = ⌊2^bits·t⌋; draws on while both share all their digits."""
        while self.head == floor(self.bits):
            self._draw_on()
        return self.head < floor(self.bits)

    def below_near(self, near: Callable[[int], int]) -> bool:
        """u < t for any t, |near(bits) − 2^bits·t| < 1: heads of near − 1 and near are open, any other head decides."""
        while 0 <= near(self.bits) - self.head <= 1:
            self._draw_on()
        return self.head < near(self.bits)

    def _draw_on(self) -> None:
        self.head = self.head << 64 | int(self.randomness.words(1, np.uint64)[0])
        self.bits += 64


def draw(table: Table, size: int, randomness: Randomness) -> np.ndarray:
    """`size` values of the table's law: 16 bits each, and more only where these do not settle the value."""
    head = randomness.words(size, np.uint16)
    short = table.slots[head]
    unsettled = np.flatnonzero(short == OPEN)
    values: np.ndarray = short.astype(np.int64)
    values[unsettled] = _settle(table, head[unsettled], randomness)
    return values


def _settle(table: Table, head: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Values for heads that 16 bits leave open: 48 more bits, and a walk where these equal a threshold's."""
    bits = head.astype(np.uint64) << np.uint64(48) | randomness.words(head.size, np.uint64) >> np.uint64(16)
    place = np.searchsorted(table.floors, bits, "right")
    values = table.first - 1 + place
    for i in np.flatnonzero((place > 0) & (table.floors[place - 1] == bits)):
        values[i] = _walk(table.law, int(values[i]), int(bits[i]), randomness)
    return values


def _walk(law: Law, k: int, head: int, randomness: Randomness) -> int:
    """The value k with P(Y < k) ≤ u < P(Y < k + 1), for the u that begins with the 64 bits `head`."""
    u = Uniform(head, 64, randomness)
    while k > law.low and u.below(partial(law.floor, k)):
        k -= 1
    while k < law.high and not u.below(partial(law.floor, k + 1)):
        k += 1
    return k


def flip(losses: np.ndarray, rate: Fraction, randomness: Randomness) -> np.ndarray:
    """Independent coins with P(heads) = exp(−loss·rate), exactly: double precision decides only beyond MARGIN."""
    bits = randomness.words(losses.size, np.uint64).reshape(losses.shape)
    gap = laws.chances(losses, rate) - bits * 2.0**-64
    heads = gap > 0
    for i in zip(*np.nonzero(np.abs(gap) <= MARGIN), strict=True):
        chance = partial(laws.exp_minus, int(losses[i]) * rate)
        heads[i] = losses[i] == 0 or Uniform(int(bits[i]), 64, randomness).below(partial(laws.floor_of, chance))
    return heads


def under(bell: gaussian.Bell, place: np.ndarray, x: np.ndarray, randomness: Randomness) -> np.ndarray:
    """place + u < bell at x, u uniform on [0, 1): double precision decides only beyond gaussian.MARGIN."""
    bits = randomness.words(x.size, np.uint64)
    gap = bell.rough(x) - (place + bits * 2.0**-64)
    lower: np.ndarray = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= gaussian.MARGIN):
        if x[i] == bell.centre:
            lower[i] = place[i] < bell.height
        else:
            u = Uniform(int(place[i]) << 64 | int(bits[i]), 64, randomness)
            lower[i] = u.below(partial(laws.floor_of, partial(bell.at, int(x[i]))))
    return lower


def accepted(law: cube.Radius, radius: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Independent coins with the chances that proposed radii are accepted with: beyond cube.MARGIN double precision decides."""
    bits = randomness.words(radius.size, np.uint64)
    gap = law.rough(radius) - bits * 2.0**-64
    heads: np.ndarray = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= cube.MARGIN):
        chance = partial(law.chance, int(radius[i]))
        heads[i] = law.is_sure(int(radius[i])) or Uniform(int(bits[i]), 64, randomness).below(partial(laws.floor_of, chance))
    return heads


def coins(chance: Callable[[int], Decimal], size: int, randomness: Randomness) -> np.ndarray:
    """Independent coins with P(heads) = chance < 1, of which nothing is known but its digits."""
    near, bits = partial(laws.near_to, chance), randomness.words(size, np.uint64)
    heads: np.ndarray = bits < near(64)
    for i in np.flatnonzero((bits == near(64)) | (bits == near(64) - 1)):
        heads[i] = Uniform(int(bits[i]), 64, randomness).below_near(near)
    return heads


# --- uniform choices


def integers_below(bound: int | np.ndarray, n: int, randomness: Randomness) -> np.ndarray:
    """n integers, each uniform on 0…bound − 1 (one bound, or one for each): words below 2^64 mod bound are redrawn."""
    bounds = np.broadcast_to(np.asarray(bound), n)
    if bounds.dtype.kind not in "iu" or (n and not (0 < bounds.min() and bounds.max() < 2**63)):
        raise ValueError("a bound is a whole number from 1 to 2^63 − 1")
    bounds = bounds.astype(np.uint64)
    excess = (np.uint64(2**64 - 1) - bounds + np.uint64(1)) % bounds
    words = randomness.words(n, np.uint64).copy()
    while (redraw := np.flatnonzero(words < excess)).size:
        words[redraw] = randomness.words(redraw.size, np.uint64)
    remainders: np.ndarray = (words % bounds).astype(np.int64)
    return remainders


def permutation(n: int, randomness: Randomness) -> np.ndarray:
    """A uniformly random order of 0…n − 1: the order of n distinct random keys (all redrawn when two are equal)."""
    while True:
        keys = randomness.words(n, np.uint64)
        order = np.argsort(keys)
        ranked = keys[order]
        if (ranked[1:] != ranked[:-1]).all():
            return order


def uniform(n: int, randomness: Randomness) -> np.ndarray:
    """n multiples of 2^−53 in [0, 1), each equally likely: for post-processing, never for noise."""
    return (randomness.words(n, np.uint64) >> np.uint64(11)) * 2.0**-53
