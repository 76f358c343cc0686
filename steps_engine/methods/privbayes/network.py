"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017): which attributes are each attribute's parents, elected.

A baseline, so it stays as published where that is sound: degree k, θ-useful parent sets. The score R on counts is the cascade's
dependence, whose sensitivity does not need a public n.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine import noise
from steps_engine.accounting.mechanisms import elect, noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split
from steps_engine.methods.cascade.attribute_tree import AttributeTree, mixed_radix
from steps_engine.methods.privbayes.plan import DEGREE
from steps_engine.scores import dependence

USEFULNESS = 4  # θ: expected count of a cell, in noise scales
MOST_CELLS = 10**6


def as_tree(domain: Domain, attribute: int, parents: Split) -> AttributeTree:
    """One layer: the root is split on the parents, or stops where there are none."""
    splits = ((), parents) if parents else ((),)
    return AttributeTree(domain, attribute, splits, (np.array([len(splits) - 1], dtype=np.int32),))


def elect_network(domain: Domain, plan: Plan, counts: Counts | None, randomness: noise.Randomness) -> list[tuple[int, Split]]:
    """GreedyBayes: a random first attribute, then in each round the best (attribute, parents) among all that are left."""
    sizes = domain.sizes
    most = _most_cells(domain, plan)
    network: list[tuple[int, Split]] = [(int(noise.integers_below(len(sizes), 1, randomness)[0]), ())]
    draws = [draw for draw in plan.draws if draw.kind == "election"]
    if not draws:
        return network
    if counts is None:
        raise ValueError("the plan elects its network; give it exact counts")
    scores: dict[tuple[int, Split], float] = {}
    for draw in draws:
        placed = [j for j, _ in network]
        pairs = [pair for j in range(len(sizes)) if j not in placed for pair in _candidates(sizes, j, placed, most)]
        for j, parents in pairs:
            if (j, parents) not in scores:
                scores[j, parents] = _score(counts, j, parents, sizes)
        ballot = np.array([[scores[pair] for pair in pairs]])
        everyone = np.ones(ballot.shape, dtype=bool)
        winner = elect(draw, ballot, everyone, randomness)[0]
        network.append(pairs[winner])
    return network


def _most_cells(domain: Domain, plan: Plan) -> int:
    """θ-useful: n̂/cells ≥ θ·scale, from public numbers; without an expected n only memory bounds a table."""
    if domain.expected_units is None:
        return MOST_CELLS
    scale = next(noise_of(draw).length for draw in plan.draws if draw.kind == "count")
    return min(MOST_CELLS, int(domain.expected_units / (USEFULNESS * scale)))


def _candidates(sizes: tuple[int, ...], attribute: int, placed: list[int], most: int) -> list[tuple[int, Split]]:
    """The attribute with every useful set of up to DEGREE parents; with none where even one parent is too many."""
    sets = (s for size in range(1, DEGREE + 1) for s in itertools.combinations(sorted(placed), size))
    useful = [(attribute, s) for s in sets if sizes[attribute] * math.prod(sizes[j] for j in s) <= most]
    return useful or [(attribute, ())]


def _score(counts: Counts, attribute: int, parents: Split, sizes: tuple[int, ...]) -> float:
    """CONFIDENTIAL. R on counts: ½ Σ |n_xz − n_x·n_z/n|."""
    groups = math.prod(sizes[j] for j in parents)
    cell = mixed_radix(counts.codes, parents, sizes) * sizes[attribute] + counts.codes[:, attribute]
    table = np.bincount(cell, weights=counts.count, minlength=groups * sizes[attribute])
    return float(dependence(table.reshape(groups, sizes[attribute])))
