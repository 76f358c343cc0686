"""What is measured of places: tables of counts, of the places of a level alone or by the categories of one attribute.

In one table a record is counted in one cell; tables read the same records, so what they cost adds up. A plan says them by its
draws: one tree for the places, with a layer per level, and one for each attribute that is counted by place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.plan import Draw, Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.places import Places
from steps_engine.inference.evidence import LEAST_VARIANCE
from steps_engine.inference.least_squares import least_squares_weights


@dataclass(frozen=True)
class PlaceTable:
    """Places of a level, by themselves (`attribute` None) or by the categories of an attribute."""

    attribute: int | None
    level: int
    draws: tuple[Draw, ...]  # one per measurement

    def columns(self, places: Places) -> int:
        return 1 if self.attribute is None else places.domain.sizes[self.attribute]

    def shape(self, places: Places) -> tuple[int, int]:
        return places.sizes[self.level], self.columns(places)

    def says(self, places: Places) -> str:
        level = places.levels[self.level - 1]
        return level if self.attribute is None else f"{places.domain.names[self.attribute]} × {level}"

    @property
    def variance(self) -> float:
        """Of the noise in a cell of one measurement."""
        return max(noise_of(self.draws[0]).variance, LEAST_VARIANCE)


def level_errors(places: Places, tables: tuple[PlaceTable, ...]) -> dict[tuple[int | None, int], float]:
    """Of every table of one measurement the variance of a place's column once levels are joined, in the mean over places."""
    found: dict[tuple[int | None, int], float] = {}
    for attribute, deepest in depths(tables).items():
        own = {table.level: table.variance for table in tables if table.attribute == attribute}
        noise = [np.full(places.sizes[level], own.get(level, np.inf)) for level in range(deepest + 1)]
        joined = least_squares_weights(places.down_to(deepest), noise).variance
        found |= {(attribute, level): float(joined[level].mean()) for level in range(1, deepest + 1)}
    return found


def tree_name(places: Places, attribute: int | None) -> str:
    """What the draws of the places, or of an attribute by place, are drawn for."""
    return places.name if attribute is None else f"{places.name} × {places.domain.names[attribute]}"


def is_of_places(draw: Draw) -> bool:
    """Of the nation interactions are measured, of places counts."""
    return draw.kind == "count" and draw.of is None


def place_tables(places: Places, plan: Plan) -> tuple[PlaceTable, ...]:
    """The tables that a plan's draws are of, in its order; a plan whose draws are no such tables is refused."""
    known: dict[str | None, int | None] = {tree_name(places, j): j for j in (None, *places.others)}
    found: dict[tuple[int | None, int], list[Draw]] = {}
    for draw in filter(is_of_places, plan.draws):
        if draw.tree not in known or not 1 <= draw.layer <= places.finest:
            raise ValueError(f"draw {draw.name!r} is of no level of {places.name}")
        found.setdefault((known[draw.tree], draw.layer), []).append(draw)
    tables = tuple(PlaceTable(attribute, level, tuple(draws)) for (attribute, level), draws in found.items())
    _must_be_whole(places, plan, tables)
    return tables


def _must_be_whole(places: Places, plan: Plan, tables: tuple[PlaceTable, ...]) -> None:
    """Every level from the coarsest down to an attribute's deepest, in every measurement once."""
    deepest = depths(tables)
    if deepest.get(None) != places.finest or len(tables) != sum(deepest.values()):
        raise ValueError("places are counted at every level, and every attribute by place from the coarsest level down")
    for table in tables:
        if tuple(draw.set for draw in table.draws) != plan.served:
            raise ValueError(f"{table.says(places)} does not have one draw in every measurement")
        wanted = "leaves" if table.level == deepest[table.attribute] else "inner"
        if any(draw.nodes != wanted for draw in table.draws):
            raise ValueError(f"{table.says(places)} is not counted as its level is")


def depths(tables: tuple[PlaceTable, ...]) -> dict[int | None, int]:
    """The finest level at which the places (None), and each attribute, are counted."""
    found: dict[int | None, int] = {}
    for table in tables:
        found[table.attribute] = max(table.level, found.get(table.attribute, 0))
    return found


def exact_table(places: Places, table: PlaceTable, counts: Counts) -> np.ndarray:
    """CONFIDENTIAL. Exact counts: places × columns, empty ones too."""
    shape = table.shape(places)
    cell = places.at(table.level)[counts.codes[:, places.attribute]] * shape[1]
    if table.attribute is not None:
        cell = cell + counts.codes[:, table.attribute]
    return np.bincount(cell, weights=counts.count, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)
