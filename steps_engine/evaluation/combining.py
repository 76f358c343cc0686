"""One inference from m synthetic sets, and how well its intervals agree with the original's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from schemas.errors import SpecError

Sets = Literal["split", "shared"]


@dataclass(frozen=True)
class Combined:
    """q̄, T and ν per coefficient. `between` is False when one set only leaves the variance between sets unknown."""

    value: np.ndarray
    variance: np.ndarray
    freedom: np.ndarray
    between: bool


def combine(values: np.ndarray, variances: np.ndarray, sets: Sets, sampling: np.ndarray | None = None) -> Combined:
    """Combining rules for m sets × k coefficients, with W̄ the mean variance and B the variance between sets.

    split (each set has noise of its own): T = W̄ + B/m. shared (plausible tables behind one measurement):
    T = W̄ + (1 + 1/m)·B; with rows sampled, V_s = `sampling` is taken out: T = W̄ + max(0, (1 + 1/m)(B − V_s) + V_s/m).
    Satterthwaite: ν = T² / ((c·B)²/(m − 1) + V_s²/m) with c the factor of B, at least m − 1; without V_s this is the usual
    (m − 1)(1 + W̄/(c·B))² (Rubin 1987; Liu 2016 for split).
    """
    if sets not in ("split", "shared"):
        raise SpecError(f"sets are combined as split or shared, not {sets!r}")
    if sampling is not None and sets == "split":
        raise SpecError("with split sets B already holds the variance of sampled rows; leave `sampling` out")
    m = len(values)
    within, value = variances.mean(axis=0), values.mean(axis=0)
    if m == 1:
        return Combined(value, within, np.full(len(value), np.inf), between=False)
    between = values.var(axis=0, ddof=1)
    factor = 1 / m if sets == "split" else 1 + 1 / m
    sampled = np.zeros_like(between) if sampling is None else sampling
    variance = within + np.maximum(0.0, factor * (between - sampled) + sampled / m)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / ((factor * between) ** 2 / (m - 1) + sampled**2 / m)
    freedom = np.where(variance == 0, np.inf, freedom)  # a number that never varies
    return Combined(value, variance, np.maximum(freedom, m - 1), between=True)


def variance_of_shares(counts: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """p(1 − p)/n of each cell in every set of n rows. A cell that is empty there, though it need not be, counts half a row.

    >>> variance_of_shares(np.array([[4, 4, 0, 0]]), np.array([True, True, True, False])) * 8
    array([[0.25      , 0.25      , 0.05859375, 0.        ]])
    """
    rows = counts.sum(axis=1, keepdims=True)
    share = np.where(possible, np.maximum(counts, 0.5), 0.0) / rows
    return np.asarray(share * (1 - share) / rows)


def sampling_variance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """V_s from two sets of rows drawn from each table: the mean of (q − q')² / 2.

    >>> sampling_variance(np.array([[1.0], [2.0]]), np.array([[3.0], [2.0]])).tolist()
    [1.0]
    """
    return np.asarray(((first - second) ** 2).mean(axis=0) / 2)


def interval(
    value: np.ndarray, variance: np.ndarray, freedom: np.ndarray | float, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """value ∓ t_ν·√variance."""
    reach = stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance)
    return value - reach, value + reach


def overlap(low: ArrayLike, high: ArrayLike, other_low: ArrayLike, other_high: ArrayLike) -> np.ndarray:
    """Mean share of each interval that the other covers (Karr et al. 2006); 0 when they do not meet.

    >>> overlap(0.0, 2.0, 1.0, 3.0).item(), overlap(0.0, 1.0, 0.0, 1.0).item(), overlap(0.0, 1.0, 2.0, 3.0).item()
    (0.5, 1.0, 0.0)
    """
    common = np.minimum(high, other_high) - np.maximum(low, other_low)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (common / np.subtract(high, low) + common / np.subtract(other_high, other_low)) / 2
    share = np.where((common == 0) & np.isnan(share), 1.0, share)  # twice the same point
    return np.where(common < 0, 0.0, share)
