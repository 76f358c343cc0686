"""Empirical Bayes: how much of what was measured is signal, learnt from all tables that were measured.

value = x + noise, x ~ Σ_g π_g·N(0, (SPREAD_g·size)²): the interaction of two attributes is nought or of any size up to the
largest that their margins allow. π is each table's own, drawn towards that of all tables together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from steps_engine.noise import Randomness, discrete_gaussian

SPREAD = np.concatenate([[0.0], 2.0 ** np.arange(-7, 2.01, 0.5)])  # in sizes: none, then from a hundredth to four times
ROUNDS = 60
MOST_STRETCHED = 4.0
_FINE = Fraction(2**40)  # a discrete Gaussian of this variance, over 2²⁰, is a Gaussian for every purpose after the noise


@dataclass(frozen=True)
class Shrunk:
    """Posterior of each value: a mixture of Gaussians."""

    value: np.ndarray
    noise: np.ndarray
    part: np.ndarray  # values × components: how likely each is
    gain: np.ndarray  # values × components: the part of the value that is signal

    @property
    def mean(self) -> np.ndarray:
        mean: np.ndarray = (self.part * self.gain).sum(axis=1) * self.value
        return mean

    @property
    def variance(self) -> np.ndarray:
        second = (self.part * (self.gain * self.noise[:, None] + (self.gain * self.value[:, None]) ** 2)).sum(axis=1)
        variance: np.ndarray = np.maximum(second - self.mean**2, 0)
        return variance

    def as_spread(self, table: np.ndarray) -> np.ndarray:
        """Means, of each table stretched until they scatter as its values are thought to (Louis 1984); means scatter less."""
        mean, variance = self.mean, self.variance
        known, held = np.bincount(table, mean**2), np.bincount(table, mean**2 + variance)
        stretched: np.ndarray = mean * np.sqrt(held / np.maximum(known, 1e-300)).clip(max=MOST_STRETCHED)[table]
        return stretched


def shrunk(
    value: np.ndarray, noise: np.ndarray, size: np.ndarray, table: np.ndarray, weight: np.ndarray, prior: float
) -> Shrunk:
    """By EM. A value counts `weight` (dimensions per cell); all tables together speak to each like `prior` of its cells."""
    tables, both = int(table.max(initial=0)) + 1, noise[:, None] + (SPREAD * size[:, None]) ** 2
    log = -(np.log(both) + value[:, None] ** 2 / both) / 2
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    common = np.full(len(SPREAD), 1 / len(SPREAD))
    mixture = np.tile(common, (tables, 1))
    for _ in range(ROUNDS):
        part = likelihood * mixture[table]
        part *= (weight / part.sum(axis=1))[:, None]
        mixture = np.stack([np.bincount(table, column, tables) for column in part.T], axis=1) + prior * common
        mixture /= mixture.sum(axis=1, keepdims=True)
        common = mixture.mean(axis=0)
    part = likelihood * mixture[table]
    part /= part.sum(axis=1, keepdims=True)
    return Shrunk(value, noise, part, 1 - noise[:, None] / both)


def standard_normal(size: int, randomness: Randomness) -> np.ndarray:
    normal: np.ndarray = discrete_gaussian(_FINE, size, randomness) / 2.0**20
    return normal
