"""What is measured of places: tables of counts, of the places of a level alone or by the categories of one attribute or two.

In one table a record is counted in one cell; tables read the same records, so what they cost adds up. A plan says them by its
draws: one tree for the places, with a layer per level, and one for each attribute, or pair of them, that is counted by place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from schemas.plan import Draw, Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.places import Places
from steps_engine.inference.evidence import LEAST_VARIANCE
from steps_engine.inference.least_squares import least_squares_weights

Of = tuple[int, ...]  # attributes that are counted by place, in the domain's order; none: places by themselves
MOST_BY_PLACE = 2
BY = " × "


@dataclass(frozen=True)
class PlaceTable:
    """Places of a level, by themselves or by the categories of attributes, the first of which is slowest."""

    of: Of
    level: int
    draws: tuple[Draw, ...]  # one per measurement

    def columns(self, places: Places) -> int:
        return math.prod(sizes_of(places, self.of))

    def shape(self, places: Places) -> tuple[int, int]:
        return places.sizes[self.level], self.columns(places)

    def says(self, places: Places) -> str:
        return BY.join((*names_of(places, self.of), places.levels[self.level - 1]))

    @property
    def variance(self) -> float:
        """Of the noise in a cell of one measurement."""
        return max(noise_of(self.draws[0]).variance, LEAST_VARIANCE)


def sizes_of(places: Places, of: Of) -> tuple[int, ...]:
    return tuple(places.domain.sizes[j] for j in of)


def names_of(places: Places, of: Of) -> tuple[str, ...]:
    return tuple(places.domain.names[j] for j in of)


def level_errors(places: Places, tables: tuple[PlaceTable, ...]) -> dict[tuple[Of, int], float]:
    """Of every table of one measurement the variance of a place's column once levels are joined, in the mean over places."""
    found: dict[tuple[Of, int], float] = {}
    for of, deepest in depths(tables).items():
        own = {table.level: table.variance for table in tables if table.of == of}
        noise = [np.full(places.sizes[level], own.get(level, np.inf)) for level in range(deepest + 1)]
        joined = least_squares_weights(places.down_to(deepest), noise).variance
        found |= {(of, level): float(joined[level].mean()) for level in range(1, deepest + 1)}
    return found


def tree_name(places: Places, of: Of) -> str:
    """What the draws of the places, or of attributes by place, are drawn for."""
    return BY.join((places.name, *names_of(places, of)))


def of_tree(places: Places, tree: str | None) -> Of | None:
    """What a tree's draws are of; None: of no table of places. Of an attribute whose name reads as two, it is the one."""
    named = {name: j for j, name in enumerate(places.domain.names) if j != places.attribute}
    if tree is None or tree == places.name:
        return () if tree is not None else None
    said = tree.removeprefix(places.name + BY)
    parts = [said] if said in named else said.split(BY)
    found = tuple(sorted({named[part] for part in parts if part in named}))
    return found if len(found) <= MOST_BY_PLACE and tree == tree_name(places, found) else None


def is_of_places(draw: Draw) -> bool:
    """Of the nation interactions are measured, of places counts."""
    return draw.kind == "count" and draw.of is None


def place_tables(places: Places, plan: Plan) -> tuple[PlaceTable, ...]:
    """The tables that a plan's draws are of, in its order; a plan whose draws are no such tables is refused."""
    found: dict[tuple[Of, int], list[Draw]] = {}
    for draw in filter(is_of_places, plan.draws):
        if (of := of_tree(places, draw.tree)) is None or not 1 <= draw.layer <= places.finest:
            raise ValueError(f"draw {draw.name!r} is of no level of {places.name}")
        found.setdefault((of, draw.layer), []).append(draw)
    tables = tuple(PlaceTable(of, level, tuple(draws)) for (of, level), draws in found.items())
    _must_be_whole(places, plan, tables)
    return tables


def _must_be_whole(places: Places, plan: Plan, tables: tuple[PlaceTable, ...]) -> None:
    """Every level from the coarsest down to an attribute's deepest, in every measurement once."""
    deepest = depths(tables)
    if deepest.get(()) != places.finest or len(tables) != sum(deepest.values()):
        raise ValueError("places are counted at every level, and every attribute by place from the coarsest level down")
    for table in tables:
        if tuple(draw.set for draw in table.draws) != plan.served:
            raise ValueError(f"{table.says(places)} does not have one draw in every measurement")
        wanted = "leaves" if table.level == deepest[table.of] else "inner"
        if any(draw.nodes != wanted for draw in table.draws):
            raise ValueError(f"{table.says(places)} is not counted as its level is")


def depths(tables: tuple[PlaceTable, ...]) -> dict[Of, int]:
    """The finest level at which the places, each attribute and each pair are counted by a table of their own."""
    found: dict[Of, int] = {}
    for table in tables:
        found[table.of] = max(table.level, found.get(table.of, 0))
    return found


def told(tables: tuple[PlaceTable, ...]) -> dict[Of, int]:
    """The finest level at which some table tells of them: one by two attributes tells of each of both too."""
    found: dict[Of, int] = {}
    for table in tables:
        for part in parts(table.of):
            found[part] = max(table.level, found.get(part, 0))
    return found


def parts(of: Of) -> Iterator[Of]:
    """Every subset, smallest first.

    >>> list(parts((2, 5)))
    [(), (2,), (5,), (2, 5)]
    """
    return (part for size in range(len(of) + 1) for part in combinations(of, size))


def exact_tables(places: Places, tables: Sequence[PlaceTable], counts: Counts) -> list[np.ndarray]:
    """CONFIDENTIAL. Exact counts of each: places × columns, empty ones too. Every block of cells is read once."""
    found = [np.zeros(table.shape(places), dtype=np.int64) for table in tables]
    for block in counts.blocks():
        for exact, table in zip(found, tables, strict=True):
            exact += _exact_table(places, table, block)
    return found


def _exact_table(places: Places, table: PlaceTable, counts: Counts) -> np.ndarray:
    """CONFIDENTIAL. What the cells of a block add."""
    shape = table.shape(places)
    cell = places.at(table.level)[counts.codes[:, places.attribute]]
    for j in table.of:
        cell = cell * places.domain.sizes[j] + counts.codes[:, j]
    return np.bincount(cell, weights=counts.count, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)
