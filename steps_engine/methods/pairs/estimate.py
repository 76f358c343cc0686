"""From noisy contrasts to shares of every measured table: margins, then pairs, then larger tables, by what their noise leaves.

All of it is post-processing. One set gets estimates: pairs are shrunk towards independence cell by cell. For several sets from
one measurement, each set gets a draw of the posterior: estimates alike in all sets would hide what the noise leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np

from schemas.spec.attributes import Attribute
from steps_engine.accounting.mechanisms import contrast_noise, contrast_variance
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import most_rows
from steps_engine.inference.contrasts import interaction, is_counted
from steps_engine.inference.dependence import Axis, axis, dependence
from steps_engine.inference.evidence import Said, interactions, part
from steps_engine.inference.one_way import smoothed
from steps_engine.inference.posterior import Prior
from steps_engine.inference.raking import Margin, raked
from steps_engine.inference.shrinking import Shrunk, shrunk, standard_normal
from steps_engine.methods.pairs.structure import Margins, Structure, Table
from steps_engine.noise import Randomness

PRIOR_CELLS = 10.0  # all pairs together speak to each like so many of its cells
LEAST_SHARE = 1e-12  # of a cell in which others imply nobody


@dataclass(frozen=True)
class Estimate:
    """Shares of the margins (of categories, of groups) and of every measured table, and the variance of a table's counts.

    `pairs` has the shares of every pair that some table tells of.
    """

    total: float
    fine: list[np.ndarray]
    coarse: list[np.ndarray]
    tables: list[np.ndarray]
    variances: list[np.ndarray]
    pairs: dict[Table, np.ndarray]

    def information(self, tables: tuple[Table, ...]) -> np.ndarray:
        """Of each pair how much one attribute tells of the other, in nats; 0 for larger tables."""
        found = np.zeros(len(tables))
        for i, of in enumerate(tables):
            if len(of) == 2:
                table, even = self.pairs[of], np.outer(self.coarse[of[0]], self.coarse[of[1]])
                found[i] = (table * np.log(np.maximum(table, 1e-300) / np.maximum(even, 1e-300))).sum()
        return np.round(found, 9)  # equal ones are equal on every machine, so that their order is


@dataclass(frozen=True)
class _Known:
    """One measurement, and what is settled of it: the number of rows, shares of margins, and what may be of each subset."""

    structure: Structure
    said: dict[Table, Said]
    total: float
    coarse: list[np.ndarray]

    def axes(self, subset: Table) -> tuple[Axis, ...]:
        attributes = self.structure.margins.domain.attributes
        return tuple(axis(self.coarse[j], is_ordered(attributes[j])) for j in subset)

    def excess(self, subset: Table, even: np.ndarray) -> np.ndarray:
        """What was measured beyond what smaller tables imply."""
        return self.said[subset].value - self.total * interaction(even)


def estimate(
    structure: Structure,
    noisy: list[np.ndarray],
    measurement: int,
    randomness: Randomness | None,
    implied: Mapping[Table, np.ndarray] = MappingProxyType({}),
) -> Estimate:
    """Of one measurement; with randomness a draw of what it leaves open. Pairs are shrunk towards independence, or towards
    what others imply of them.
    """
    said = told(structure, noisy, measurement)
    total = _total(structure, said[()], randomness)
    fine = [_margin(structure, said, j, total, randomness) for j in range(len(structure.sizes))]
    coarse = [np.bincount(group, weights=shares) for group, shares in zip(structure.group, fine, strict=True)]
    known = _Known(structure, said, total, coarse)
    pairs, variances = _pairs(known, implied) if randomness is None else _drawn_pairs(known, randomness)
    shares = dict(pairs)
    for which in sorted(range(len(structure.tables)), key=lambda i: len(structure.tables[i])):
        if (of := structure.tables[which]) not in pairs:
            find = _counted if is_counted(of, structure.margins.centred) else _larger
            shares[of], variances[of] = find(known, shares, which, noisy[which][measurement], randomness)
    tables = structure.tables
    return Estimate(total, fine, coarse, [shares[of] for of in tables], [variances[of] for of in tables], pairs)


def evidence(structure: Structure, noisy: list[np.ndarray], measurement: int) -> dict[Table, Said]:
    """Of every attribute and every pair what one measurement says of their interaction."""
    every = told(structure, noisy, measurement)
    return {subset: said for subset, said in every.items() if 1 <= len(subset) <= 2}


def told(structure: Structure, noisy: list[np.ndarray], measurement: int | None = None) -> dict[Table, Said]:
    """Of every set of attributes what was measured of their part, by all tables that tell of it; () is the number of rows.

    By one measurement, or by the mean of all.
    """
    margins, m = structure.margins, len(structure.margins.total) if measurement is None else 1

    def of(values: np.ndarray) -> np.ndarray:
        found: np.ndarray = values.mean(axis=0) if measurement is None else values[measurement]
        return found

    total = Said(of(margins.total.astype(float)), margins.total_variance / m)
    found: dict[Table, Said] = {}
    for j, contrasts in enumerate(margins.contrasts):
        if (size := margins.domain.sizes[j]) > 1:
            variance = contrast_variance(margins.draws[margins.domain.names[j],][0], (size,))
            for axes, said in interactions(of(contrasts), (size,), variance / m, margins.centred, range(2)):
                of_table = (j,) * len(axes)
                found[of_table] = said.joined(found.get(of_table))
    for table, measured, variance in zip(structure.measured, noisy, structure.variances, strict=True):
        every = range(len(table) + 1)
        for axes, said in interactions(of(measured), structure.shape(table), variance / m, margins.centred, every):
            subset = tuple(table[k] for k in axes)
            if len(subset) != 1 or structure.sizes[subset[0]] == margins.domain.sizes[subset[0]]:
                found[subset] = said.joined(found.get(subset))
    found[()] = total if total.variance == 0 else total.joined(found.get(()))
    return found


def is_ordered(attribute: Attribute) -> bool:
    """Whether neighbouring categories are alike: numbers, dates and ranks, where none stands for missing values or a spike."""
    return attribute.kind != "categorical" and attribute.missing_code is None and not getattr(attribute, "at", ())


def _total(structure: Structure, rows: Said, randomness: Randomness | None) -> float:
    """The number of rows, by its own noisy count and by the sums of all tables that are counted."""
    total = float(rows.value)
    if randomness is not None:
        total += np.sqrt(rows.variance) * float(standard_normal(1, randomness)[0])
    return float(np.clip(total, 1.0, most_rows(structure.margins.domain)))


def _margin(
    structure: Structure, said: dict[Table, Said], attribute: int, total: float, randomness: Randomness | None
) -> np.ndarray:
    """Shares of one attribute's categories; drawn: the measurement less fresh noise, which is the posterior of a flat prior."""
    size = structure.margins.domain.sizes[attribute]
    if size == 1:
        return np.ones(1)
    noisy, variance = said[(attribute,)].value + total / size, said[(attribute,)].variance
    if randomness is not None:
        fresh = np.sqrt(variance) * standard_normal(size, randomness)
        noisy = noisy - (fresh - fresh.mean())
    shares: np.ndarray = smoothed(noisy, variance * (1 - 1 / size), total) / total
    return shares


@dataclass(frozen=True)
class _Pair:
    """A pair beside its margins: what rules allow of it, and what it would be if nothing had been measured of it."""

    of: Table
    margins: list[Margin]
    mask: np.ndarray | None
    even: np.ndarray

    def with_(self, added: np.ndarray, total: float) -> np.ndarray:
        """Shares, where so many rows are added to what is expected."""
        return raked(self.even + added.reshape(self.even.shape) / total, self.margins, self.mask)


def _expected(known: _Known, implied: Mapping[Table, np.ndarray]) -> list[_Pair]:
    """Every pair that was measured: by independence, or as others imply it."""
    found = []
    for a, b in (subset for subset in known.said if len(subset) == 2):
        margins: list[Margin] = [((0,), known.coarse[a]), ((1,), known.coarse[b])]
        mask, even = mask_of(known.structure, (a, b)), implied.get((a, b))
        even = np.outer(known.coarse[a], known.coarse[b]) if even is None else even + LEAST_SHARE
        found.append(_Pair((a, b), margins, mask, raked(even, margins, mask)))
    return found


def _pairs(known: _Known, implied: Mapping[Table, np.ndarray]) -> tuple[dict[Table, np.ndarray], dict[Table, np.ndarray]]:
    """Of every pair that was measured its shares, and the variance of its counts.

    Means alone would make every pair too weak beside independence: they are stretched. What others imply is not too weak.
    """
    pairs = _expected(known, implied)
    if not pairs:
        return {}, {}
    found, cells = _interactions(known, pairs), [pair.even.size for pair in pairs]
    ends, of_table = np.cumsum(cells)[:-1], np.repeat(np.arange(len(cells)), cells)
    means, stretched, variances = (np.split(each, ends) for each in (found.mean, found.as_spread(of_table), found.variance))
    added = [mean if pair.of in implied else wide for pair, mean, wide in zip(pairs, means, stretched, strict=True)]
    shares = {pair.of: pair.with_(value, known.total) for pair, value in zip(pairs, added, strict=True)}
    return shares, {pair.of: variance for pair, variance in zip(pairs, variances, strict=True)}


def _drawn_pairs(known: _Known, randomness: Randomness) -> tuple[dict[Table, np.ndarray], dict[Table, np.ndarray]]:
    """What every pair may be, and no variance: a draw is to be met."""
    pairs = _expected(known, {})
    values = [_plausible(known, pair.of, pair.even, randomness) for pair in pairs]
    shares = {pair.of: pair.with_(value, known.total) for pair, value in zip(pairs, values, strict=True)}
    return shares, {pair.of: np.zeros(pair.even.size) for pair in pairs}


def _plausible(known: _Known, pair: Table, even: np.ndarray, randomness: Randomness) -> np.ndarray:
    """What a pair may add to independence."""
    return dependence(known.excess(pair, even), known.said[pair].variance, known.total, known.axes(pair)).draw(randomness)


def _within(of: Table, shares: dict[Table, np.ndarray], coarse: list[np.ndarray]) -> list[Margin]:
    """Axes of the smaller tables that are known, with their shares, and the margins of attributes that are in none."""
    inside = [sub for sub in shares if len(sub) < len(of) and set(sub) <= set(of)]
    alone = [j for j in of if not any(j in sub for sub in inside)]
    return [(tuple(map(of.index, sub)), shares[sub]) for sub in inside] + [((of.index(j),), coarse[j]) for j in alone]


def _counted(
    known: _Known, shares: dict[Table, np.ndarray], which: int, noisy: np.ndarray, randomness: Randomness | None
) -> tuple[np.ndarray, np.ndarray]:
    """Shares and variances of a table of counts: cells by their own posterior, pairs as they are.

    Such a table is sparse: most of what projection would leave in it is noise, and zeros must stay zeros.
    """
    of, noise = known.structure.tables[which], contrast_noise(known.structure.draws[which][0], noisy.shape)
    mask = mask_of(known.structure, of)
    there = np.ones(noisy.shape, dtype=bool) if mask is None else mask
    prior, cells, variances = Prior.fit(noisy[there], noise), np.zeros(noisy.shape), np.zeros(noisy.shape)
    cells[there] = prior.means(noisy[there]) if randomness is None else prior.draw(noisy[there], randomness)
    variances[there] = prior.variances(noisy[there]) if randomness is None else 0.0
    table = raked(cells / max(cells.sum(), 1.0), _within(of, shares, known.coarse), mask)
    return table, variances.ravel()


def _larger(
    known: _Known, shares: dict[Table, np.ndarray], which: int, noisy: np.ndarray, randomness: Randomness | None
) -> tuple[np.ndarray, np.ndarray]:
    """Shares and variances of a larger table of which the interaction was measured, beyond what smaller tables imply."""
    of, variance = known.structure.tables[which], known.structure.variances[which]
    said = part(noisy, known.structure.shape(of), variance, known.structure.margins.centred)
    mask, margins = mask_of(known.structure, of), _within(of, shares, known.coarse)
    even = raked(reduce(np.multiply.outer, [known.coarse[j] for j in of]), margins, mask)
    found = dependence(said.value - known.total * interaction(even), said.variance, known.total, known.axes(of))
    added = found.mean if randomness is None else found.draw(randomness)
    left = said.variance if randomness is None else 0.0
    return raked(even + added / known.total, margins, mask), np.full(even.size, left)


def _interactions(known: _Known, pairs: Sequence[_Pair]) -> Shrunk:
    """Posterior of what each pair adds to what is expected of it."""
    values, variances, sizes, freedom = [], [], [], []
    for (a, b), table in ((pair.of, pair.even) for pair in pairs):
        values.append(known.excess((a, b), table).ravel())
        spread = np.outer(known.coarse[a] * (1 - known.coarse[a]), known.coarse[b] * (1 - known.coarse[b]))
        sizes.append(known.total * np.sqrt(spread + 1e-12).ravel())
        freedom.append(np.full(table.size, (1 - 1 / table.shape[0]) * (1 - 1 / table.shape[1])))
        variances.append(known.said[a, b].variance * freedom[-1])
    table = np.repeat(np.arange(len(values)), [len(value) for value in values])
    value, variance, size, weight = map(np.concatenate, (values, variances, sizes, freedom))
    return shrunk(value, variance, size, table, weight, PRIOR_CELLS)


def mask_of(structure: Structure, table: Table) -> np.ndarray | None:
    """Which combinations have an allowed completion; None: all. Attributes that rules tie are not grouped."""
    mask: np.ndarray | None = None
    for component in Space(structure.margins.domain).components:
        inside = [j for j in component.attributes if j in table]
        if len(inside) > 1:
            others = tuple(axis for axis, j in enumerate(component.attributes) if j not in table)
            order = np.argsort(np.argsort(inside))
            allowed = np.moveaxis(component.completable(others), range(len(inside)), order)
            shape = [structure.sizes[j] if j in inside else 1 for j in table]
            mask = allowed.reshape(shape) if mask is None else mask & allowed.reshape(shape)
    return None if mask is None else np.broadcast_to(mask, structure.shape(table))


def one_way_with_errors(margins: Margins, attribute: int) -> tuple[np.ndarray, np.ndarray]:
    """A margin as measured, mean of the measurements, with its standard errors: unbiased, so that it may be below nought."""
    measured, size = margins.estimates(attribute), margins.domain.sizes[attribute]
    variance = margins.variance(attribute) + margins.total_variance / size**2
    return measured.mean(axis=0), np.full(size, np.sqrt(variance / len(measured)))
