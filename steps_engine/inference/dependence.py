"""The posterior of what a table adds to its margins, with the shape of its noise: exact, one small problem per table.

An interaction is x = n·t·(M_a ⊗ M_b)z with z standard normal and t its strength. The columns of M_a are p_a times functions of
the categories, orthonormal under the margin p_a and of mean nought, so x adds nothing to the margins; t = 1 is dependence as
strong as the margins allow. Where categories are ordered, the functions are polynomials, and those of higher order may be
weaker, by a factor per order. With M = U·D·V′, noise that is alike in every direction stays so in U_a′xU_b, whose entries are
independent: given strength and factors, posterior and likelihood are those of single numbers. Strength and factors lie on a
grid, whose posterior is exact. Strengths are uniform: what noise hides is not taken for nought.

Where every axis has a trend (ordered categories, or two of them), the product of trends has a coefficient of its own, as large
as margins allow: it is not pulled to nought with all that surrounds it, as a fixed effect beside random ones. Given strength
and factors it is normal, and integrated out exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from steps_engine.inference.shrinking import standard_normal
from steps_engine.noise import Randomness, uniform

STRENGTHS = 2.0 ** np.arange(-9, 0.1, 0.5)
FACTORS = (1.0, 0.3, 0.1, 0.03)  # of one order of a polynomial to the next: 1 is no smoothness at all
ORDERS = 3  # polynomials beyond are alike
LEAST_TREND = 1e-9


@dataclass(frozen=True)
class Axis:
    """Directions of an attribute's categories, and how large functions along them are: one version per factor."""

    directions: tuple[np.ndarray, ...]
    sizes: tuple[np.ndarray, ...]
    trend: np.ndarray | None  # p times what is linear in the place of a category; of mean nought


def axis(shares: np.ndarray, ordered: bool) -> Axis:
    """Of an attribute with these shares of its categories."""
    size = len(shares)
    root = np.sqrt(np.maximum(shares, 1e-12))
    place = np.linspace(-1, 1, size)
    powers = [place**k for k in range(1, ORDERS + 1)] if ordered else []
    columns = np.stack([np.ones(size), *powers], axis=1) * root[:, None]
    functions = np.linalg.qr(np.concatenate([columns, np.eye(size)], axis=1))[0][:, 1:size] * root[:, None]
    order = np.minimum(np.arange(size - 1), ORDERS)
    found = [np.linalg.svd(functions * factor**order, full_matrices=False)[:2] for factor in (FACTORS if ordered else (1.0,))]
    return Axis(tuple(u for u, _ in found), tuple(d for _, d in found), _trend(shares, place) if ordered or size == 2 else None)


def _trend(shares: np.ndarray, place: np.ndarray) -> np.ndarray | None:
    """None where everybody is in one category."""
    even = shares / max(shares.sum(), 1e-300)
    away = even * (place - even @ place)
    length = float(np.sqrt(away @ away))
    return away / length if length > LEAST_TREND else None


def _along(table: np.ndarray, directions: Sequence[np.ndarray]) -> np.ndarray:
    """The table in other coordinates, axis by axis."""
    for matrix in directions:
        table = np.tensordot(table, matrix, axes=(0, 0))  # the axis goes to the end: after all of them the order is the old one
    return table


@dataclass(frozen=True)
class Dependence:
    """Posterior of one table's interaction: a mixture over a grid of Gaussians with independent coordinates."""

    axes: tuple[Axis, ...]
    values: tuple[np.ndarray, ...]  # per combination of factors: the residual in its coordinates
    signals: tuple[np.ndarray, ...]  # per combination: prior variances at strength 1
    noise: float
    chance: np.ndarray  # combinations × strengths
    trends: Trends | None

    def draw(self, randomness: Randomness) -> np.ndarray:
        """One plausible interaction."""
        picked = int(np.searchsorted(np.cumsum(self.chance), uniform(1, randomness)[0] * self.chance.sum()))
        which, strength = divmod(min(picked, self.chance.size - 1), self.chance.shape[1])
        value, gain, trend = self.values[which], self._gain(which, strength), np.float64(0.0)
        if self.trends is not None:
            slope = self.trends.slope[which, strength] + self.trends.error[which, strength] * standard_normal(1, randomness)[0]
            trend = slope * self.trends.along[which]
            value = value - trend
        # Drawn in the table's own coordinates: whichever way a machine turns the directions, the draw is the same.
        luck = _along(self._luck(randomness), _version(self.axes, which)[0])
        return self._back(which, trend + gain * value + np.sqrt(gain * self.noise) * luck)

    def _luck(self, randomness: Randomness) -> np.ndarray:
        shape = [len(each.directions[0]) for each in self.axes]
        return standard_normal(int(np.prod(shape)), randomness).reshape(shape)

    @property
    def mean(self) -> np.ndarray:
        found = np.zeros([len(each.directions[0]) for each in self.axes])
        for which, value in enumerate(self.values):
            mean = np.zeros(value.shape)
            for s, chance in enumerate(self.chance[which]):
                trend = self.trends.slope[which, s] * self.trends.along[which] if self.trends is not None else 0.0
                mean += chance * (trend + self._gain(which, s) * (value - trend))
            found = found + self._back(which, mean)
        return found

    def _gain(self, which: int, strength: int) -> np.ndarray:
        signal = STRENGTHS[strength] ** 2 * self.signals[which]
        gain: np.ndarray = signal / (signal + self.noise)
        return gain

    def _back(self, which: int, value: np.ndarray) -> np.ndarray:
        return _along(value, [u.T for u in _version(self.axes, which)[0]])


def _combinations(axes: Sequence[Axis]) -> int:
    return int(np.prod([len(each.sizes) for each in axes]))


def _version(axes: Sequence[Axis], which: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Directions and sizes of each axis in one combination of factors."""
    numbers = np.unravel_index(which, [len(each.sizes) for each in axes])
    chosen = list(zip(axes, numbers, strict=True))
    return [each.directions[k] for each, k in chosen], [each.sizes[k] for each, k in chosen]


@dataclass(frozen=True)
class Trends:
    """The product of trends in each combination's coordinates, and its coefficient given strength and factors."""

    along: tuple[np.ndarray, ...]
    slope: np.ndarray  # combinations × strengths
    error: np.ndarray


def dependence(residual: np.ndarray, noise: float, total: float, axes: tuple[Axis, ...]) -> Dependence:
    """Of a residual with noise of this variance in every direction."""
    values, signals, logs, trends, largest = [], [], [], [], 0.0
    each_way = [each.trend for each in axes if each.trend is not None]
    product = reduce(np.multiply.outer, each_way) if len(each_way) == len(axes) else None
    for which in range(_combinations(axes)):
        directions, sizes = _version(axes, which)
        value, signal = _along(residual, directions), total**2 * reduce(np.multiply.outer, sizes) ** 2
        both = noise + STRENGTHS[:, None] ** 2 * signal.ravel()
        logs.append(-(np.log(both) + value.ravel() ** 2 / both).sum(axis=1) / 2)
        values.append(value)
        signals.append(signal)
        if product is not None:
            along = _along(product, directions)
            largest = largest or max(float((along**2 * signal).sum()), 1e-300)  # of the first, where nothing is smooth
            sure = (along.ravel() ** 2 / both).sum(axis=1) + 1 / largest
            slope = (along.ravel() * value.ravel() / both).sum(axis=1) / sure
            logs[-1] += (slope**2 * sure - np.log(sure)) / 2  # the coefficient integrated out
            trends.append((along, slope, 1 / np.sqrt(sure)))
    log = np.stack(logs) + np.log(STRENGTHS)  # uniform, on a grid of logarithms
    chance = np.exp(log - log.max())
    along_all, slopes, errors = zip(*trends, strict=True) if trends else ((), (), ())
    found = Trends(tuple(along_all), np.stack(slopes), np.stack(errors)) if trends else None
    return Dependence(axes, tuple(values), tuple(signals), noise, chance / chance.sum(), found)
