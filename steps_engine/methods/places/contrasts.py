"""What the noisy counts of places say twice: a place and those that lie in it, tables of one level, several measurements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steps_engine.accounting.mechanisms import noise_of
from steps_engine.inference.noise_test import Contrasts, Groups, NoiseTest, noise_test
from steps_engine.inference.place_tables import PlaceTable
from steps_engine.methods.pairs.contrasts import families
from steps_engine.methods.places.estimate import Measured

One = tuple[PlaceTable, np.ndarray]


def tested(measured: Measured) -> NoiseTest:
    every = list(zip(measured.tables, measured.noisy, strict=True))
    of_nation, named = families(measured.nation, measured.of_nation)
    found = [_children(measured, every, first) for first in (1, 2)]
    found += [_beside(measured, every, first) for first in (0, 1)]
    found.append(_between_measurements(measured, every))
    return noise_test([*of_nation, *found], [*named, *(table.says(measured.places) for table, _ in every)])


def _children(measured: Measured, every: list[One], first: int) -> Groups:
    """A place less those that lie in it: of every second level, so that no noise is in two contrasts; by how many they are."""
    places, of, found = measured.places, {(table.of, table.level): (table, noisy) for table, noisy in every}, Groups()
    for (counted, level), (table, noisy) in of.items():
        below = of.get((counted, level + 1))
        if below is not None and level % 2 == first % 2:
            layer = places.tree.layers[level]
            left = noisy - np.add.reduceat(below[1], layer.first, axis=1)
            name = f"{table.says(places)} less {below[0].says(places)}"
            found[name] = list(_by_number(left, layer.fanout, table, below[0], (table.says(places), below[0].says(places))))
    return found


def _by_number(
    left: np.ndarray, fanout: np.ndarray, table: PlaceTable, below: PlaceTable, of: tuple[str, ...]
) -> Iterator[Contrasts]:
    for number in np.unique(fanout).tolist():
        laws = ((noise_of(table.draws[0]), 1), (noise_of(below.draws[0]), number))
        yield Contrasts(left[:, fanout == number].ravel(), laws, of)


def _beside(measured: Measured, every: list[One], first: int) -> Groups:
    """Two tables of one level, summed over categories, less each other: each table in one contrast at most."""
    found = Groups()
    for level in range(1, measured.places.finest + 1):
        of_level = [one for one in every if one[0].level == level][first:]
        for (a, here), (b, there) in zip(of_level[::2], of_level[1::2], strict=False):
            of = a.says(measured.places), b.says(measured.places)
            laws = tuple((noise_of(table.draws[0]), table.columns(measured.places)) for table in (a, b))
            found[" beside ".join(of)] = [Contrasts((here.sum(axis=2) - there.sum(axis=2)).ravel(), laws, of)]
    return found


def _between_measurements(measured: Measured, every: list[One]) -> Groups:
    """The first measurement less the second, the third less the fourth, …"""
    found = Groups()
    for table, noisy in every:
        if pairs := len(noisy) // 2:
            name, apart = table.says(measured.places), noisy[: 2 * pairs : 2] - noisy[1 : 2 * pairs : 2]
            laws = ((noise_of(table.draws[0]), 2),)
            found[f"{name}, one measurement against another"] = [Contrasts(apart.ravel(), laws, (name,))]
    return found
