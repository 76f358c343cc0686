"""Is the noise as large as it is said to be? What was measured more than once tells: its contrasts are noise and nothing else.

A parent less its children, one measurement less another: exact counts cancel, and the law of what is left is known. Of every
contrast the chances p = P(|R| ≤ |r|) and P(|R| ≥ |r|) are computed under the law that the plan names. Small chances of the
first kind speak of too little noise, of the second kind of too much. Under that law P(p ≤ u) ≤ u, so that −2 Σ log p of k
independent contrasts is at most a χ² with 2k degrees of freedom (Fisher 1925). Small noises are often exactly nought; there
Chernoff's bound P(−Σ log p ≥ x) ≤ exp(−tx) Π E[p^−t], for any t, says more. Both hold at any level and for any k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy import special

from steps_engine.accounting.mechanisms import COUNTS, CountNoise

LEVEL = 1e-9  # the chance that all tests of a sound release together raise a false alarm
STEPS = 256  # of the grid per standard deviation of a contrast
COARSEST = 0.25  # steps of the grid per scale of a noise: beyond, a contrast has thousands of noises and is a Gaussian
REACH = 64  # in standard deviations: what lies beyond has no chance that double precision knows
LEAST = 1e-15  # chances below are taken for this

POWERS = np.concatenate([np.linspace(0, 0.95, 20), 2.0 ** np.arange(0, 6)])  # t of Chernoff's bound

Laws = tuple[tuple[CountNoise, int], ...]  # a contrast is a sum of so many independent noises of each
Named = tuple[tuple[str, Fraction, int], ...]  # the same by mechanism and scale


@dataclass(frozen=True)
class Contrasts:
    """Independent whole numbers of one law that are noise alone, and what was measured that they are made of."""

    values: np.ndarray
    laws: Laws
    of: tuple[str, ...]


Groups = dict[str, list[Contrasts]]  # by what they compare


@dataclass(frozen=True)
class NoiseTest:
    """How many contrasts there were, what does not hold, and what was measured once only: its noise cannot be tested."""

    contrasts: int
    problems: tuple[str, ...]
    untested: tuple[str, ...]


def noise_test(families: Sequence[Groups], measured: Sequence[str]) -> NoiseTest:
    """Contrasts of one family are independent: they are tested by group, and all together."""
    tests = [(name, group) for family in families for name, group in family.items() if _number(group)]
    tests += [("all together", [part for group in f.values() for part in group]) for f in families if len(f) > 1]
    problems = [sentence for name, group in tests for sentence in _problems(name, group, LEVEL / (2 * len(tests)))]
    told = {name for _, group in tests for part in group if len(part.values) for name in part.of}
    most = max((sum(map(_number, family.values())) for family in families), default=0)
    return NoiseTest(most, tuple(problems), tuple(name for name in measured if name not in told))


def _number(group: Sequence[Contrasts]) -> int:
    return sum(len(part.values) for part in group)


def _problems(name: str, group: Sequence[Contrasts], level: float) -> list[str]:
    """Both tests of one group. A part without values says nothing (of coarse laws its moments would be 0·∞, no number)."""
    number, within, beyond, moments = _number(group), 0.0, 0.0, np.zeros(len(POWERS))
    if not number:
        return []
    for part in (each for each in group if len(each.values)):
        small, large = chances(np.abs(part.values), part.laws)
        within -= float(np.log(small).sum())
        beyond -= float(np.log(large).sum())
        moments += len(part.values) * _log_moments(_names(part.laws))
    said = f"{name}: {number:,} contrasts of noise alone are"
    verdict = f"than the plan's noise lets them be by a chance of {level:.0e}"
    found = [
        (float(np.exp(np.min(moments - POWERS * within))), f"{said} smaller {verdict}: noise is missing"),
        (float(special.gammaincc(number, beyond)), f"{said} larger {verdict}"),
    ]
    return [sentence for chance, sentence in found if not chance >= level]  # what is no number is no pass


def chances(sizes: np.ndarray, laws: Laws) -> tuple[np.ndarray, np.ndarray]:
    """P(|R| ≤ size) and P(|R| ≥ size) of each whole number, R being a sum of noises."""
    step, inside, outside = _law(_names(laws))
    knots = step * (np.arange(len(inside)) + 0.5)  # a step's probability is spread evenly over it; steps of 1 are exact
    small = np.interp(sizes + 0.5, np.append(0.0, knots), np.append(0.0, inside))
    large = np.interp(sizes - 0.5, np.append(0.0, knots), np.append(1.0, outside), right=0.0)
    return np.maximum(small, LEAST), np.where(sizes == 0, 1.0, np.maximum(large, LEAST))


def _names(laws: Laws) -> Named:
    return tuple((noise.mechanism.name, noise.scale, times) for noise, times in laws)


@lru_cache(maxsize=256)
def _log_moments(named: Named) -> np.ndarray:
    """log E[p^−t] of p = P(|R| ≤ |r|) for every power t: a sum where steps are single numbers, at most 1/(1 − t) anyway."""
    step, inside, outside = _law(named)
    moments = np.where(POWERS < 1, 1 / np.where(POWERS < 1, 1 - POWERS, 1), np.inf)
    if step == 1:
        mass = -np.diff(outside, prepend=1.0)
        kept = mass > 0
        moments = np.minimum(moments, (mass[kept] * inside[kept] ** -POWERS[:, None]).sum(axis=1) + outside[-1])
    return np.log(moments)


@lru_cache(maxsize=256)
def _law(named: Named) -> tuple[int, np.ndarray, np.ndarray]:
    """The grid's step, and at the end of every step P(|R| within) and P(|R| beyond)."""
    laws = [(CountNoise(COUNTS[name], scale), times) for name, scale, times in named]
    deviation = math.sqrt(sum(times * noise.variance for noise, times in laws))
    step = max(1, math.floor(deviation / STEPS))
    half = 1 << max(4, math.ceil(math.log2(max(REACH * deviation / step, 1))))
    places = step * np.fft.ifftshift(np.arange(-half, half)).astype(float)
    if step > 1 and step > COARSEST * min(noise.length for noise, _ in laws):
        ends = step * (np.arange(half) + 0.5) / deviation / math.sqrt(2)
        return step, special.erf(ends), special.erfc(ends)
    spectrum = np.ones(half + 1, dtype=complex)
    for noise, times in laws:
        probability = noise.probability(places)
        spectrum *= np.fft.rfft(probability / probability.sum()) ** times
    law = np.maximum(np.fft.irfft(spectrum, 2 * half), 0.0)
    either = law[:half] + np.append(0.0, law[:half:-1])[:half]  # of a size: both signs
    inside = np.minimum(np.cumsum(either), 1.0)
    outside = np.append(np.cumsum(either[:0:-1])[::-1], 0.0)
    return step, inside, outside
