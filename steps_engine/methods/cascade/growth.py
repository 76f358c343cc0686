"""The cascade f(X1) f(X2|X1) …: for each attribute one ragged tree over its predecessors, elected, then sanitized.

At a node the group of predecessors on which the attribute depends most is elected; `()`, to stop, competes. The leaves
hold the attribute's noisy histogram. Nothing here branches on an exact count: counts become scores, which only an
election reads, and histograms, which only Sanitize reads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import cast

import numpy as np

from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import elect, noise_of
from steps_engine.domain.contingency import covers, in_parallel, joint_table, largest_joint, margin
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.domain.nodes import Split
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.plan import MOST_CELLS, candidate_splits, chances, order_draws, prices, threshold, tree_draws
from steps_engine.noise import Randomness
from steps_engine.scores import MOST_ROWS, dependence, mean_of


def grow(domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> tuple[AttributeTree, ...]:
    """The trees of a plan, in its order. Where there is a single attribute nothing is elected, and no count is looked at."""
    if not plan.structure_is_drawn:
        return (AttributeTree(domain, _listed(domain, plan)[0], ((),), ()),)
    counts = cast(Counts, counts)
    rows = _rows_for_growing(domain, plan, counts, randomness)
    order = elect_order(domain, plan, counts, randomness)
    trees = []
    for position, prefix in enumerate(_prefixes(domain, counts, order)):
        draws = tree_draws(plan, domain.names[order[position]])
        scale = noise_of(draws.counts[0][-1]).width
        splits = candidate_splits(domain.sizes, order[:position], order[position], scale, rows)
        tree = AttributeTree(domain, order[position], splits, ())
        for draw in draws.elections:
            tree = _split(tree, prefix, draw, _prices(plan, tree, draw, scale, rows), randomness)
        trees.append(tree.tidy())
    return tuple(trees)


def elect_order(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> tuple[int, ...]:
    """The plan's order, or elected place by place: next comes what depends most on those placed (first: on all others).

    A candidate's score is the mean of its dependence on each; a mean of scores that move by less than 2 moves by less than 2.
    """
    left = _listed(domain, plan)
    draws = order_draws(plan)
    if not draws:
        return tuple(left)
    pairs, order = _pair_scores(domain, counts, left), list[int]()
    for draw in draws:
        scores = mean_dependence(pairs, left, order)
        everyone = np.ones((1, len(left)), dtype=bool)
        winner = elect(draw, scores[None, :], everyone, randomness)[0]
        order.append(left.pop(winner))
    return (*order, *left)


def _listed(domain: Domain, plan: Plan) -> list[int]:
    """The attributes in the order in which the plan lists their trees."""
    return [domain.index(name) for layer in plan.layers for name in layer.attributes or ()]


def mean_dependence(pairs: np.ndarray, candidates: list[int], placed: list[int]) -> np.ndarray:
    """Mean over the placed attributes, or over all other candidates where none is placed yet."""
    if placed:
        return mean_of(pairs[np.ix_(candidates, placed)], len(placed))
    return mean_of(pairs[np.ix_(candidates, candidates)], len(candidates) - 1)


def _pair_scores(domain: Domain, counts: Counts, attributes: list[int]) -> np.ndarray:
    """CONFIDENTIAL. Attributes × attributes: how much the two depend on each other; 0 on the diagonal."""
    pairs = np.zeros((len(domain.sizes),) * 2)
    for place, j in enumerate(attributes[:-1]):
        tree = AttributeTree(domain, j, ((), *((i,) for i in attributes[place + 1 :])), ())
        pairs[j, attributes[place + 1 :]] = _scores(tree, counts, np.arange(len(tree.splits)) > 0)[0, 1:]
    return pairs + pairs.T


def _rows_for_growing(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> int:
    """n̂ that decides which splits may compete: expected, known, or the plan's first draw. At most MOST_ROWS, so that no
    penalty is too large to be taken off a score."""
    if domain.expected_units is not None or plan.total != "estimated":
        return min(MOST_ROWS, domain.expected_units or int(counts.count.sum()))
    draw = next(draw for draw in plan.draws if draw.name == "total")
    return min(MOST_ROWS, max(1, int(counts.count.sum() + noise_of(draw).draw(1, randomness)[0])))


def _prefixes(domain: Domain, counts: Counts, order: tuple[int, ...]) -> Iterator[Counts]:
    """CONFIDENTIAL. For each attribute the rows to count: the table of it and its predecessors, where that is smaller."""
    number, cells = np.zeros(len(counts.codes), dtype=np.int64), 1
    counts = Counts(counts.codes, counts.count.astype(float))
    for position, j in enumerate(order, start=1):
        cells *= domain.sizes[j]
        if cells > len(number):
            yield from itertools.repeat(counts, len(order) - position + 1)
            return
        number *= domain.sizes[j]
        number += counts.codes[:, j]
        yield _prefix_table(domain, order[:position], np.bincount(number, weights=counts.count, minlength=cells))


def _prefix_table(domain: Domain, prefix: tuple[int, ...], table: np.ndarray) -> Counts:
    """CONFIDENTIAL. Occupied cells of a table of these attributes; the others are 0 and not looked at."""
    cell = np.flatnonzero(table)
    codes, rest = no_codes(len(cell), domain.sizes), cell.copy()
    for j in reversed(prefix):
        rest, codes[:, j] = np.divmod(rest, domain.sizes[j])
    return Counts(codes, table[cell])


def _prices(plan: Plan, tree: AttributeTree, draw: Draw, scale: float, rows: int) -> np.ndarray:
    """What is taken off the score of each split, from public sizes and n̂ alone. Stop is one of many candidates: at the root,
    where it is decided whether the attribute depends on anything, what chance would score and a threshold against the noise
    give it its fair chance, if the plan says so."""
    found = prices(tree.sizes, tree.splits, tree.attribute, scale)
    by_noise = plan.election.by_noise if plan.election else None
    if by_noise is None or tree.layers:
        return found
    found[1:] += threshold(found, draw, by_noise, rows)
    found += chances(tree.sizes, tree.splits, tree.attribute, rows)
    return found


def _split(tree: AttributeTree, rows: Counts, draw: Draw, price: np.ndarray, randomness: Randomness) -> AttributeTree:
    """One more layer: an election at every node of the newest one. Nodes are disjoint: the layer costs one election."""
    eligible = _eligible(tree)
    scores = _scores(tree, rows, eligible.any(axis=0) & np.array([len(split) > 0 for split in tree.splits]))
    scores -= price
    elected = elect(draw, scores, eligible, randomness)
    return AttributeTree(tree.domain, tree.attribute, tree.splits, (*tree.layers, elected.astype(np.int32)))


def _eligible(tree: AttributeTree) -> np.ndarray:
    """Nodes × splits, from the branches and sizes alone: a predecessor splits a branch once, what has stopped stays so,
    and a split whose table over all nodes would not fit does not compete."""
    used = tree.branches() >= 0
    member = np.array([np.isin(np.arange(used.shape[1]), split) for split in tree.splits])
    groups = np.array([math.prod(tree.sizes[j] for j in split) for split in tree.splits])
    eligible: np.ndarray = ~(used @ member.T) & ((groups == 1) | (groups * tree.leaves * tree.categories <= MOST_CELLS))
    if tree.layers:
        eligible[np.repeat(tree.layers[-1] == 0, tree.fanouts[-1]), 1:] = False
    return eligible


def _scores(tree: AttributeTree, rows: Counts, wanted: np.ndarray) -> np.ndarray:
    """CONFIDENTIAL. Nodes × splits: how much the attribute depends on each wanted group of predecessors; 0 for the others."""
    nodes, categories = tree.leaves, tree.categories
    place = tree.descend(rows.codes) * categories + rows.codes[:, tree.attribute]
    numbers = np.flatnonzero(wanted)
    groups = [tree.splits[number] for number in numbers]
    scores = np.zeros((nodes, len(tree.splits)))

    def score(cover: tuple[Split, list[int]]) -> None:
        joint = joint_table(rows, place, nodes * categories, cover[0], tree.sizes)
        for member in cover[1]:
            table = margin(joint, cover[0], groups[member]).reshape(nodes, categories, -1)
            scores[:, numbers[member]] = dependence(table)

    in_parallel(score, covers(groups, tree.sizes, largest_joint(len(place)) // (nodes * categories)))
    return scores
