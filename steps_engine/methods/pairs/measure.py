"""Measure: margins first; from their noisy values, which are public, groups of categories and an election; then tables.

Nothing here branches on an exact count: counts become contrasts, to which noise is added, and scores, which only an election
reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from schemas.plan import Draw, Plan
from schemas.plan import Table as Names
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import contrast_noise, contrast_variance, elect, joint_noise
from steps_engine.accounting.plans import allowance_in
from steps_engine.domain.contingency import covers, in_parallel, joint_table, largest_joint, margin
from steps_engine.domain.counting import Counts, most_rows, no_codes
from steps_engine.inference.contrasts import contrast
from steps_engine.inference.one_way import joined, smoothed
from steps_engine.methods.pairs.again import chosen
from steps_engine.methods.pairs.division import FEWEST_GROUPS, SIGMAS_PER_GROUP, SMALL, is_whole
from steps_engine.methods.pairs.structure import (
    Margins,
    Structure,
    Table,
    again_draws,
    elected_draws,
    is_centred,
    ungrouped,
)
from steps_engine.noise import Randomness
from steps_engine.scores import MOST_ROWS


def build(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> Structure:
    """Margins with their noise, groups that follow from them, and the tables of the plan or of its elections."""
    margins = measure_margins(domain, plan, counts, randomness)
    structure = Structure(margins, groups(margins), ())
    named = [tuple(domain.index(name) for name in names) for names in margins.draws if len(names) > 1]
    tables = tuple(table for table in named if min(structure.shape(table)) > 1)
    if not elected_draws(plan):
        return Structure(margins, structure.group, tables)
    others = (pair for pair in combinations(range(len(domain.sizes)), 2) if pair not in named)
    possible = tuple(pair for pair in others if min(structure.shape(pair)) > 1)
    return Structure(margins, structure.group, tables + elect_pairs(structure, counts, possible, randomness))


def measure_margins(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> Margins:
    """The number of rows and every one-way contrast plus its noise, in every measurement."""
    rows, one_way = _one_way(counts, domain.sizes)
    exact: dict[Names, np.ndarray] = {(): np.array([rows], dtype=np.int64)} | {
        (name,): contrast(table, is_centred(plan)) for name, table in zip(domain.names, one_way, strict=True)
    }
    sizes: dict[Names, tuple[int, ...]] = {(): ()} | {
        (name,): (size,) for name, size in zip(domain.names, domain.sizes, strict=True)
    }
    noisy: dict[Names, list[np.ndarray]] = {table: [] for table in exact}
    for draw in plan.draws:
        if draw.tables and max(map(len, draw.tables)) < 2:
            for table, values in noised(draw, exact, sizes, randomness).items():
                noisy[table].append(values)
    none = [np.zeros(0, dtype=np.int64)] * plan.measurements
    contrasts = tuple(np.stack(noisy[name,] or none) for name in domain.names)
    return Margins(domain, plan, _rows(noisy[()], rows, domain, plan), contrasts)


def _rows(noisy: list[np.ndarray], exact: int, domain: Domain, plan: Plan) -> np.ndarray:
    """In every measurement: an estimate within what a set may hold, or the exact number where that is published."""
    if not noisy:
        return np.full(plan.measurements, exact, dtype=np.int64)
    told: np.ndarray = np.clip(np.concatenate(noisy), 0, most_rows(domain))
    return told


def noised(
    draw: Draw, exact: Mapping[Names, np.ndarray], sizes: Mapping[Names, tuple[int, ...]], randomness: Randomness
) -> dict[Names, np.ndarray]:
    """The contrasts of a draw's tables plus noise. Joint noise is a vector for each cell that its tables share."""
    if not draw.is_joint:
        (table,) = draw.tables
        return {table: _alone(draw, exact[table], sizes[table], randomness)}
    cells = {exact[table].size for table in draw.tables}
    if len(cells) > 1:
        raise ValueError(f"draw {draw.name!r} measures tables of different cells together, which its noise does not protect")
    vectors = joint_noise(draw, cells.pop(), randomness)
    return {
        table: exact[table] + noise.reshape(exact[table].shape) for table, noise in zip(draw.tables, vectors.T, strict=True)
    }


def _alone(draw: Draw, exact: np.ndarray, sizes: tuple[int, ...], randomness: Randomness) -> np.ndarray:
    """One table's contrast plus noise of its own."""
    noise = contrast_noise(draw, sizes).draw(exact.size, randomness)
    noisy: np.ndarray = exact + noise.reshape(exact.shape)
    return noisy


def _one_way(counts: Counts, sizes: tuple[int, ...]) -> tuple[int, list[np.ndarray]]:
    """CONFIDENTIAL. The exact number of rows, and exact counts of every attribute's categories."""
    rows, found = 0, [np.zeros(size, dtype=np.int64) for size in sizes]
    for block in counts.blocks():
        rows += int(block.count.sum())
        for j, table in enumerate(found):
            table += _table(block, (j,), sizes)
    return rows, found


def _table(counts: Counts, attributes: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """CONFIDENTIAL. Exact counts of every combination of categories."""
    cell = np.zeros(len(counts.count), dtype=np.int64)
    for j in attributes:
        cell = cell * sizes[j] + counts.codes[:, j]
    shape = tuple(sizes[j] for j in attributes)
    return np.bincount(cell, weights=counts.count, minlength=int(np.prod(shape))).astype(np.int64).reshape(shape)


def groups(margins: Margins) -> tuple[np.ndarray, ...]:
    """Neighbouring categories together, until a group has enough rows to be told from the noise of a table's cell.

    Attributes with few categories, those that rules tie to others and those that analyses need stay as they are; and all do
    where the plan leaves it to tables to tell of margins.
    """
    domain, plan = margins.domain, margins.plan
    if not elected_draws(plan) and is_whole(domain, allowance_in(plan)):
        return tuple(np.arange(size) for size in domain.sizes)
    whole = ungrouped(plan, domain)
    total, errors = max(float(margins.total.mean()), 1.0), unit_errors(plan, domain.names)
    found = []
    for j, size in enumerate(domain.sizes):
        if size <= SMALL or j in whole:
            found.append(np.arange(size))
        else:
            found.append(joined(_smooth(margins, j, total), min(SIGMAS_PER_GROUP * errors[j], total / FEWEST_GROUPS)))
    return tuple(found)


def _smooth(margins: Margins, attribute: int, total: float) -> np.ndarray:
    """A margin from all measurements, made nonnegative and smooth."""
    measured = margins.estimates(attribute)
    return smoothed(measured.mean(axis=0), margins.variance(attribute) / len(measured), total)


def unit_errors(plan: Plan, names: tuple[str, ...]) -> list[float]:
    """Of each attribute the standard deviation of noise on what one row changes by 1, in the mean of the tables it is in."""
    elected = [contrast_variance(draws[0], ()) ** 0.5 for draws in elected_draws(plan)]
    found: dict[str, list[float]] = {name: list(elected) for name in names}
    for draw in plan.draws:
        for table in (table for table in draw.tables if len(table) > 1):
            for name in table:
                found[name].append(contrast_variance(draw, ()) ** 0.5)
    return [sum(errors) / len(errors) if errors else 0.0 for errors in found.values()]


def elect_pairs(structure: Structure, counts: Counts, possible: tuple[Table, ...], randomness: Randomness) -> tuple[Table, ...]:
    """One pair after the other, by the rows that independence would misplace: ½ Σ |count − whole number from noisy margins|.

    The margins are public by now, so one row changes a score by at most ½: whatever the candidates, within an interval of 1.
    """
    plan, left, won = structure.margins.plan, list(possible), list[Table]()
    scores = dict(zip(possible, misfits(structure, counts, possible), strict=True))
    for draw in (draw for draw in plan.draws if draw.kind == "election"):
        if not left:
            break
        ballot = np.array([[scores[pair] for pair in left]])
        won.append(left.pop(int(elect(draw, ballot, np.ones(ballot.shape, dtype=bool), randomness)[0])))
    return tuple(won)


def misfits(structure: Structure, counts: Counts, pairs: tuple[Table, ...]) -> list[float]:
    """CONFIDENTIAL. Of each pair its score, less what its noise would cost: exact, halves of whole numbers."""
    shares = [one_way_shares(structure, j) for j in range(len(structure.sizes))]
    total = float(structure.margins.total.mean())
    error = contrast_variance(elected_draws(structure.margins.plan)[0][0], ()) ** 0.5

    def score(pair: Table, table: np.ndarray) -> float:
        a, b = pair
        model = np.rint(total * np.outer(shares[a], shares[b])).astype(np.int64)
        price = min(round(0.8 * error * (len(shares[a]) - 1) * (len(shares[b]) - 1)), MOST_ROWS)
        return float(np.abs(table - model).sum() - price) / 2

    return [score(pair, table) for pair, table in zip(pairs, exact_tables(structure, counts, pairs), strict=True)]


def one_way_shares(structure: Structure, attribute: int) -> np.ndarray:
    """Of the groups of an attribute, from all measurements."""
    margins, total = structure.margins, max(float(structure.margins.total.mean()), 1.0)
    shares: np.ndarray = np.bincount(structure.group[attribute], weights=_smooth(margins, attribute, total)) / total
    return shares


def exact_tables(structure: Structure, counts: Counts, tables: Sequence[Table]) -> list[np.ndarray]:
    """CONFIDENTIAL. Exact counts of each table's groups, its attributes in rising order, from few passes over each block."""
    found = [np.zeros(structure.shape(table), dtype=np.int64) for table in tables]
    passes: list[tuple[Table, list[int]]] = []
    for block in counts.blocks() if tables else ():
        passes = passes or covers(tables, structure.sizes, largest_joint(len(block.count)))
        _add_tables(found, tables, passes, _grouped(structure, block), structure.sizes)
    return found


def _add_tables(
    found: list[np.ndarray],
    tables: Sequence[Table],
    passes: list[tuple[Table, list[int]]],
    rows: Counts,
    sizes: tuple[int, ...],
) -> None:
    """CONFIDENTIAL. Adds what a block of rows counts."""
    nowhere = np.zeros(len(rows.count), dtype=np.int64)

    def count(one_pass: tuple[Table, list[int]]) -> None:
        attributes, served = one_pass
        joint = joint_table(rows, nowhere, 1, attributes, sizes)
        for i in served:
            found[i] += margin(joint, attributes, tables[i]).astype(np.int64).reshape(found[i].shape)

    in_parallel(count, passes)  # each table is served by one pass alone


def _grouped(structure: Structure, counts: Counts) -> Counts:
    codes = no_codes(len(counts.count), structure.sizes)
    for j, group in enumerate(structure.group):
        codes[:, j] = group.take(counts.codes[:, j])
    return Counts(codes, counts.count)


def sanitize(structure: Structure, counts: Counts, randomness: Randomness) -> tuple[Structure, list[np.ndarray]]:
    """Of every table its contrast plus noise: measurements × the contrast's shape. Every cell gets noise, empty ones too.

    Then, where the plan says so, of some pairs once more: which, follows from the noisy ones.
    """
    margins = structure.margins
    exact = [contrast(table, margins.centred) for table in exact_tables(structure, counts, structure.tables)]
    named = [structure.names(table) for table in structure.tables]
    contrasts = dict(zip(named, exact, strict=True))
    sizes = {names: structure.shape(table) for names, table in zip(named, structure.tables, strict=True)}
    noisy: dict[Names, list[np.ndarray]] = {names: [] for names in named}
    for draw in margins.plan.draws:
        if draw.tables and contrasts.keys() >= set(draw.tables):
            for names, values in noised(draw, contrasts, sizes, randomness).items():
                noisy[names].append(values)
    for names, draws in zip(named, structure.draws, strict=True):
        for draw in (draw for draw in draws if draw.of == "elected"):
            noisy[names].append(_alone(draw, contrasts[names], sizes[names], randomness))
    first, again = [np.stack(noisy[names]) for names in named], again_draws(margins.plan)
    twice = chosen(structure, first, len(again))
    for table, draws in zip(twice, again, strict=False):
        names = structure.names(table)
        first.append(np.stack([_alone(draw, contrasts[names], sizes[names], randomness) for draw in draws]))
    return replace(structure, again=twice), first
