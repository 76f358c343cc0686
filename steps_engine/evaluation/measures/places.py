"""Places within places: at every level, the part of the rows that lies in another place, or in another category of a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steps_engine.evaluation.coded import Coded, CodedLevel
from steps_engine.evaluation.measures import Measure, Options
from steps_engine.evaluation.section import Headline, Listing, Section
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class OfLevel:
    """Mean over the sets of ½ Σ |p − q|: over places, and in the mean over attributes over places by categories."""

    name: str
    places: int
    rows: float
    tables: float


@dataclass(frozen=True)
class OfPlaces:
    levels: tuple[OfLevel, ...]

    def figures(self) -> Mapping[str, float | None]:
        return {f"{what} {each.name}": getattr(each, what) for each in self.levels for what in ("rows", "tables")}

    def details(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def section(self) -> Section:
        rows = tuple((each.name, each.places, each.rows, each.tables) for each in self.levels)
        finest = self.levels[-1]
        return Section(
            title="Places",
            headlines=(Headline(finest.rows, f"of the rows lie in another {finest.name}"),),
            text="At every level of places: the part of the rows that lies in another place, and, in the mean over the other "
            "attributes, in another category or place. 0 is perfect.",
            listings=(Listing(("level", "places", "rows", "by attributes"), rows, digits=4),),
        )


def of_places(original: Coded, synthetics: Sequence[Coded]) -> OfPlaces:
    return OfPlaces(tuple(_level(level, original, synthetics) for level in original.levels))


def _level(level: CodedLevel, original: Coded, synthetics: Sequence[Coded]) -> OfLevel:
    others = [j for j in range(len(original.names)) if j != level.attribute]
    apart = [[_distance(level, j, original, each) for j in (None, *others)] for each in synthetics]
    rows, *tables = np.mean(apart, axis=0).tolist()
    return OfLevel(level.name, int(level.place[-1]) + 1, rows, float(np.mean(tables)) if tables else rows)


def _distance(level: CodedLevel, attribute: int | None, original: Coded, synthetic: Coded) -> float:
    first, second = (_shares(level, attribute, each) for each in (original, synthetic))
    return float(np.abs(first - second).sum() / 2)


def _shares(level: CodedLevel, attribute: int | None, table: Coded) -> np.ndarray:
    """Of every place, or of every category in every place."""
    columns = 1 if attribute is None else table.sizes[attribute]
    cell = level.place[table.codes[:, level.attribute]] * columns
    cell = cell if attribute is None else cell + table.codes[:, attribute]
    counts = np.bincount(cell, weights=table.counts, minlength=(int(level.place[-1]) + 1) * columns)
    shares: np.ndarray = counts / max(counts.sum(), 1.0)
    return shares


def _asked(original: Coded, synthetics: Sequence[Coded], randomness: Randomness, options: Options) -> OfPlaces:
    return of_places(original, synthetics)


ENTRY = Measure("places", 4, _asked, lambda original: bool(original.levels))
