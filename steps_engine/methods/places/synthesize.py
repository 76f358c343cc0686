"""Rows: the nation's model with the places of one level as an attribute beside others, and then every finest place its rows.

Rows follow a spanning tree of the strongest pairs and are weighted to agree with all tables, as those of pairs; in which
place of the level a row lies is one of the attributes. Whole numbers of rows for every place at every level come from least
squares over levels; rows that are too many in a place go to one that has too few, and within a place its finest places are
filled at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from steps_engine.domain.counting import most_rows, no_codes
from steps_engine.domain.encoding import decode
from steps_engine.inference.place_tables import depths
from steps_engine.inference.raking import raked
from steps_engine.inference.rounding import whole_numbers
from steps_engine.methods.pairs.estimate import Estimate, estimate
from steps_engine.methods.pairs.structure import Margins, Structure, Table
from steps_engine.methods.pairs.synthesize import agreeing, base_rows, base_size, by_weight, in_categories
from steps_engine.methods.places.estimate import Joined, Measured, joined, shares_by_place
from steps_engine.methods.places.ruled import keep_rules
from steps_engine.methods.sources import Drawn, measurement_of
from steps_engine.noise import Randomness, permutation


@dataclass(frozen=True)
class Country:
    """A plausible country: what a base of rows is drawn from, and what rows are weighted to agree with."""

    base: tuple[Structure, Estimate]  # of the attributes, the places of the finest level that matters among them
    wanted: tuple[Structure, Estimate]  # with coarser levels behind them, as attributes too
    level: int
    joined: Joined


def synthesize(measured: Measured, which_set: int, randomness: Randomness) -> pa.Table:
    """The records of one set (1…m)."""
    plan = measured.nation.margins.plan
    split = plan.budget == "split"
    made = country(measured, which_set - 1 if split else 0, None if split or plan.sets == 1 else randomness)
    exact = plan.total != "estimated"
    rows = int(measured.nation.margins.total[0]) if exact else round(round(float(made.joined.rows.value[0][0, 0]), 6))
    rows = min(max(rows, 0 if exact else 1), most_rows(measured.places.domain))
    return decode(codes_of(measured, made, rows, randomness), measured.places.domain, randomness)


def source(measured: Measured, number: int, randomness: Randomness) -> Drawn:
    """Of more rows: a plausible country; of split sets the estimate."""
    plan = measured.nation.margins.plan
    made = country(measured, measurement_of(plan, number), randomness if plan.measurements == 1 else None)
    return Drawn(lambda rows, more: codes_of(measured, made, rows, more))


def country(measured: Measured, measurement: int, drawn: Randomness | None) -> Country:
    """One measurement; with randomness a draw of what it leaves open."""
    nation = estimate(measured.nation, measured.of_nation, measurement, drawn)
    rows = joined(measured, measurement, drawn)
    contrasts = joined(measured, measurement).contrasts if drawn is not None else rows.contrasts
    level = max((depth for j, depth in depths(measured.tables).items() if j is not None), default=1)
    there = [np.maximum(each[:, 0], 0.0) for each in rows.rows.value]
    shares = [each / max(each.sum(), 1.0) for each in there]
    base, wanted = dict[Table, Told](), dict[Table, Told]()
    for j, levels in contrasts.items():
        own, group = (of[measured.places.others.index(j)] for of in (nation.fine, measured.nation.group))
        by_place = shares_by_place(measured.places, levels, there, own, level, drawn)
        for depth, each in enumerate(by_place, start=1):
            left = 0.0 if drawn is not None else float(levels.variance[min(depth, levels.depth)].mean())
            found = _table(shares[depth], each, own, group, measured.places.allowed(depth, j))
            wanted |= {_axes(measured, j, depth, level): (found, left)} if depth <= levels.depth or depth == level else {}
            base |= {_axes(measured, j, level, level): (found, left)} if depth == level else {}
    first = _with_places(measured, nation, level, shares[level : level + 1], base)
    return Country(first, _with_places(measured, nation, level, [shares[level], *shares[1:level]], wanted), level, rows)


Told = tuple[np.ndarray, float]  # shares of an attribute's groups by place, places first, and the variance of a count


def _table(
    shares: np.ndarray, by_place: np.ndarray, own: np.ndarray, group: np.ndarray, allowed: np.ndarray | None
) -> np.ndarray:
    """Places × groups of categories, with the rows of places and the shares that all of them have together, under rules."""
    table = raked(shares[:, None] * by_place, [((0,), shares), ((1,), own)], allowed)
    summed: np.ndarray = np.add.reduceat(table, np.flatnonzero(np.diff(group, prepend=-1)), axis=1)
    return summed


def _axes(measured: Measured, attribute: int, level: int, finest: int) -> Table:
    """The attribute, and the one that has the places of a level: their own place, or behind all others."""
    return attribute, measured.places.attribute if level == finest else len(measured.places.domain.sizes) + level - 1


def _with_places(
    measured: Measured, found: Estimate, level: int, shares: list[np.ndarray], told: dict[Table, Told]
) -> tuple[Structure, Estimate]:
    """The nation's structure and estimate with attributes more: places of a level in their place, coarser ones behind."""
    places, nation = measured.places, measured.nation
    at, lift, behind = places.attribute, places.others, shares[1:]
    ordered = {(min(of), max(of)): each for of, each in told.items()}
    pairs = {(min(of), max(of)): table if of[0] > of[1] else table.T for of, (table, _) in told.items()}
    margins = Margins(places.at_level(level), nation.margins.plan, nation.margins.total, ())
    group = (*nation.group[:at], np.arange(len(shares[0])), *nation.group[at:], *(np.arange(len(each)) for each in behind))
    tables = (*(tuple(lift[j] for j in table) for table in nation.tables), *pairs)
    return Structure(margins, group, tables), Estimate(
        found.total,
        [*found.fine[:at], shares[0], *found.fine[at:], *behind],
        [*found.coarse[:at], shares[0], *found.coarse[at:], *behind],
        [*found.tables, *pairs.values()],
        [*found.variances, *(np.full(table.size, left) for table, left in ordered.values())],
        {tuple(lift[j] for j in pair): table for pair, table in found.pairs.items()} | pairs,
    )


def codes_of(measured: Measured, made: Country, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of codes, every finest place with its rows."""
    places = measured.places
    codes = no_codes(rows, places.domain.sizes)
    if not rows:
        return codes
    drawn = _agreeing(measured, made, rows, randomness)
    wanted = place_rows(measured, made, rows, randomness)
    lies = settled(drawn[:, places.attribute].astype(np.int64), wanted[made.level], randomness)
    codes[:] = drawn
    codes[:, places.attribute] = filled(lies, wanted[-1], randomness)
    keep_rules(places, codes, randomness)
    return codes


def _agreeing(measured: Measured, made: Country, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes, of places those of the country's level: a base, the coarser places of its rows, and weights."""
    places, (structure, found) = measured.places, made.base
    base = base_rows(structure, found, found.information(structure.tables), base_size(rows), randomness)
    lies = base[:, places.attribute]
    above = (places.within(made.level, level)[lies].astype(base.dtype) for level in range(1, made.level))
    base = np.asfortranarray(np.column_stack([base, *above]))
    wanted, goal = made.wanted
    order = by_weight(wanted, goal.information(wanted.tables))
    return in_categories(structure, found, agreeing(wanted, goal, base, rows, order, randomness), randomness)


def place_rows(measured: Measured, made: Country, rows: int, randomness: Randomness) -> list[np.ndarray]:
    """Whole rows of every place of every level, which add up to so many."""
    estimates = [each[:, 0] for each in made.joined.rows.value]
    part = rows / max(float(estimates[0][0]), 1.0)
    scaled = [np.full(1, float(rows)), *(np.round(each * part, 6) for each in estimates[1:])]
    return whole_numbers(measured.places.tree, scaled, randomness)


def settled(lies: np.ndarray, wanted: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Of every row its place, so that every place has as many as wanted: of those too many some, by chance, go to the next
    places that have too few, which mostly lie in the same place of the level above.
    """
    order = permutation(len(lies), randomness)
    order = order[np.argsort(lies[order], kind="stable")]
    here = np.bincount(lies, minlength=len(wanted))
    rank = np.arange(len(lies)) - np.repeat(np.cumsum(here) - here, here)
    moving = order[rank >= wanted[lies[order]]]
    found = lies.copy()
    found[moving] = np.repeat(np.arange(len(wanted)), np.maximum(wanted - here, 0))
    return found


def filled(lies: np.ndarray, finest: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Of every row its finest place: within each place in random order, as many as there are in each."""
    order = permutation(len(lies), randomness)
    order = order[np.argsort(lies[order], kind="stable")]
    found = np.empty(len(lies), dtype=np.int64)
    found[order] = np.repeat(np.arange(len(finest)), finest)
    return found
