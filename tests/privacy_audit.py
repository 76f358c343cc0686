"""An empirical lower bound on ε: if a mechanism leaks more than it claims, enough runs on two neighbours show it.

The event is chosen on one half of the runs and judged on the other with Clopper–Pearson bounds, so that at confidence
1 − alpha an honest mechanism is not accused. (Jagielski et al. 2020 describe the approach.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy.stats import beta

ALPHA = 1e-4


def epsilon_lower_bound(with_record: np.ndarray, without: np.ndarray, alpha: float = ALPHA) -> float:
    """ln(low/high) for the best threshold event on a statistic, in either direction and either order of the neighbours."""
    half = len(with_record) // 2
    best = max(
        (_gap(one[:half], other[:half], event), index, name)
        for index, (one, other) in enumerate(((with_record, without), (without, with_record)))
        for name, event in _events(with_record[:half], without[:half]).items()
    )
    one, other = ((with_record, without), (without, with_record))[best[1]]
    event = _events(with_record[:half], without[:half])[best[2]]
    hits, trials = int(event(one[half:]).sum()), len(one) - half
    low = beta.ppf(alpha / 4, hits, trials - hits + 1) if hits else 0.0
    hits = int(event(other[half:]).sum())
    high = beta.ppf(1 - alpha / 4, hits + 1, trials - hits) if hits < trials else 1.0
    return float(np.log(low / high)) if low > 0 else float("-inf")


def _events(one: np.ndarray, other: np.ndarray) -> dict[str, Callable]:
    cuts = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 41)))
    events = {f"at least {cut}": (lambda x, cut=cut: x >= cut) for cut in cuts}
    return events | {f"at most {cut}": (lambda x, cut=cut: x <= cut) for cut in cuts}


def _gap(one: np.ndarray, other: np.ndarray, event: Callable) -> float:
    return float(np.log((event(one).sum() + 1) / (event(other).sum() + 5)))


def election_chances(scores: np.ndarray, rate: float, mechanism: str) -> np.ndarray:
    """The exact law of the winner among few candidates, by enumeration of all orders or by its formula."""
    chances = np.exp(-rate * (scores.max() - scores))
    if mechanism == "exponential":
        return chances / chances.sum()
    won = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        nobody = 1 / math.factorial(len(scores))
        for candidate in order:
            won[candidate] += nobody * chances[candidate]
            nobody *= 1 - chances[candidate]
    return won
