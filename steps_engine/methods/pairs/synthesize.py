"""Rows: a base that follows a spanning tree of the strongest pairs, weighted to agree with everything that was measured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from steps_engine.domain.cells import Space
from steps_engine.domain.counting import no_codes
from steps_engine.domain.encoding import decode
from steps_engine.inference.reweighting import reweight
from steps_engine.methods.cascade.synthesize import choices, leading_key, restrict
from steps_engine.methods.pairs.estimate import Estimate, estimate
from steps_engine.methods.pairs.structure import Pair, Structure
from steps_engine.noise import Randomness, permutation, uniform

BASE = 4  # rows of the base for every row of a set
LARGEST_BASE = 2**20
RULES_FIRST = 1e3  # nats: attributes that rules tie are neighbours in the tree
LEAST_PART = 1e-3  # of a cell's count, squared errors below which no weight is worth fitting


def synthesize(structure: Structure, noisy: list[np.ndarray], which_set: int, randomness: Randomness) -> pa.Table:
    """The records of one set (1…m)."""
    plan, domain = structure.margins.plan, structure.margins.domain
    split = plan.budget == "split"
    found = estimate(structure, noisy, which_set - 1 if split else 0, None if split or plan.sets == 1 else randomness)
    rows = round(found.total) if plan.total == "estimated" else int(structure.margins.total[0])
    return decode(codes_of(structure, found, rows, randomness), domain, randomness)


def codes_of(structure: Structure, found: Estimate, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of codes."""
    domain = structure.margins.domain
    codes = no_codes(rows, domain.sizes)
    if not rows:
        return codes
    information = found.information(structure.pairs)
    base = base_rows(structure, found, information, min(BASE * rows, max(rows, LARGEST_BASE)), randomness)
    weight = weights(structure, found, base)
    taken = base[sample(base, weight, rows, _by_weight(structure, information), structure.sizes, randomness)]
    for j, group in enumerate(structure.group):
        codes[:, j] = taken[:, j]
        if structure.sizes[j] < domain.sizes[j]:
            within = np.zeros((structure.sizes[j], domain.sizes[j]))
            within[group, np.arange(domain.sizes[j])] = found.fine[j] + 1e-15
            codes[:, j] = by_quota(taken[:, j], within, randomness)
    return codes


def spanning_tree(attributes: int, pairs: tuple[Pair, ...], worth: np.ndarray) -> list[int]:
    """The pairs of a maximum spanning forest (Kruskal 1956), those worth most first."""
    root, chosen = np.arange(attributes), []
    for place in np.argsort(-worth, kind="stable"):
        a, b = pairs[place]
        if root[a] != root[b]:
            chosen.append(int(place))
            root[root == root[b]] = root[a]
    return chosen


def base_rows(structure: Structure, found: Estimate, information: np.ndarray, rows: int, randomness: Randomness) -> np.ndarray:
    """Rows × attributes of groups: each attribute by quota given its neighbour nearer to the root, within the rules."""
    domain = structure.margins.domain
    codes = no_codes(rows, structure.sizes)
    known: list[int] = []
    for j, above, table in walk(structure, found, information):
        parent = codes[:, above] if above is not None else np.zeros(rows, dtype=np.int64)
        shares = np.where(table.sum(axis=1, keepdims=True) > 0, table, found.coarse[j])
        if structure.sizes[j] == domain.sizes[j]:
            parent, shares = restrict(parent, shares, *choices(domain, codes, j, known))
        codes[:, j] = by_quota(parent, shares, randomness)
        known.append(j)
    return codes


def walk(structure: Structure, found: Estimate, information: np.ndarray) -> list[tuple[int, int | None, np.ndarray]]:
    """Every attribute once, from the roots of the spanning forest outwards, with its neighbour and their table."""
    tied = [set(component.attributes) for component in Space(structure.margins.domain).components]
    worth = information + RULES_FIRST * np.array([any({a, b} <= each for each in tied) for a, b in structure.pairs])
    beside: dict[int, list[tuple[int, np.ndarray]]] = {j: [] for j in range(len(structure.sizes))}
    for edge in spanning_tree(len(structure.sizes), structure.pairs, worth):
        (a, b), table = structure.pairs[edge], found.tables[edge]
        beside[a].append((b, table))
        beside[b].append((a, table.T))
    steps: list[tuple[int, int | None, np.ndarray]] = []
    met: set[int] = set()
    for first in range(len(structure.sizes)):
        if first in met:
            continue
        met.add(first)
        open_: list[tuple[int, int | None, np.ndarray]] = [(first, None, found.coarse[first][None])]
        for step in open_:
            steps.append(step)
            for b, table in beside[step[0]]:
                if b not in met:
                    met.add(b)
                    open_.append((b, step[0], table))
    return steps


def by_quota(parent: np.ndarray, shares: np.ndarray, randomness: Randomness) -> np.ndarray:
    """A category for each row: within each parent as many as its shares say, up to one, in random order."""
    parent = parent.astype(np.int64)  # codes are as narrow as they come
    order = np.argsort(parent[mixed := permutation(len(parent), randomness)], kind="stable")
    order = mixed[order]
    size = np.bincount(parent, minlength=len(shares))
    above = parent[order]
    first = (np.cumsum(size) - size)[above]
    place = (np.arange(len(parent)) - first + uniform(len(shares), randomness)[above]) / size[above]
    ladder = np.cumsum(shares, axis=1)
    rungs = (ladder / np.maximum(ladder[:, -1:], 1e-300) + np.arange(len(shares))[:, None]).ravel()
    child = np.searchsorted(rungs, above + np.minimum(place, 1 - 1e-9), side="right") - above * shares.shape[1]
    drawn = np.empty(len(parent), dtype=np.int64)
    drawn[order] = np.minimum(child, shares.shape[1] - 1)
    return drawn


def weights(structure: Structure, found: Estimate, base: np.ndarray) -> np.ndarray:
    """Weights with which the base agrees with every pair as far as its noise demands."""
    if not structure.pairs:
        return np.ones(len(base))
    part = len(base) / found.total
    cells = [base[:, a].astype(np.int32) * structure.sizes[b] + base[:, b].astype(np.int32) for a, b in structure.pairs]
    wanted = [table.ravel() * len(base) for table in found.tables]
    variances = [
        part * np.maximum(variance, LEAST_PART * found.total * table.ravel() + 1)
        for variance, table in zip(found.variances, found.tables, strict=True)
    ]
    return reweight(cells, wanted, variances)


def _by_weight(structure: Structure, information: np.ndarray) -> list[int]:
    """Attributes, those that tell most of others first."""
    told = np.zeros(len(structure.sizes))
    for (a, b), nats in zip(structure.pairs, information, strict=True):
        told[[a, b]] += nats
    return [int(j) for j in np.argsort(-told, kind="stable")]


def sample(
    base: np.ndarray, weight: np.ndarray, rows: int, order: list[int], sizes: tuple[int, ...], randomness: Randomness
) -> np.ndarray:
    """Systematic sampling along rows that are alike, in random order: counts are those of the weights up to one row."""
    alike = np.argsort(leading_key(base, order, sizes), kind="stable")
    ends = np.cumsum(weight[alike])
    place = (permutation(rows, randomness) + uniform(1, randomness)) * (ends[-1] / rows)
    taken: np.ndarray = alike[np.minimum(np.searchsorted(ends, place, side="right"), len(base) - 1)]
    return taken
