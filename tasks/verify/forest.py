"""Checks of a cascade or a Bayesian network: its trees, the exact sum over its draws, its histograms and its records."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from schemas.budget import as_fraction, parse_nanos
from schemas.manifest import tree_path
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.methods.cascade import tables as forest
from steps_engine.methods.cascade.plan import SPREAD
from tasks.verify.counts import coded


def draw_problems(plan: Plan, trees: forest.Trees, domain: Domain) -> Iterator[str]:
    """Every draw is noisy enough for its share; in each tree every way costs the same, and the trees together cost ε."""
    person = plan.rows_per_person * (2 if plan.neighbours == "substitute" else 1)
    for draw in plan.draws:
        least = person * (SPREAD if draw.kind == "election" else 1)
        if draw.epsilon <= 0 or draw.scale < draw.sensitivity / draw.epsilon or draw.sensitivity < least:
            yield f"draw {draw.name!r} is not noisy enough for its share of ε"
        if (draw.kind == "count") != (draw.mechanism == "two_sided_geometric"):
            yield f"draw {draw.name!r} is no election or count of this plan"
    places = [(draw.tree, draw.kind, draw.layer, draw.set) for draw in plan.draws]
    if len(set(places)) < len(places):
        yield "a draw is listed twice"
    total = sum((draw.epsilon for draw in plan.draws if draw.tree is None), Fraction())
    for tree in trees:
        costs = {_cost(plan, domain.names[tree.attribute], int(held)) for held in np.unique(tree.elections)}
        if len(costs) != 1 or None in costs:
            yield f"the ways through the tree of {domain.names[tree.attribute]} do not all cost the same, or lack a draw"
        total += max((cost for cost in costs if cost is not None), default=Fraction())
    if {draw.tree for draw in plan.draws} - {None} != {domain.names[tree.attribute] for tree in trees}:
        yield "there are draws for trees that are not there, or trees without draws"
    if total != as_fraction(parse_nanos(plan.epsilon)):
        yield f"the shares of all trees sum to {total}, not to ε={plan.epsilon}"


def _cost(plan: Plan, tree: str, held: int) -> Fraction | None:
    """What a leaf below `held` elections costs; None where a set or an election has no draw."""
    draws: tuple[Draw, ...] = tree_path(plan, tree, held)
    counted = [draw.set for draw in draws if draw.kind == "count"]
    if sorted(counted, key=str) != sorted(plan.served, key=str):
        return None
    # A Bayesian network is elected as a whole: its elections belong to no tree.
    own = any(draw.tree == tree and draw.kind == "election" for draw in plan.draws)
    if own and sum(draw.kind == "election" for draw in draws) != held:
        return None
    return sum((draw.epsilon for draw in draws), Fraction())


def estimate_problems(plan: Plan, cascade, table: pa.Table) -> Iterator[str]:
    """The published estimates are the means of the noisy counts, with the errors that the plan's scales give."""
    expected = forest.estimates_table(plan, cascade)
    for name in ("tree", "leaf", "category"):
        if not table[name].equals(expected[name]):
            yield "does not have exactly the cells of the noisy counts"
            return
    for name in ("estimate", "standard_error"):
        if not np.allclose(table[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-9):
            yield f"column {name} does not follow from the noisy counts and the plan"


def record_problems(domain: Domain, records: pa.Table) -> Iterator[str]:
    """Every row lies in the domain and breaks no rule."""
    codes = coded(records, domain)
    if (codes < 0).any():
        outside = [name for name, bad in zip(domain.names, (codes < 0).any(axis=0), strict=True) if bad]
        yield f"has values outside the domain: {', '.join(outside)}"
        return
    for component in Space(domain).components:
        if not component.allowed[tuple(codes[:, j] for j in component.attributes)].all():
            yield "has a row that breaks a rule"
