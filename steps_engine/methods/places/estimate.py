"""From noisy counts of places to estimates: of every place at every level, of every attribute as deep as it was counted.

A table of counts by an attribute of K categories says two things, whose noises are independent: its sums over categories tell
of the rows of places, and what is left of each category, less the place's mean, of how places differ in the attribute. Both
are joined over levels by exact least squares, the latter category by category; the root is what the nation's tables say.

For rows, what places add to the place that they lie in is shrunk by what noise leaves of it (empirical Bayes), level by level:
where a table drowns, or was not measured, a place has the shares of the one above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from steps_engine.domain.places import Places
from steps_engine.inference.evidence import Said
from steps_engine.inference.levels import Level, Levels, joined_levels
from steps_engine.inference.place_tables import PlaceTable, depths
from steps_engine.inference.shrinking import shrunk, standard_normal
from steps_engine.methods.pairs.estimate import evidence, told
from steps_engine.methods.pairs.structure import Structure
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
    """Rows of every place of every level, and what each attribute's categories have beyond an even part of them."""

    rows: Levels
    contrasts: dict[int, Levels]


def joined(measured: Measured, measurement: int | None, fresh: Randomness | None = None) -> Joined:
    """Of one measurement, or of the mean of all (None); with randomness, less fresh noise: a draw of what it leaves open."""
    places, root = measured.places, _nation(measured, measurement)
    total = root[()]
    rows = [Level(np.full((1, 1), float(total.value)), total.variance)]
    rows += [Level.nothing(size, 1) for size in places.sizes[1:]]
    deepest = depths(measured.tables)
    apart = {j: [_root(root.get((j,)), places.domain.sizes[j])] for j in deepest if j is not None}
    for table, noisy in zip(measured.tables, measured.noisy, strict=True):
        value, variance = _taken(table, noisy, measurement, fresh)
        columns = table.columns(places)
        rows[table.level] = rows[table.level].joined(Level(value.sum(axis=1, keepdims=True), variance * columns))
        if table.attribute is not None:
            apart[table.attribute].append(Level(value - value.mean(axis=1, keepdims=True), variance))
    contrasts = {j: joined_levels(places.down_to(deepest[j]), said) for j, said in apart.items()}
    return Joined(joined_levels(places.tree, rows), contrasts)


def _nation(measured: Measured, measurement: int | None) -> Mapping[tuple[int, ...], Said]:
    """What the nation's tables say of the number of rows and of one-way tables, by attributes of the whole domain."""
    if measurement is None:
        said = told(measured.nation, measured.of_nation)
    else:
        margins = measured.nation.margins
        said = evidence(measured.nation, measured.of_nation, measurement)
        said[()] = Said(np.asarray(float(margins.total[measurement])), margins.total_variance)
    return {tuple(measured.places.others[j] for j in subset): each for subset, each in said.items() if len(subset) < 2}


def _root(said: Said | None, size: int) -> Level:
    return Level.nothing(1, size) if said is None else Level(said.value[None], said.variance)


def _taken(table: PlaceTable, noisy: np.ndarray, measurement: int | None, fresh: Randomness | None) -> tuple[np.ndarray, float]:
    if measurement is None:
        return noisy.mean(axis=0), table.variance / len(noisy)
    value = noisy[measurement].astype(float)
    if fresh is not None:
        value = value - np.sqrt(table.variance) * standard_normal(value.size, fresh).reshape(value.shape)
    return value, table.variance


def shares_by_place(
    places: Places, contrasts: Levels, rows: Sequence[np.ndarray], nation: np.ndarray, level: int, drawn: Randomness | None
) -> list[np.ndarray]:
    """Of every place the shares of an attribute's categories, level by level: what it adds to the place above it, shrunk.

    `rows` are those of places by level, `nation` the shares of all. Below the deepest level that was counted, those of the
    place above; with randomness, a draw of what the noise leaves open.
    """
    found: list[np.ndarray] = [nation[None] / nation.sum()]
    for depth in range(1, level + 1):
        above = found[-1][places.within(depth, depth - 1)]
        told = depth <= contrasts.depth
        found.append(_shrunk(above, contrasts.value[depth], contrasts.variance[depth], rows[depth], drawn) if told else above)
    return found[1:]


def _shrunk(
    above: np.ndarray, contrast: np.ndarray, variance: np.ndarray, rows: np.ndarray, drawn: Randomness | None
) -> np.ndarray:
    """Posterior shares; `above` are those of the place that each lies in."""
    size, there = above.shape[1], np.maximum(rows, 1.0)[:, None]
    expected = there * above
    excess = contrast - (expected - expected.mean(axis=1, keepdims=True))
    freedom = 1 - 1 / size
    noise = np.broadcast_to((variance * freedom)[:, None], above.shape)
    spread = there * np.sqrt(above * (1 - above) + 1e-6)
    one, weight = np.zeros(above.size, dtype=np.int64), np.full(above.size, freedom)
    found = shrunk(excess.ravel(), np.maximum(noise.ravel(), 1e-9), spread.ravel(), one, weight, PRIOR_CELLS)
    added = found.mean if drawn is None else found.mean + np.sqrt(found.variance) * standard_normal(above.size, drawn)
    cells = np.maximum(expected + added.reshape(above.shape), 1e-3 * expected)
    shares: np.ndarray = cells / cells.sum(axis=1, keepdims=True)
    return shares
