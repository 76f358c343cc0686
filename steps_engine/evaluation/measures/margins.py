"""Total variation distance of the 1-, 2- and 3-way margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import Any

import numpy as np

from steps_engine.evaluation.coded import Coded, Stack, must_compare, stack, tally
from steps_engine.evaluation.measures import Measure, Options
from steps_engine.evaluation.section import Headline, Listing, Scatter, Section
from steps_engine.noise import Randomness

MOST_TRIPLES = 1_000
MOST_POINTS = 2_000
WORST = 10
SHOWN_WAYS = (1, 2)  # margins whose cells are drawn


@dataclass(frozen=True)
class Margins:
    """All margins of `ways` attributes: mean and largest distance, and the worst ones by name (means over sets)."""

    ways: int
    compared: int
    of: int
    mean: float
    largest: float
    worst: tuple[tuple[tuple[str, ...], float], ...]


@dataclass(frozen=True)
class AllMargins:
    """The margins of 1, 2 and 3 attributes, and (original, synthetic) shares of cells of the first set by ways."""

    by_ways: tuple[Margins, ...]
    cells: dict[int, tuple[tuple[float, float], ...]]

    def figures(self) -> dict[str, float | None]:
        return {str(margin.ways): margin.mean for margin in self.by_ways}

    def details(self) -> dict[str, dict[str, Any]]:
        return {"margins": {str(margin.ways): asdict(margin) for margin in self.by_ways}}

    def section(self) -> Section:
        compared = tuple((str(m.ways), f"{m.compared} of {m.of}", m.mean, m.largest) for m in self.by_ways)
        points = {f"{ways}-way cells": pairs for ways, pairs in self.cells.items()}
        return Section(
            title="Margins",
            headlines=tuple(Headline(m.mean, f"mean distance (TVD) of the {m.ways}-way margins") for m in self.by_ways),
            picture=Scatter(points, "share in the original", "share in the first synthetic set"),
            listings=(
                Listing(("ways", "compared", "mean TVD", "largest"), compared, digits=4),
                *(_worst(margin) for margin in self.by_ways if margin.worst),
            ),
        )


def _worst(margin: Margins) -> Listing:
    rows = tuple((" × ".join(names), distance) for names, distance in margin.worst)
    return Listing((), rows, digits=4, title=f"Worst {margin.ways}-way margins", unfolded=margin.ways == 2)


def margins(original: Coded, synthetics: Sequence[Coded], ways: int) -> Margins:
    """TVD = ½ Σ |p − q| over the cells of each margin; beyond 1,000 triples a fixed, evenly spaced sample of them."""
    must_compare(original, synthetics)
    chosen = subsets(len(original.names), ways, MOST_TRIPLES if ways == 3 else None)
    if not len(chosen):
        return Margins(ways, 0, 0, 0.0, 0.0, ())
    stacks = [stack(original, synthetic) for synthetic in synthetics]
    distance = np.mean([_distances(rows, chosen) for rows in stacks], axis=0)
    order = np.argsort(-distance, kind="stable")[:WORST]
    worst = tuple((tuple(original.names[j] for j in chosen[i]), float(distance[i])) for i in order)
    return Margins(ways, len(chosen), comb(len(original.names), ways), float(distance.mean()), float(distance.max()), worst)


def subsets(attributes: int, ways: int, limit: int | None = None) -> np.ndarray:
    """All subsets of `ways` attributes, or `limit` of them evenly spaced in the order of the combinatorial numbers.

    >>> subsets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    total = comb(attributes, ways)
    rank = np.arange(total) if limit is None or total <= limit else np.linspace(0, total - 1, limit).astype(np.int64)
    members = []
    for size in range(ways, 0, -1):  # rank = C(a,1) + C(b,2) + C(c,3) with a < b < c, for exactly one (a, b, c)
        below = np.array([comb(number, size) for number in range(attributes)], np.int64)
        member = np.searchsorted(below, rank, side="right") - 1
        rank = rank - below[member]
        members.append(member)
    return np.stack(members[::-1], axis=1).reshape(-1, ways)


def _distances(rows: Stack, chosen: np.ndarray) -> np.ndarray:
    # p − q adds up over rows, so one signed weight per distinct row serves every margin.
    difference = rows.original / rows.original.sum() - rows.synthetic / rows.synthetic.sum()
    return np.array([np.abs(_tally(rows, members, difference)).sum() / 2 for members in chosen])


def _tally(rows: Stack, members: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return tally(rows.codes[:, members], [rows.sizes[j] for j in members], weight)[1]


def scatter(original: Coded, synthetic: Coded, ways: int) -> np.ndarray:
    """(original share, synthetic share) of the cells of all margins; of very many, those that differ most."""
    rows, chosen = stack(original, synthetic), subsets(len(original.names), ways)
    if not len(chosen):
        return np.empty((0, 2))
    shares = [
        np.concatenate([_tally(rows, members, count / count.sum()) for members in chosen])
        for count in (rows.original, rows.synthetic)
    ]
    points = np.stack(shares, axis=1)
    points = points[points.any(axis=1)]
    return points[np.argsort(-np.abs(points[:, 0] - points[:, 1]), kind="stable")[:MOST_POINTS]]


def _asked(original: Coded, synthetics: Sequence[Coded], randomness: Randomness, options: Options) -> AllMargins:
    shares = {ways: scatter(original, synthetics[0], ways).round(6).tolist() for ways in SHOWN_WAYS}
    cells = {ways: tuple((first, second) for first, second in pairs) for ways, pairs in shares.items()}
    return AllMargins(tuple(margins(original, synthetics, ways) for ways in (1, 2, 3)), cells)


ENTRY = Measure("tvd", 2, _asked)
