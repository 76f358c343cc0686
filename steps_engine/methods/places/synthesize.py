"""Rows: the nation's model with the places of one level as an attribute beside others, and then every finest place its rows.

Rows follow a spanning tree of the strongest pairs and are weighted to agree with all tables, as those of pairs; in which
place of the level a row lies is one of the attributes. Whole numbers of rows for every place at every level come from least
squares over levels; rows that are too many in a place go to one that has too few, and within a place its finest places are
filled at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from steps_engine.domain.counting import most_rows, no_codes
from steps_engine.inference.place_tables import Of, depths
from steps_engine.inference.raking import raked
from steps_engine.inference.rounding import whole_numbers
from steps_engine.methods.pairs.estimate import Estimate, estimate
from steps_engine.methods.pairs.structure import Margins, Structure, Table
from steps_engine.methods.pairs.synthesize import agreeing, base_rows, base_size, by_weight, in_categories, weights
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


def country_of(measured: Measured, which_set: int, randomness: Randomness) -> tuple[Country, int]:
    """What the rows of one set (1…m) follow, and how many there are."""
    plan = measured.nation.margins.plan
    split = plan.budget == "split"
    made = country(measured, which_set - 1 if split else 0, None if split or plan.sets == 1 else randomness)
    if plan.total != "estimated":
        return made, int(measured.nation.margins.total[0])
    estimated = round(round(float(made.joined.rows.value[0][0, 0]), 6))
    return made, min(max(estimated, 1), most_rows(measured.places.domain))


def source(measured: Measured, number: int, randomness: Randomness) -> Drawn:
    """Of more rows: a plausible country; of split sets the estimate."""
    plan = measured.nation.margins.plan
    made = country(measured, measurement_of(plan, number), randomness if plan.measurements == 1 else None)
    return Drawn(lambda rows, more: codes_of(measured, made, rows, more))


def country(measured: Measured, measurement: int, drawn: Randomness | None) -> Country:
    """One measurement; with randomness a draw of what it leaves open."""
    nation = estimate(measured.nation, measured.of_nation, measurement, drawn)
    rows = joined(measured, measurement, drawn)
    found = joined(measured, measurement) if drawn is not None else rows
    level = max((depth for of, depth in depths(measured.tables).items() if of), default=1)
    there = [np.maximum(each[:, 0], 0.0) for each in rows.rows.value]
    shares = [each / max(each.sum(), 1.0) for each in there]
    base, wanted = dict[Table, Told](), dict[Table, Told]()
    for (of, depth), table in _by_place(measured, found, nation, there, level, drawn).items():
        variance = found.of(of).variance[min(depth, found.of(of).depth)]
        each = _in_groups(measured, of, table), 0.0 if drawn is not None else float(variance.mean())
        wanted[_axes(measured, of, depth, level)] = each
        base |= {_axes(measured, of, level, level): each} if depth == level and len(of) == 1 else {}
    first = _with_places(measured, nation, level, shares[level : level + 1], base)
    return Country(first, _with_places(measured, nation, level, [shares[level], *shares[1:level]], wanted), level, rows)


Told = tuple[np.ndarray, float]  # shares of attributes' groups by place, places first, and the variance of a count


def _by_place(
    measured: Measured, found: Joined, nation: Estimate, rows: list[np.ndarray], level: int, drawn: Randomness | None
) -> dict[tuple[Of, int], np.ndarray]:
    """Of attributes and pairs, at every level that tells of them, shares of places × categories under rules.

    They have the rows of places and what the nation has; those by two attributes what was found of each of both. At the level
    of the base every attribute has a table.
    """
    tables = dict[tuple[Of, int], np.ndarray]()
    for of in sorted(found.contrasts, key=len):
        own, told = _of_nation(measured, nation, of), {*range(1, found.of(of).depth + 1), *([level] if len(of) == 1 else [])}
        shares = shares_by_place(measured.places, found, of, rows, own.ravel(), level, drawn)
        for depth in sorted(told):
            there = rows[depth] / max(rows[depth].sum(), 1.0)
            margins = [((0,), there), (tuple(range(1, len(of) + 1)), own)]
            margins += [((0, axis), tables[(j,), depth]) for axis, j in enumerate(of, start=1) if len(of) > 1]
            cells = shares[depth - 1].reshape(-1, *own.shape) * there.reshape(-1, *(1 for _ in of))
            tables[of, depth] = raked(cells, margins, measured.places.allowed(depth, of))
    return tables


def _of_nation(measured: Measured, nation: Estimate, of: Of) -> np.ndarray:
    """Shares of all, category by category; of two attributes as they go together in the nation, where that was measured."""
    lowered = [measured.places.others.index(j) for j in of]
    even = reduce(np.multiply.outer, [nation.fine[j] for j in lowered])
    together = nation.pairs.get(tuple(lowered))
    if together is None:
        return even
    groups = [measured.nation.group[j] for j in lowered]
    apart = reduce(np.multiply.outer, [nation.coarse[j] for j in lowered])
    shares: np.ndarray = even * (together / np.maximum(apart, 1e-300))[np.ix_(*groups)]
    return shares


def _in_groups(measured: Measured, of: Of, table: np.ndarray) -> np.ndarray:
    """Places × groups of categories."""
    for axis, j in enumerate(of, start=1):
        group = measured.nation.group[measured.places.others.index(j)]
        table = np.add.reduceat(table, np.flatnonzero(np.diff(group, prepend=-1)), axis=axis)
    return table


def _axes(measured: Measured, of: Of, level: int, finest: int) -> Table:
    """The one that has the places of a level (their own place, or behind all others), and the attributes."""
    return measured.places.attribute if level == finest else len(measured.places.domain.sizes) + level - 1, *of


def _with_places(
    measured: Measured, found: Estimate, level: int, shares: list[np.ndarray], told: dict[Table, Told]
) -> tuple[Structure, Estimate]:
    """The nation's structure and estimate with attributes more: places of a level in their place, coarser ones behind."""
    places, nation = measured.places, measured.nation
    at, lift, behind = places.attribute, places.others, shares[1:]
    tables = {tuple(sorted(of)): table.transpose(np.argsort(of)) for of, (table, _) in told.items()}
    variances = [np.full(table.size, left) for table, left in told.values()]
    margins = Margins(places.at_level(level), nation.margins.plan, nation.margins.total, ())
    group = (*nation.group[:at], np.arange(len(shares[0])), *nation.group[at:], *(np.arange(len(each)) for each in behind))
    named = (*(tuple(lift[j] for j in table) for table in nation.tables), *tables)
    pairs = {of: table for of, table in tables.items() if len(of) == 2}
    return Structure(margins, group, named), Estimate(
        found.total,
        [*found.fine[:at], shares[0], *found.fine[at:], *behind],
        [*found.coarse[:at], shares[0], *found.coarse[at:], *behind],
        [*found.tables, *tables.values()],
        [*found.variances, *variances],
        {tuple(lift[j] for j in pair): table for pair, table in found.pairs.items()} | pairs,
    )


def codes_of(measured: Measured, made: Country, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of codes, every finest place with its rows."""
    if not rows:
        return no_codes(rows, measured.places.domain.sizes)
    base, (wanted, goal) = base_of(measured, made, rows, randomness), made.wanted
    order = by_weight(wanted, goal.information(wanted.tables))
    taken = agreeing(wanted, goal, base, weights(wanted, goal, base), rows, order, randomness)
    drawn = in_categories(*made.base, taken, randomness)
    return in_places(measured, made, drawn, place_rows(measured, made, rows, randomness)[-1], randomness)


def base_of(measured: Measured, made: Country, rows: int, randomness: Randomness) -> np.ndarray:
    """What so many rows are taken from: rows × attributes of groups, of places those of the country's level, and behind them
    the coarser places of its rows.
    """
    places, (structure, found) = measured.places, made.base
    base = base_rows(structure, found, found.information(structure.tables), base_size(rows), randomness)
    lies = base[:, places.attribute]
    above = (places.within(made.level, level)[lies].astype(base.dtype) for level in range(1, made.level))
    return np.asfortranarray(np.column_stack([base, *above]))


def in_places(measured: Measured, made: Country, drawn: np.ndarray, finest: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Rows that lie in places of the country's level, moved so that every finest place has its rows, and under rules."""
    places = measured.places
    codes = no_codes(len(drawn), places.domain.sizes)
    wanted = np.bincount(places.within(places.finest, made.level), finest, places.sizes[made.level]).astype(np.int64)
    lies = settled(drawn[:, places.attribute].astype(np.int64), wanted, randomness)
    codes[:] = drawn
    codes[:, places.attribute] = filled(lies, finest, randomness)
    keep_rules(places, codes, randomness)
    return codes


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
