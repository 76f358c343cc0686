"""From noisy contrasts to shares of every measured table: margins, then pairs, shrunk towards independence by their noise.

All of it is post-processing. For several sets from one measurement, each set gets a draw of the posterior in place of its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steps_engine.accounting.mechanisms import CountNoise, contrast_noise
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import most_rows
from steps_engine.inference.contrasts import interaction, residual, residual_variance
from steps_engine.inference.one_way import smoothed
from steps_engine.inference.shrinking import Shrunk, shrunk, standard_normal
from steps_engine.methods.pairs.structure import Margins, Pair, Structure, pair_draws
from steps_engine.noise import Randomness

PRIOR_CELLS = 10.0  # all pairs together speak to each like so many of its cells
LEAST_VARIANCE = 1e-9
RAKINGS = 30


@dataclass(frozen=True)
class Estimate:
    """Shares of the margins (of categories, of groups) and of every measured pair, and the variance of a pair's counts."""

    total: float
    fine: list[np.ndarray]
    coarse: list[np.ndarray]
    tables: list[np.ndarray]
    variances: list[np.ndarray]

    def information(self, pairs: tuple[Pair, ...]) -> np.ndarray:
        """Of each pair how much one attribute tells of the other, in nats."""
        found = []
        for (a, b), table in zip(pairs, self.tables, strict=True):
            even = np.outer(self.coarse[a], self.coarse[b])
            found.append(float((table * np.log(np.maximum(table, 1e-300) / np.maximum(even, 1e-300))).sum()))
        return np.array(found)


def estimate(structure: Structure, noisy: list[np.ndarray], measurement: int, randomness: Randomness | None) -> Estimate:
    """Of one measurement; with randomness a draw of what it leaves open."""
    total = _total(structure, measurement, randomness)
    fine = [_margin(structure, j, measurement, total, randomness) for j in range(len(structure.sizes))]
    coarse = [np.bincount(group, weights=shares) for group, shares in zip(structure.group, fine, strict=True)]
    if not structure.pairs:
        return Estimate(total, fine, coarse, [], [])
    masks = _masks(structure)
    independent = [
        raked(np.outer(coarse[a], coarse[b]), coarse[a], coarse[b], mask)
        for (a, b), mask in zip(structure.pairs, masks, strict=True)
    ]
    found = _interactions(structure, noisy, measurement, total, coarse, independent)
    ends = np.cumsum([table.size for table in independent])[:-1]
    values = np.split(found.mean if randomness is None else found.draw(randomness), ends)
    tables = [
        raked(even + value.reshape(even.shape) / total, coarse[a], coarse[b], mask)
        for (a, b), even, value, mask in zip(structure.pairs, independent, values, masks, strict=True)
    ]
    return Estimate(total, fine, coarse, tables, np.split(found.variance, ends))


def _total(structure: Structure, measurement: int, randomness: Randomness | None) -> float:
    margins = structure.margins
    total = float(margins.total[measurement])
    if randomness is not None:
        total += np.sqrt(margins.total_variance) * float(standard_normal(1, randomness)[0])
    return float(np.clip(total, 1.0, most_rows(margins.domain)))


def _margin(structure: Structure, attribute: int, measurement: int, total: float, randomness: Randomness | None) -> np.ndarray:
    """Shares of one attribute's categories; drawn: the measurement less fresh noise, which is the posterior of a flat prior."""
    margins = structure.margins
    noisy, variance = margins.estimates(attribute)[measurement], margins.variance(attribute)
    noisy = noisy + (total - noisy.sum()) / len(noisy)
    if randomness is not None and len(noisy) > 1:
        fresh = np.sqrt(variance / (1 - 1 / len(noisy))) * standard_normal(len(noisy), randomness)
        noisy = noisy - (fresh - fresh.mean())
    shares: np.ndarray = smoothed(noisy, max(variance, LEAST_VARIANCE), total) / total
    return shares


def _interactions(
    structure: Structure,
    noisy: list[np.ndarray],
    measurement: int,
    total: float,
    coarse: list[np.ndarray],
    independent: list[np.ndarray],
) -> Shrunk:
    """Posterior of what each pair adds to independence under the rules."""
    margins = structure.margins
    values, variances, sizes, freedom = [], [], [], []
    noises = pair_noises(structure)
    for (a, b), measured, even, noise in zip(structure.pairs, noisy, independent, noises, strict=True):
        shape = even.shape
        found = residual(measured[measurement], shape, margins.centred) - total * interaction(even)
        values.append(found.ravel())
        variances.append(np.full(even.size, max(noise.variance * residual_variance(shape, margins.centred), LEAST_VARIANCE)))
        spread = np.outer(coarse[a] * (1 - coarse[a]), coarse[b] * (1 - coarse[b]))
        sizes.append(total * np.sqrt(spread + 1e-12).ravel())
        freedom.append(np.full(even.size, (1 - 1 / shape[0]) * (1 - 1 / shape[1])))
    table = np.repeat(np.arange(len(values)), [len(value) for value in values])
    value, variance, size, weight = map(np.concatenate, (values, variances, sizes, freedom))
    return shrunk(value, variance, size, table, weight, PRIOR_CELLS)


def pair_noises(structure: Structure) -> list[CountNoise]:
    """The noise in the contrast of every pair."""
    draws = pair_draws(structure.margins.plan, structure.margins.domain, structure.pairs)
    return [contrast_noise(of_pair[0], structure.shape(pair)) for pair, of_pair in zip(structure.pairs, draws, strict=True)]


def _masks(structure: Structure) -> list[np.ndarray | None]:
    """Of each pair which combinations have an allowed completion; None: all. Attributes that rules tie are not grouped."""
    components = Space(structure.margins.domain).components
    found: list[np.ndarray | None] = []
    for a, b in structure.pairs:
        mask = None
        for component in components:
            if a in component.attributes and b in component.attributes:
                others = tuple(axis for axis, j in enumerate(component.attributes) if j not in (a, b))
                mask = component.completable(others)
        found.append(mask)
    return found


def raked(table: np.ndarray, rows: np.ndarray, columns: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The table cut at nought, made to have these margins as far as the allowed cells can."""
    table = np.maximum(table, 0) + 1e-9 * np.outer(rows, columns)
    if allowed is not None:
        table = table * allowed
    for _ in range(RAKINGS):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-300))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-300))
    total = table.sum()
    return table / total if total > 0 else table


def one_way_with_errors(margins: Margins, attribute: int) -> tuple[np.ndarray, np.ndarray]:
    """A margin as measured, mean of the measurements, with its standard errors: unbiased, so that it may be below nought."""
    measured, size = margins.estimates(attribute), margins.domain.sizes[attribute]
    variance = margins.variance(attribute) + margins.total_variance / size**2
    return measured.mean(axis=0), np.full(size, np.sqrt(variance / len(measured)))
