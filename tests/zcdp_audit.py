"""What draws paid in ρ really lose on two neighbours: exactly, from the law of the privacy loss, and from below, from samples.

ρ-zCDP promises (ε(δ), δ) at every δ at once, and a Rényi divergence of αρ at every order α. The exact part composes laws of the
loss on a grid, rounded up or down, so that what it says is a bound. The sampled part draws from the real mechanisms; at large δ,
where few runs are needed, a promise is as binding as at 10^−9.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import beta

from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, MAX_NORM
from steps_engine.noise import GRID, Randomness, SeededRandomness, rate_of
from tests.privacy_audit import election_chances

STEP = 2.0**-11  # losses are rounded to multiples of this
DELTAS = (1e-9, 1e-6, 1e-3, 1e-2, 0.1)
ORDERS = (1.01, 1.2, 2.0, 4.0)
LARGE_DELTAS = (1e-3, 1e-2, 0.03, 0.1)  # where sampling has power
ALPHA = 1e-4  # an honest mechanism is accused with at most this probability


# --- laws of the loss


@dataclass(frozen=True)
class Losses:
    """The law of log P/P′ under P: masses at (first + i)·STEP, each loss rounded up (or down) `rounded` times."""

    first: int
    mass: np.ndarray
    rounded: int = 1

    @classmethod
    def of(cls, one: np.ndarray, other: np.ndarray, up: bool) -> Losses:
        """From the chances of all outcomes, each above 0 on both sides or negligible."""
        kept = (one > 1e-30) & (other > 0)
        loss = np.log(one[kept] / other[kept]) / STEP
        place = (np.ceil(loss - 1e-9) if up else np.floor(loss + 1e-9)).astype(np.int64)
        return cls(int(place.min()), np.bincount(place - place.min(), weights=one[kept]))

    def __add__(self, more: Losses) -> Losses:
        mass = np.maximum(fftconvolve(self.mass, more.mass), 0)
        return Losses(self.first + more.first, mass, self.rounded + more.rounded)

    @property
    def values(self) -> np.ndarray:
        return (self.first + np.arange(self.mass.size)) * STEP

    def delta(self, epsilon: float) -> float:
        """The least δ at which ε holds: E[max(0, 1 − e^(ε − loss))]."""
        above = self.values > epsilon
        return float((self.mass[above] * -np.expm1(epsilon - self.values[above])).sum())

    def divergence(self, order: float) -> float:
        """Rényi's, log E[e^((α − 1)·loss)]/(α − 1); far masses that Fourier's rounding left are no evidence."""
        kept = self.mass > 1e-13 * self.mass.max()
        terms = np.log(self.mass[kept]) + (order - 1) * self.values[kept]
        return float(np.logaddexp.reduce(terms) / (order - 1))


class Evidence(Protocol):
    """A draw on two neighbours."""

    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every outcome, on the one side and the other: the law, written apart from the code that draws."""

    def sampled(self, runs: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        """The loss of so many real draws on the one side, and on the other."""


@dataclass(frozen=True)
class Count:
    """A count with noise, whose exact value is `shift` larger on the one side."""

    mechanism: str
    scale: Fraction
    shift: int

    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        x = self._range()
        return self._weight(x - self.shift), self._weight(x)

    def sampled(self, runs: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        draws = [COUNTS[self.mechanism].draw(self.scale, runs, randomness) for _ in range(2)]
        return self._loss(draws[0] + self.shift), self._loss(draws[1])

    def _range(self) -> np.ndarray:
        reach = math.ceil((14 if self._normal else 70) * self._length) + 2 * abs(self.shift) + 2
        return np.arange(-reach, reach + 1)

    @property
    def _normal(self) -> bool:
        return self.mechanism == "discrete_gaussian"

    @property
    def _length(self) -> float:
        return math.sqrt(self.scale) if self._normal else float(self.scale)

    def _exponent(self, x: np.ndarray) -> np.ndarray:
        off = np.abs(x) / self._length
        return -(off**2) / 2 if self._normal else -off

    def _loss(self, x: np.ndarray) -> np.ndarray:
        return self._exponent(x - self.shift) - self._exponent(x)

    def _weight(self, x: np.ndarray) -> np.ndarray:
        wide = np.arange(-np.abs(x).max(), np.abs(x).max() + 1)
        weight: np.ndarray = np.exp(self._exponent(x)) / np.exp(self._exponent(wide)).sum()
        return weight


@dataclass(frozen=True)
class Vector:
    """Numbers with joint noise by the max norm, which are `shift` larger on the one side."""

    scale: Fraction
    shift: tuple[int, ...]

    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every vector in a box that holds practically all, in a few dimensions."""
        reach = math.ceil((30 + 3 * len(self.shift)) * float(self.scale)) + max(map(abs, self.shift))
        x = np.indices((2 * reach + 1,) * len(self.shift)).reshape(len(self.shift), -1) - reach
        one, other = (
            np.exp(-np.abs(x - np.array(shift)[:, None]).max(axis=0) / float(self.scale))
            for shift in (self.shift, [0] * len(self.shift))
        )
        return one / other.sum(), other / other.sum()

    def sampled(self, runs: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        draws = (MAX_NORM.draw(self.scale, len(self.shift), runs, randomness) for _ in range(2))
        one, other = next(draws) + np.array(self.shift), next(draws)
        first, second = (
            (np.abs(x).max(axis=1) - np.abs(x - np.array(self.shift)).max(axis=1)) / float(self.scale) for x in (one, other)
        )
        return first, second


@dataclass(frozen=True)
class Election:
    """An election by the scores of the one side, or of the other."""

    mechanism: str
    sensitivity: Fraction
    scale: Fraction
    one: tuple[float, ...]
    other: tuple[float, ...]

    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        rate = float(rate_of(self.sensitivity / self.scale, self.sensitivity))
        one, other = (election_chances(np.array(scores), rate, self.mechanism) for scores in (self.one, self.other))
        return one, other

    def sampled(self, runs: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        one, other = self.chances()
        loss, elect = np.log(one / other), ELECTIONS[self.mechanism].elect
        rate, everybody = self.sensitivity / self.scale, np.ones((runs, len(self.one)), bool)
        first, second = (
            loss[elect(np.tile(scores, (runs, 1)), everybody, rate, self.sensitivity, randomness)]
            for scores in (self.one, self.other)
        )
        return first, second


@dataclass(frozen=True)
class Reversed:
    """The same draw with the sides exchanged."""

    of: Evidence

    def chances(self) -> tuple[np.ndarray, np.ndarray]:
        one, other = self.of.chances()
        return other, one

    def sampled(self, runs: int, randomness: Randomness) -> tuple[np.ndarray, np.ndarray]:
        one, other = self.of.sampled(runs, randomness)
        return -other, -one


def price_of(draw: Evidence) -> Fraction:
    """What the draw costs by its theorem, from what it was given on both sides: d²/(2σ²), or an eighth of a squared range."""
    if isinstance(draw, Count) and draw.mechanism == "discrete_gaussian":
        return draw.shift**2 / (2 * draw.scale)
    if isinstance(draw, Election) and draw.mechanism == "exponential":
        moved = [
            math.floor(one / float(GRID)) - math.floor(other / float(GRID))
            for one, other in zip(draw.one, draw.other, strict=True)
        ]
        return ((max(moved) - min(moved)) * GRID * rate_of(draw.sensitivity / draw.scale, draw.sensitivity)) ** 2 / 8
    raise ValueError("no theorem for this draw")


# --- exact


def losses_of(draws: Sequence[Evidence], up: bool) -> Losses:
    """Of all draws together: their losses add up."""
    laws = (Losses.of(*draw.chances(), up) for draw in draws)
    return functools.reduce(Losses.__add__, laws)


def broken(losses: Losses, rho: Fraction, deltas: Sequence[float] = DELTAS) -> list[str]:
    """The promises of ρ that a law of the loss breaks, by their δ or order: an honest one, rounded up, breaks none."""
    found = [f"δ = {delta}" for delta in deltas if losses.delta(float(epsilon_of(rho, delta).value)) > delta]
    slack = losses.rounded * STEP
    return found + [f"α = {order}" for order in ORDERS if losses.divergence(order) > order * float(rho) + slack]


def keeps(draws: Sequence[Evidence], rho: Fraction) -> bool:
    """Whether all promises of ρ hold, in both directions."""
    return not any(broken(losses_of(side, up=True), rho) for side in (draws, [Reversed(draw) for draw in draws]))


def breaks(draws: Sequence[Evidence], rho: Fraction, deltas: Sequence[float] = (1e-9,)) -> bool:
    """Whether (ε(δ), δ) fails for certain at each of these δ, in one direction or the other."""
    sides = [losses_of(side, up=False) for side in (draws, [Reversed(draw) for draw in draws])]
    return all(any(side.delta(float(epsilon_of(rho, delta).value)) > delta for side in sides) for delta in deltas)


# --- sampled


def sampled_losses(draws: Sequence[Evidence], runs: int, seed: str) -> tuple[np.ndarray, np.ndarray]:
    """The loss of all draws together, in real runs on the one side and on the other."""
    randomness = SeededRandomness(("zcdp audit", seed))
    sums = np.zeros((2, runs))
    for draw in draws:
        sums += draw.sampled(runs, randomness)
    return sums[0], sums[1]


def epsilon_lower_bound_at(delta: float, one: np.ndarray, other: np.ndarray, alpha: float = ALPHA) -> float:
    """log((P(S) − δ)/P′(S)) for an event S that the loss exceeds a cut, chosen on one half of the runs and judged on the other."""
    half = len(one) // 2
    cuts = np.unique(
        np.quantile(np.concatenate([one[:half], other[:half]]), np.r_[np.linspace(0, 0.9, 30), 1 - np.geomspace(0.1, 1e-5, 60)])
    )
    chosen = cuts[np.argmax(_bounds(delta, one[:half], other[:half], cuts, alpha))]
    return float(_bounds(delta, one[half:], other[half:], np.array([chosen]), alpha)[0])


def _bounds(delta: float, one: np.ndarray, other: np.ndarray, cuts: np.ndarray, alpha: float) -> np.ndarray:
    """By Clopper and Pearson, for each cut; −∞ where nothing is shown."""
    hits = [(np.searchsorted(np.sort(-sample), -cuts, "right"), len(sample)) for sample in (one, other)]
    (a, n), (b, m) = hits
    low = np.where(a > 0, beta.ppf(alpha / 2, np.maximum(a, 1), n - a + 1), 0.0)
    high = np.where(b < m, beta.ppf(1 - alpha / 2, b + 1, np.maximum(m - b, 1)), 1.0)
    return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def excess(draws: Sequence[Evidence], rho: Fraction, runs: int, seed: str, deltas: Sequence[float] = LARGE_DELTAS) -> float:
    """By how much real runs show ε to exceed what ρ promises at δ, at the worst δ and in the worse direction; honest: ≤ 0."""
    one, other = sampled_losses(draws, runs, seed)
    return excess_of(one, other, rho, deltas)


def excess_of(one: np.ndarray, other: np.ndarray, rho: Fraction, deltas: Sequence[float] = LARGE_DELTAS) -> float:
    """The same for losses at hand."""
    alpha = ALPHA / (2 * len(deltas))
    return max(
        epsilon_lower_bound_at(delta, *side, alpha) - float(epsilon_of(rho, delta).value)
        for side in ((one, other), (-other, -one))
        for delta in deltas
    )


# --- controls


def with_less_noise(draw: Evidence, part: Fraction) -> Evidence:
    """Counts with σ times `part`."""
    return replace(draw, scale=draw.scale * part**2) if isinstance(draw, Count) else draw


def with_faster_election(draw: Evidence, times: int) -> Evidence:
    """Elections at so many times their rate."""
    return replace(draw, scale=draw.scale / times) if isinstance(draw, Election) else draw
