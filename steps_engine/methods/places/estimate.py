"""From noisy counts of places to estimates: of every place at every level, of every attribute as deep as it was counted.

A table of counts by attributes is the sum of parts with independent noises, one for every set of them: its sums over all
categories tell of the rows of places, what is left of each category, less the place's mean, of how places differ in an
attribute, and of two attributes what a cell has beyond both of how they go together. Every part is joined over levels by exact
least squares, column by column; the root is what the nation's tables say. A table by two attributes tells of each of them too.

For rows, what places add to the place that they lie in is shrunk by what noise leaves of it (empirical Bayes), level by level:
where a table drowns, or was not measured, a place has the shares of the one above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from steps_engine.domain.places import Places
from steps_engine.inference.evidence import Said
from steps_engine.inference.levels import Level, Levels, joined_levels
from steps_engine.inference.place_tables import Of, PlaceTable, parts, sizes_of, told
from steps_engine.inference.shrinking import shrunk, standard_normal
from steps_engine.methods.pairs.estimate import evidence
from steps_engine.methods.pairs.estimate import told as told_of_nation
from steps_engine.methods.pairs.structure import Structure, Table
from steps_engine.noise import Randomness

PRIOR_CELLS = 10.0  # all levels together speak to each like so many of its cells


@dataclass(frozen=True)
class Measured:
    """Everything that was measured: the nation, and of every table of places its noisy counts, measurements first."""

    places: Places
    nation: Structure
    of_nation: list[np.ndarray]
    tables: tuple[PlaceTable, ...]
    noisy: list[np.ndarray]

    def of_nation_in(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The nation's tables among those that were published, as pairs reads them."""
        rows = tables["noisy-counts"].num_rows - sum(each[0].size for each in self.noisy)
        return {**tables, "noisy-counts": tables["noisy-counts"].slice(0, rows)}


@dataclass(frozen=True)
class Joined:
    """Rows of every place of every level, and of attributes, or two of them, what categories have beyond an even part."""

    rows: Levels
    contrasts: dict[Of, Levels]

    def of(self, part: Of) -> Levels:
        return self.contrasts[part] if part else self.rows

    def cells(self, places: Places, of: Of, level: int, least: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Of every cell, places × columns, the sum of its parts of so many attributes or more, and its variance."""
        sizes = sizes_of(places, of)
        value, variance = np.zeros((places.sizes[level], *sizes)), np.zeros(places.sizes[level])
        for part in (part for part in parts(of) if len(part) >= least):
            levels, spread = self.of(part), math.prod(size for j, size in zip(of, sizes, strict=True) if j not in part)
            shape = [size if j in part else 1 for j, size in zip(of, sizes, strict=True)]
            value = value + levels.value[level].reshape(-1, *shape) / spread
            variance = variance + levels.variance[level] * _freedom(sizes_of(places, part)) / spread**2
        return value.reshape(len(value), -1), variance


def _freedom(sizes: Sequence[int]) -> float:
    """The part of a direction's variance that a cell of an interaction has."""
    return math.prod(1 - 1 / size for size in sizes)


def joined(measured: Measured, measurement: int | None, fresh: Randomness | None = None) -> Joined:
    """Of one measurement, or of the mean of all (None); with randomness, less fresh noise: a draw of what it leaves open."""
    places, root, deepest = measured.places, _nation(measured, measurement), told(measured.tables)
    said = {part: [_root(root.get(part), sizes_of(places, part))] for part in deepest}
    for part, levels in said.items():
        levels += [Level.nothing(size, levels[0].value.shape[1]) for size in places.sizes[1 : deepest[part] + 1]]
    for table, noisy in zip(measured.tables, measured.noisy, strict=True):
        value, variance = _taken(table, noisy, measurement, fresh)
        for part in parts(table.of):
            said[part][table.level] = said[part][table.level].joined(_part(places, table, part, value, variance))
    found = {part: joined_levels(places.down_to(deepest[part]), levels) for part, levels in said.items()}
    return Joined(found.pop(()), found)


def _part(places: Places, table: PlaceTable, part: Of, value: np.ndarray, variance: float) -> Level:
    """What a table says of some of its attributes: summed over the others, less what fewer of them say."""
    sizes = sizes_of(places, table.of)
    others = tuple(axis for axis, j in enumerate(table.of, start=1) if j not in part)
    cells = value.reshape(len(value), *sizes).sum(axis=others)
    for axis in range(1, cells.ndim):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    summed = math.prod(sizes) // math.prod(sizes_of(places, part))
    return Level(cells.reshape(len(cells), -1), variance * summed)


def _nation(measured: Measured, measurement: int | None) -> Mapping[tuple[int, ...], Said]:
    """What the nation's tables say of the number of rows, of attributes and of pairs, by attributes of the whole domain."""
    if measurement is None:
        said = told_of_nation(measured.nation, measured.of_nation)
    else:
        margins = measured.nation.margins
        said = evidence(measured.nation, measured.of_nation, measurement)
        said[()] = Said(np.asarray(float(margins.total[measurement])), margins.total_variance)
    return {tuple(measured.places.others[j] for j in subset): each for subset, each in said.items()}


def of_all_places(measured: Measured) -> dict[Table, Said]:
    """What is told of all places together, attributes numbered as the nation's: of what was counted by place the root of its
    levels, so that tables add up from the finest places to the nation; of the rest what the nation's tables say.
    """
    found, said = joined(measured, None), told_of_nation(measured.nation, measured.of_nation)
    for part in [(), *found.contrasts]:
        levels, shape = found.of(part), sizes_of(measured.places, part)
        lowered = tuple(measured.places.others.index(j) for j in part)
        if lowered in said and said[lowered].value.shape == shape:
            said[lowered] = Said(levels.value[0].reshape(shape), float(levels.variance[0][0]))
    return said


def _root(said: Said | None, sizes: tuple[int, ...]) -> Level:
    """Nothing where it was not measured, or in groups of categories."""
    if said is None or said.value.shape != sizes:
        return Level.nothing(1, math.prod(sizes))
    return Level(said.value.reshape(1, -1), said.variance)


def _taken(table: PlaceTable, noisy: np.ndarray, measurement: int | None, fresh: Randomness | None) -> tuple[np.ndarray, float]:
    if measurement is None:
        return noisy.mean(axis=0), table.variance / len(noisy)
    value = noisy[measurement].astype(float)
    if fresh is not None:
        value = value - np.sqrt(table.variance) * standard_normal(value.size, fresh).reshape(value.shape)
    return value, table.variance


def shares_by_place(
    places: Places, found: Joined, of: Of, rows: Sequence[np.ndarray], nation: np.ndarray, level: int, drawn: Randomness | None
) -> list[np.ndarray]:
    """Of every place the shares of attributes' categories, level by level: what it adds to the place above it, shrunk.

    `rows` are those of places by level, `nation` the shares of all. Below the deepest level that was counted, those of the
    place above; with randomness, a draw of what the noise leaves open.
    """
    shares: list[np.ndarray] = [nation[None] / nation.sum()]
    for depth in range(1, level + 1):
        above = shares[-1][places.within(depth, depth - 1)]
        if depth <= found.of(of).depth:
            contrast, variance = found.cells(places, of, depth, least=1)
            above = _shrunk(above, contrast, variance, rows[depth], drawn)
        shares.append(above)
    return shares[1:]


def _shrunk(
    above: np.ndarray, contrast: np.ndarray, variance: np.ndarray, rows: np.ndarray, drawn: Randomness | None
) -> np.ndarray:
    """Posterior shares; `above` are those of the place that each lies in."""
    there = np.maximum(rows, 1.0)[:, None]
    expected = there * above
    excess = contrast - (expected - expected.mean(axis=1, keepdims=True))
    freedom = 1 - 1 / above.shape[1]
    noise = np.broadcast_to(variance[:, None], above.shape)
    spread = there * np.sqrt(above * (1 - above) + 1e-6)
    one, weight = np.zeros(above.size, dtype=np.int64), np.full(above.size, freedom)
    found = shrunk(excess.ravel(), np.maximum(noise.ravel(), 1e-9), spread.ravel(), one, weight, PRIOR_CELLS)
    added = found.mean if drawn is None else found.mean + np.sqrt(found.variance) * standard_normal(above.size, drawn)
    cells = np.maximum(expected + added.reshape(above.shape), 1e-3 * expected)
    shares: np.ndarray = cells / cells.sum(axis=1, keepdims=True)
    return shares
