"""Rows: a base that follows a spanning tree of the strongest pairs, weighted to agree with everything that was measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from steps_engine.domain.cells import Space
from steps_engine.domain.counting import no_codes
from steps_engine.inference.exchanging import exchanged
from steps_engine.inference.reweighting import SWEEPS, TRUST, reweight_tables, tables_of
from steps_engine.methods.cascade.synthesize import choices, leading_key, restrict
from steps_engine.methods.pairs.estimate import Estimate, estimate, mask_of
from steps_engine.methods.pairs.structure import Structure, Table, is_posterior
from steps_engine.methods.sources import Drawn, measurement_of
from steps_engine.noise import Randomness, permutation, uniform

BASE, MOST_BASE = 4, 16  # rows of the base for every row of a set; where rows are few, more
CHEAP_BASE, LARGEST_BASE = 2**17, 2**20
CHEAP_VISITS = 2**25  # of a row of the base to a table
RULES_FIRST = 1e3  # nats: attributes that rules tie are neighbours in the tree
LEAST_PART = 1e-3  # of a cell's count, squared errors below which no weight is worth fitting
CROWDED = 1.0  # the same for each dimension of a table per row that there is to weigh, by the trust in the rows
AGAIN = 5  # sweeps over rows that agree but for what sampling changed
BROUGHT_BACK = 2  # times


def source(structure: Structure, noisy: list[np.ndarray], number: int, randomness: Randomness) -> Drawn:
    """Of more rows: a plausible draw of everything that was measured, as a set of its own; of split sets the estimate."""
    plan = structure.margins.plan
    found = estimate(structure, noisy, measurement_of(plan, number), randomness if plan.measurements == 1 else None)
    return Drawn(lambda rows, more: codes_of(structure, found, rows, more))


def codes_of(structure: Structure, found: Estimate, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of codes."""
    if not rows:
        return no_codes(rows, structure.margins.domain.sizes)
    information, near = found.information(structure.tables), is_exchanged(structure)
    size = base_size(rows, len(structure.tables)) if near else base_size(rows)
    base = base_rows(structure, found, information, size, randomness)
    weight = weights(structure, found, base)
    taken = agreeing(structure, found, base, weight, rows, by_weight(structure, information), randomness)
    if near:
        taken = exchanged(taken, base, weight, structure.sizes, randomness)
    return in_categories(structure, found, taken, randomness)


def is_exchanged(structure: Structure) -> bool:
    """Whether rows are to be near in triples as well: where these were measured, rows agree with them by then."""
    return not trunk(structure) and not is_posterior(structure.margins.plan)


def in_categories(structure: Structure, found: Estimate, taken: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Rows of groups as rows of categories."""
    codes = no_codes(len(taken), structure.margins.domain.sizes)
    for j in range(len(structure.group)):
        codes[:, j] = ungrouped(structure, found, j, taken[:, j], randomness)
    return codes


def ungrouped(structure: Structure, found: Estimate, j: int, groups: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Categories of an attribute, given their groups."""
    size = structure.margins.domain.sizes[j]
    if structure.sizes[j] == size:
        return groups
    within = np.zeros((structure.sizes[j], size))
    within[structure.group[j], np.arange(size)] = found.fine[j] + 1e-15
    return by_quota(groups, within, randomness)


def base_size(rows: int, tables: int = CHEAP_VISITS // CHEAP_BASE) -> int:
    """More rows where they are cheap to weigh: few, or of few tables.

    >>> base_size(45_000) // 45_000, base_size(45_000, 105) // 45_000, base_size(10**4, 105) // 10**4, base_size(2 * 10**6)
    (4, 7, 16, 2000000)
    """
    cheap = max(CHEAP_BASE, CHEAP_VISITS // max(tables, 1))
    return min(max(BASE * rows, min(MOST_BASE * rows, cheap)), max(rows, LARGEST_BASE))


def spanning_tree(attributes: int, pairs: tuple[Table, ...], worth: np.ndarray, together: Table = ()) -> list[int]:
    """The pairs of a maximum spanning forest (Kruskal 1956), those worth most first; some attributes are together before."""
    root, chosen = np.arange(attributes), []
    root[list(together)] = min(together, default=0)
    for place in np.argsort(-worth, kind="stable"):
        a, b = pairs[place][:2]
        if len(pairs[place]) == 2 and root[a] != root[b]:
            chosen.append(int(place))
            root[root == root[b]] = root[a]
    return chosen


def base_rows(structure: Structure, found: Estimate, information: np.ndarray, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of groups: cells of the trunk, then each attribute by quota given its neighbour nearer to the trunk."""
    domain = structure.margins.domain
    codes = no_codes(rows, structure.sizes)
    known = list(trunk(structure))
    if known:
        cells = _begun(structure, found, tuple(known))
        place = by_quota(np.zeros(rows, dtype=np.int64), cells.reshape(1, -1), randomness)
        codes[:, known] = np.stack(np.unravel_index(place, cells.shape), axis=1)
    for j, above, table in walk(structure, found, information, tuple(known))[len(known) :]:
        parent = codes[:, above] if above is not None else np.zeros(rows, dtype=np.int64)
        shares = np.where(table.sum(axis=1, keepdims=True) > 0, table, found.coarse[j])
        if structure.sizes[j] == domain.sizes[j]:
            parent, shares = restrict(parent, shares, *choices(domain, codes, j, known))
        codes[:, j] = by_quota(parent, shares, randomness)
        known.append(j)
    return codes


def _begun(structure: Structure, found: Estimate, first: Table) -> np.ndarray:
    """The trunk's table. Margins of a few rows may contradict the rules, which leaves no cell: then each allowed one alike."""
    cells, mask = found.tables[structure.tables.index(first)], mask_of(structure, first)
    return cells if mask is None or cells.any() else mask.astype(float)


def trunk(structure: Structure) -> Table:
    """The attributes that rows begin with: those of the measured table of most cells, if it has more than two."""
    larger = [table for table in structure.tables if len(table) > 2]
    return max(larger, key=lambda table: math.prod(structure.shape(table)), default=())


def walk(
    structure: Structure, found: Estimate, information: np.ndarray, first: Table
) -> list[tuple[int, int | None, np.ndarray]]:
    """Every attribute once: those that are first, as of the trunk, then outwards along the spanning forest, with its neighbour
    and their table.
    """
    tied = [set(component.attributes) for component in Space(structure.margins.domain).components]
    told = dict(zip(structure.tables, information.tolist(), strict=True))
    pairs = tuple(found.pairs)
    implied = tuple(pair for pair in pairs if pair not in told)
    told |= dict(zip(implied, found.information(implied).tolist(), strict=True))
    worth = np.array([told[pair] + RULES_FIRST * any(set(pair) <= each for each in tied) for pair in pairs])
    beside: dict[int, list[tuple[int, np.ndarray]]] = {j: [] for j in range(len(structure.sizes))}
    for edge in spanning_tree(len(structure.sizes), pairs, worth, first):
        (a, b), table = pairs[edge], found.pairs[pairs[edge]]
        beside[a].append((b, table))
        beside[b].append((a, table.T))
    steps: list[tuple[int, int | None, np.ndarray]] = []
    met: set[int] = set()
    for roots in [first, *((j,) for j in range(len(structure.sizes)))]:
        if met.intersection(roots):
            continue
        met.update(roots)
        open_: list[tuple[int, int | None, np.ndarray]] = [(j, None, found.coarse[j][None]) for j in roots]
        for step in open_:
            steps.append(step)
            for b, table in beside[step[0]]:
                if b not in met:
                    met.add(b)
                    open_.append((b, step[0], table))
    return steps


def by_quota(parent: np.ndarray, shares: np.ndarray, randomness: Randomness) -> np.ndarray:
    """A category for each row: within each parent as many as its shares say, up to one, in random order."""
    parent = parent.astype(np.min_scalar_type(len(shares)))  # up to 16 bits are sorted by radix
    order = np.argsort(parent[mixed := permutation(len(parent), randomness)], kind="stable")
    order = mixed[order]
    size = np.bincount(parent, minlength=len(shares))
    above = np.repeat(np.arange(len(shares)), size)
    first = np.repeat(np.cumsum(size) - size, size)
    place = (np.arange(len(parent)) - first + uniform(len(shares), randomness)[above]) / size[above]
    ladder = np.cumsum(shares, axis=1)
    rungs = (ladder / np.maximum(ladder[:, -1:], 1e-300) + np.arange(len(shares))[:, None]).ravel()
    child = rungs_below(rungs, above + np.minimum(place, 1 - 1e-9)) - above * shares.shape[1]
    drawn = np.empty(len(parent), dtype=np.int64)
    drawn[order] = np.minimum(child, shares.shape[1] - 1)
    return drawn


def rungs_below(rungs: np.ndarray, places: np.ndarray) -> np.ndarray:
    """How many rungs are no higher than each place: both rise, and rungs are few, so that these are looked up in the places."""
    met = np.searchsorted(places, rungs, side="left")
    return np.cumsum(np.bincount(met, minlength=len(places) + 1)[: len(places)])


def agreeing(
    structure: Structure,
    found: Estimate,
    base: np.ndarray,
    weight: np.ndarray,
    rows: int,
    order: list[int],
    randomness: Randomness,
) -> np.ndarray:
    """Rows taken from the base by weight, and again from themselves: few change then, so that chance moves little.

    Then what taking rows has moved is brought back: to what the weights had settled on, not once more to what is noisy.
    """
    base = rows_at(base, sample(base, weight, rows, order, structure.sizes, randomness))
    weight = weights(structure, found, base, AGAIN)
    settled = tables_of(base, structure.sizes, structure.tables, weight)
    base = rows_at(base, sample(base, weight, rows, order, structure.sizes, randomness))
    found = replace(found, tables=settled, variances=[np.zeros(table.size) for table in settled])
    for _ in range(BROUGHT_BACK):
        weight = weights(structure, found, base, AGAIN)
        base = rows_at(base, sample(base, weight, rows, order, structure.sizes, randomness))
    return base


def rows_at(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """An attribute's codes stay side by side."""
    return rows.T.take(places, axis=1).T


def weights(structure: Structure, found: Estimate, rows: np.ndarray, sweeps: int = SWEEPS, each: int = 1) -> np.ndarray:
    """Weights with which rows agree with every table as far as its noise demands, and as far as so few rows can."""
    return reweight_tables(rows, structure.sizes, structure.tables, *demands(found, len(rows)), sweeps, each)


def demands(found: Estimate, rows: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of every table what so many rows are to count, and how far they may be off."""
    part, dimensions = rows / found.total, sum(np.prod([size - 1 for size in table.shape]) for table in found.tables)
    least = LEAST_PART + CROWDED * dimensions / (TRUST * rows)
    variances = [
        part * np.maximum(variance.reshape(table.shape), least * found.total * table + 1)
        for variance, table in zip(found.variances, found.tables, strict=True)
    ]
    return [table * rows for table in found.tables], variances


def by_weight(structure: Structure, information: np.ndarray) -> list[int]:
    """Attributes, those of the trunk first, then those that tell most of others."""
    told = np.zeros(len(structure.sizes))
    told[list(trunk(structure))] = RULES_FIRST
    for table, nats in zip(structure.tables, information, strict=True):
        told[[*table]] += nats
    return [int(j) for j in np.argsort(-told, kind="stable")]


def sample(
    base: np.ndarray, weight: np.ndarray, rows: int, order: list[int], sizes: tuple[int, ...], randomness: Randomness
) -> np.ndarray:
    """Systematic sampling along rows that are alike, in random order: counts are those of the weights up to one row."""
    alike = np.argsort(leading_key(base, order, sizes), kind="stable")
    ends, lot = np.cumsum(weight[alike]), permutation(rows, randomness)
    place = (np.arange(rows) + uniform(1, randomness)) * (ends[-1] / rows)  # rising: looked up one after the other
    taken: np.ndarray = alike[np.minimum(np.searchsorted(ends, place, side="right"), len(base) - 1)][lot]
    return taken
