"""More cells than memory: the cells of the last layer are sampled instead of listed. Memory grows with what is kept.

Every cell has its noise, but only noisy counts that reach the plan's threshold are kept, which is post-processing of the full
table; noise.zeros_that_reach draws them without drawing the rest. The layers above are held and corrected as ever. They
learn nothing from the cells below: the sum of so many noises would say almost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.plan import Draw, Plan
from steps_engine import noise
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Layer, Tree, walk_down
from steps_engine.domain.prefixes import complete, completions
from steps_engine.inference.posterior import Prior
from steps_engine.inference.rounding import project, round_keeping_sums

BELOW = np.iinfo(np.int64).min  # stands where a cell's count did not reach the threshold in this measurement


@dataclass(frozen=True)
class KeptCells:
    """Cells whose noisy count reached the threshold in some measurement, increasing; measurements × cells."""

    cells: np.ndarray
    noisy: np.ndarray


@dataclass(frozen=True)
class WholeCells:
    """Cells that hold records in some set, increasing; whole numbers as sets × cells."""

    cells: np.ndarray
    whole: np.ndarray


def sanitize_cells(tree: Tree, counts: Counts, plan: Plan, randomness: noise.Randomness) -> KeptCells:
    """The cells below the tree that reach the threshold, each measurement with its own noise."""
    rows, _ = cells_below(tree, counts.codes)
    occupied, exact = Space(tree.domain).cells(counts.codes[rows]), counts.count[rows]
    order = np.argsort(occupied)
    occupied, exact = occupied[order], exact[order]
    if not are_cells(tree, occupied).all():
        raise ValueError("some records lie in cells that the domain's rules exclude; validate them first")
    return _side_by_side([_reaching(tree, occupied, exact, plan, i, randomness) for i in range(1, plan.measurements + 1)])


def _reaching(
    tree: Tree, occupied: np.ndarray, exact: np.ndarray, plan: Plan, measurement: int, randomness: noise.Randomness
) -> tuple[np.ndarray, np.ndarray]:
    """Occupied cells are drawn one by one, empty ones sampled from all numbers: those that are no empty cell are left out."""
    draw = plan.count_draw(len(plan.layers), measurement, "leaves")
    law, threshold = noise_of(draw), threshold_of(draw)
    noisy = exact + law.draw(len(exact), randomness)
    cells, values = law.zeros_that_reach(threshold, tree.domain.all_cells, randomness)
    empty = np.flatnonzero(~np.isin(cells, occupied, assume_unique=True) & are_cells(tree, cells))
    high = np.flatnonzero(noisy >= threshold)
    return np.concatenate([occupied[high], cells[empty]]), np.concatenate([noisy[high], values[empty]])


def is_sampled(plan: Plan) -> bool:
    """Whether the cells of the last layer are too many to list, so that only those that reach a threshold are kept."""
    return any(draw.threshold is not None for draw in plan.draws)


def threshold_of(draw: Draw) -> int:
    """What a noisy count of a cell must reach to be kept."""
    if draw.threshold is None:
        raise ValueError(f"draw {draw.name!r} has no threshold; its cells are listed")
    return draw.threshold


def are_cells(tree: Tree, cells: np.ndarray) -> np.ndarray:
    """Whether each number is a cell of the last layer: one that the rules allow and that is no leaf above."""
    space, everything = Space(tree.domain), frozenset(range(len(tree.domain.sizes)))
    numbered = (cells >= 0) & (cells < tree.domain.all_cells)
    allowed = np.flatnonzero(numbered & (completions(space, np.where(numbered, cells, 0), everything) > 0))
    rows, _ = cells_below(tree, space.codes(cells[allowed]))
    result = np.zeros(len(cells), dtype=bool)
    result[allowed[rows]] = True
    return result


def cells_below(tree: Tree, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of codes lie below the tree, and the node of its last layer in which each of them is."""
    *_, (rows, node) = walk_down(tree.domain, tree.splits, tree.layers, codes)
    going = tree.layers[-1].cell[node] < 0
    return rows[going], node[going]


def _side_by_side(found: list[tuple[np.ndarray, np.ndarray]]) -> KeptCells:
    cells = np.unique(np.concatenate([each for each, _ in found]))
    noisy = np.full((len(found), len(cells)), BELOW)
    for row, (each, values) in zip(noisy, found, strict=True):
        row[np.searchsorted(cells, each)] = values
    return KeptCells(cells, noisy)


def correct_cells(tree: Tree, kept: KeptCells, totals: np.ndarray, plan: Plan, randomness: noise.Randomness) -> WholeCells:
    """Whole numbers for the cells of every set; `totals` are the whole numbers (sets × nodes) of the last layer held."""
    _, parent = cells_below(tree, Space(tree.domain).codes(kept.cells))
    order = np.argsort(parent, kind="stable")
    cells, parent = kept.cells[order], parent[order]
    found = []
    for counts, total in zip(_estimates(kept.noisy[:, order], plan, randomness), totals, strict=True):
        here = np.flatnonzero(counts > 0)
        whole, rest = fit_to_parents(parent[here], counts[here], np.where(tree.layers[-1].cell < 0, total, 0), randomness)
        anywhere = draw_below(tree, rest, randomness)
        all_cells = np.concatenate([cells[here], anywhere])
        each, place = np.unique(all_cells, return_inverse=True)
        count = np.bincount(place, weights=np.concatenate([whole, np.ones(len(anywhere))])).astype(np.int64)
        found.append((each[count > 0], count[count > 0]))
    side = _side_by_side(found)
    return WholeCells(side.cells, np.where(side.noisy == BELOW, 0, side.noisy))


def _estimates(noisy: np.ndarray, plan: Plan, randomness: noise.Randomness) -> Iterator[np.ndarray]:
    """For each set what its cells may hold: its own noisy counts, or a plausible draw given those that all sets share."""
    if plan.budget == "split":
        yield from noisy
        return
    draw = plan.count_draw(len(plan.layers), 1, "leaves")
    unseen = plan.layers[-1].nodes - noisy.shape[1]
    prior = Prior.fit(noisy[0], noise_of(draw), unseen=unseen, threshold=threshold_of(draw))
    for _ in range(plan.sets):
        yield prior.draw(noisy[0], randomness)


def fit_to_parents(
    parent: np.ndarray, counts: np.ndarray, totals: np.ndarray, randomness: noise.Randomness
) -> tuple[np.ndarray, np.ndarray]:
    """Positive counts as whole numbers that sum to at most their parent's total, and what each parent has left.

    Cells that are not kept can hold any number, so least squares leaves the kept ones as they are while they fit in; where
    they do not, they are projected on {x ≥ 0, Σx = total}.
    """
    if not len(counts):
        return np.zeros(0, dtype=np.int64), totals
    layer = Layer(parent, np.zeros(len(parent), dtype=np.int32), np.arange(len(parent)), np.arange(len(parent)))
    room = np.minimum(totals, layer.sum_up(counts, len(totals)))
    left, values, sizes = project(layer, counts.astype(float), room)
    whole = np.zeros(len(counts), dtype=np.int64)
    whole[left] = round_keeping_sums(values, sizes, room[layer.families], randomness)
    return whole, totals - room


def draw_below(tree: Tree, number: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
    """So many cells below each node of the last layer, every allowed one equally likely: nothing is known of them."""
    space, branches = Space(tree.domain), np.repeat(tree.branches(len(tree.layers)), number, axis=0)
    prefix = np.maximum(branches, 0).astype(np.int64) @ np.array(space.strides, dtype=np.int64)
    patterns, which = np.unique(branches >= 0, axis=0, return_inverse=True)
    cells = np.empty(len(prefix), dtype=np.int64)
    for i, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == i)
        fixed = frozenset(np.flatnonzero(pattern).tolist())
        cells[rows] = complete(space, prefix[rows], fixed, lambda bound: noise.integers_below(bound, len(bound), randomness))
    return cells
