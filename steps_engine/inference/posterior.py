"""The posterior of exact counts given noisy ones: which values the measurement and its law leave open.

Cells are exchangeable: x ~ g, y = x + noise of a known law. The prior g is estimated from the noisy counts themselves
(nonparametric maximum likelihood by EM: Kiefer and Wolfowitz 1956, Laird 1978), so a table that is mostly empty is
recognised as such and its zeros stay zeros; projection alone would leave noise in them. All of it is post-
processing of what was paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from steps_engine.accounting.mechanisms import CountNoise
from steps_engine.noise import Randomness, integers_below, uniform

NEAR, FAR = (
    24,
    34,
)  # in widths of the noise: noisy counts up to NEAR use the prior, which is fitted up to FAR; beyond, it would be flat
STEPS_PER_WIDTH = 8  # the grid is finer than the noise
ROUNDS = 200  # EM from half a flat start and half an atom at zero; stopping early keeps the prior smooth


def flat_weight(cells: int) -> float:
    """Weight of a flat prior beside the cells': a handful of cells must not look certain; many speak for themselves."""
    return 20 / (1 + cells / 100)


@dataclass(frozen=True)
class Prior:
    """Posterior of a cell for every binned noisy count: rows of probabilities over bins of exact counts."""

    noise: CountNoise
    lowest: int  # of the binned noisy counts
    step: int  # width of a bin; bin 0 of the exact counts is the single value 0
    cumulative: np.ndarray  # noisy bins × exact bins
    mean: np.ndarray  # per noisy bin
    variance: np.ndarray

    @classmethod
    def fit(cls, noisy: np.ndarray, noise: CountNoise, unseen: int = 0, threshold: int = 0) -> Prior:
        """From the noisy counts at hand; `unseen` more are known only to have stayed below a threshold."""
        step = max(1, math.floor(noise.width / STEPS_PER_WIDTH))
        seen = noisy[noisy <= math.floor(FAR * noise.width)]
        lowest, highest = int(seen.min(initial=0)), max(int(seen.max(initial=0)), 1)
        cells = np.bincount((seen - lowest) // step, minlength=(highest - lowest) // step + 1)
        exact = np.concatenate([[0.0], 1 + step * np.arange(-(-highest // step)) + (step - 1) / 2])
        middle = lowest + step * np.arange(len(cells)) + (step - 1) / 2
        likelihood = step * noise.probability(middle[:, None] - exact)  # about a bin's part of the noise's law
        if unseen:
            likelihood = np.vstack([likelihood, noise.chance_below(threshold - exact)])
            cells = np.append(cells, unseen)
        flat = flat_weight(len(noisy) + unseen) / len(exact)
        prior = np.full(len(exact), 0.5 / len(exact))
        prior[0] += 0.5
        for _ in range(ROUNDS):
            posterior = likelihood * prior
            prior = (cells / posterior.sum(axis=1)) @ posterior + flat
            prior /= prior.sum()
        posterior = (likelihood * prior)[: len(middle)]
        posterior /= posterior.sum(axis=1, keepdims=True)
        mean = posterior @ exact
        variance = np.maximum(posterior @ exact**2 - mean**2, 0) + (step**2 - 1) / 12 * (1 - posterior[:, 0])
        return cls(noise, lowest, step, np.cumsum(posterior, axis=1), mean, variance)

    def near(self, noisy: np.ndarray) -> np.ndarray:
        return np.flatnonzero(noisy <= math.floor(NEAR * self.noise.width))

    def variances(self, noisy: np.ndarray) -> np.ndarray:
        result, near = np.full(len(noisy), self.noise.variance), self.near(noisy)
        result[near] = self.variance[(noisy[near] - self.lowest) // self.step]
        return result

    def means(self, noisy: np.ndarray) -> np.ndarray:
        result, near = noisy.astype(float), self.near(noisy)
        result[near] = self.mean[(noisy[near] - self.lowest) // self.step]
        return result

    def draw(self, noisy: np.ndarray, randomness: Randomness) -> np.ndarray:
        """One plausible exact count per cell. Where the prior is flat: the noisy count minus fresh noise."""
        near = self.near(noisy)
        far = np.ones(len(noisy), dtype=bool)
        far[near] = False
        result = np.zeros(len(noisy), dtype=np.int64)
        result[far] = noisy[far] - self.noise.draw(int(far.sum()), randomness)
        row = (noisy[near] - self.lowest) // self.step
        ladder = (self.cumulative / self.cumulative[:, -1:] + np.arange(len(self.cumulative))[:, None]).ravel()
        width = self.cumulative.shape[1]
        rung = np.searchsorted(ladder, row + uniform(len(near), randomness), side="right")
        bin_ = np.minimum(rung - row * width, width - 1)
        within = integers_below(self.step, len(near), randomness) if self.step > 1 else 0
        result[near] = np.where(bin_ > 0, 1 + (bin_ - 1) * self.step + within, 0)
        return result
