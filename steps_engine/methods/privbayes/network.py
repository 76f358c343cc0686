"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017): a Bayesian network elected with ε/2, measured with ε/2.

A baseline, so it stays as published where that is sound: degree k, θ-useful parent sets, negative counts cut to 0, rows
sampled independently. The score R on counts is cascade.dependence, whose sensitivity does not need a public n.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa

from schemas.budget import as_fraction, show_nanos
from schemas.identity import spec_hash
from schemas.plan import Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine import laws, noise
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.nodes import Split
from steps_engine.methods.cascade.attribute_tree import AttributeTree, mixed_radix
from steps_engine.methods.cascade.growth import Cascade, dependence, measure
from steps_engine.methods.cascade.plan import SPREAD
from steps_engine.methods.cascade.synthesize import choices, draw_categories, restrict, total_rows

DEGREE = 2
USEFULNESS = 4  # θ: expected count of a cell, in noise scales
MOST_CELLS = 10**6


def make_privbayes_plan(release: Release) -> Plan:
    """d − 1 elections share ε/2; the d joint tables of an attribute and its parents share the other half."""
    domain, spec = release.domain, release.spec
    epsilon, sets = as_fraction(spec.privacy.epsilon), spec.method.sets
    factor = domain.unit.rows_per_person * (2 if spec.privacy.neighbours == "substitute" else 1)
    elections = len(domain.names) - 1
    left = epsilon / 2 if elections else epsilon
    draws = [_election(i, epsilon / 2 / elections, factor) for i in range(elections)]
    each = left / len(domain.names) / (sets.count if sets.budget == "split" else 1)
    for name, set_ in itertools.product(domain.names, range(1, sets.count + 1) if sets.budget == "split" else (None,)):
        draws.append(_table(name, set_, each, factor))
    largest = sorted(domain.sizes, reverse=True)[: DEGREE + 1]
    error = float(f"{math.sqrt(laws.variance(factor / each)):.6g}")
    return Plan(
        release=spec.name, population=domain.population, decomposition="privbayes", neighbours=spec.privacy.neighbours,
        rows_per_person=domain.unit.rows_per_person, unit=domain.unit.who,
        total=spec.privacy.total, epsilon=show_nanos(spec.privacy.epsilon),
        sets=sets.count, budget=sets.budget, cells=Space(domain).count(),
        layers=tuple(
            LayerPlan(layer=i + 1, attributes=(name,), nodes=math.prod(largest), nodes_are="at most",
                      share=left / epsilon / len(domain.names), expected_error=error)
            for i, name in enumerate(domain.names)
        ),
        election=ElectionPlan(utility="dependence", what="groups", mechanism="exponential", layers=elections,
                              share=Fraction(1, 2), candidates=len(domain.names) ** (DEGREE + 1)) if elections else None,
        draws=tuple(draws), memory_bytes=2**28, seconds=5.0, spec_hash=spec_hash(release),
    )  # fmt: skip


def _election(number: int, epsilon: Fraction, factor: int) -> Draw:
    return Draw(
        name=f"election {number}", kind="election", mechanism="exponential", layer=number, set=None, nodes="inner",
        sensitivity=SPREAD * factor, epsilon=epsilon, scale=SPREAD * factor / epsilon,
    )  # fmt: skip


def _table(name: str, set_: int | None, epsilon: Fraction, factor: int) -> Draw:
    return Draw(
        name=f"{name}: {'all sets' if set_ is None else f'set {set_}'}, with its parents", kind="count",
        mechanism="two_sided_geometric", layer=1, set=set_, tree=name, nodes="leaves", sensitivity=factor, epsilon=epsilon,
        scale=factor / epsilon,
    )  # fmt: skip


def fit_privbayes(domain: Domain, plan: Plan, counts: Counts, randomness: noise.Randomness) -> Cascade:
    """The elected network as trees of one layer, and the noisy joint tables."""
    trees = tuple(as_tree(domain, j, parents) for j, parents in elect_network(domain, plan, counts, randomness))
    total = None if plan.total == "estimated" else int(counts.count.sum())
    return Cascade(domain, trees, measure(trees, plan, counts, randomness), total)


def as_tree(domain: Domain, attribute: int, parents: Split) -> AttributeTree:
    """One layer: the root is split on the parents, or stops where there are none."""
    splits = ((), parents) if parents else ((),)
    return AttributeTree(domain, attribute, splits, (np.array([len(splits) - 1], dtype=np.int32),))


def elect_network(domain: Domain, plan: Plan, counts: Counts, randomness: noise.Randomness) -> list[tuple[int, Split]]:
    """GreedyBayes: a random first attribute, then in each round the best (attribute, parents) among all that are left."""
    sizes = domain.sizes
    most = _most_cells(domain, plan)
    network = [(int(noise.integers_below(len(sizes), 1, randomness)[0]), ())]
    scores: dict[tuple[int, Split], float] = {}
    for draw in (draw for draw in plan.draws if draw.kind == "election"):
        placed = [j for j, _ in network]
        pairs = [pair for j in range(len(sizes)) if j not in placed for pair in _candidates(sizes, j, placed, most)]
        for j, parents in pairs:
            if (j, parents) not in scores:
                scores[j, parents] = _score(counts, j, parents, sizes)
        ballot = np.array([[scores[pair] for pair in pairs]])
        everyone = np.ones(ballot.shape, dtype=bool)
        winner = noise.exponential_mechanism(ballot, everyone, draw.epsilon, draw.sensitivity, randomness)[0]
        network.append(pairs[winner])
    return network


def _most_cells(domain: Domain, plan: Plan) -> int:
    """θ-useful: n̂/cells ≥ θ·scale, from public numbers; without an expected n only memory bounds a table."""
    if domain.expected_rows is None:
        return MOST_CELLS
    scale = next(draw.scale for draw in plan.draws if draw.kind == "count")
    return min(MOST_CELLS, int(domain.expected_rows / (USEFULNESS * scale)))


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


def synthesize_privbayes(
    domain: Domain, plan: Plan, network: Cascade, which_set: int, randomness: noise.Randomness
) -> pa.Table:
    """The records of one set (1…m), attribute by attribute in the order of the network."""
    codes = sample(domain, plan, network, which_set, randomness)
    return decode(codes[noise.permutation(len(codes), randomness)], domain, randomness)


def sample(domain: Domain, plan: Plan, network: Cascade, which_set: int, randomness: noise.Randomness) -> np.ndarray:
    """Rows × attributes of codes: independent draws from each conditional distribution, rules kept."""
    measurement = which_set - 1 if plan.budget == "split" else 0
    codes = no_codes(total_rows(plan, network, which_set), domain.sizes)
    known: list[int] = []
    for tree, noisy in zip(network.trees, network.noisy, strict=True):
        shares = _conditional(noisy[measurement])
        group, shares = restrict(tree.descend(codes), shares, *choices(domain, codes, tree.attribute, known))
        codes[:, tree.attribute] = draw_categories(group, shares, randomness)
        known.append(tree.attribute)
    return codes


def _conditional(noisy: np.ndarray) -> np.ndarray:
    """Negative counts cut to 0, each row scaled to 1; a row without counts is uniform."""
    cut = np.maximum(noisy, 0).astype(float)
    total = cut.sum(axis=1, keepdims=True)
    return np.where(total > 0, cut / np.where(total > 0, total, 1), 1 / noisy.shape[1])
