"""The tree of STEPS (Algorithm 1 of the paper): which attributes split which node, given or elected, layer by layer.

Branches may split on different attributes and differ in length: a node that holds a single cell is a leaf, and spends
what is left of its path in one draw. With fewer layers than attributes the last layer is the full cross-tabulation of
what remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schemas.plan import LayerPlan, Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split, Tree
from steps_engine.methods.tree.election import UTILITIES, Utility, elect_attributes, elect_groups, election_of
from steps_engine.methods.tree.growth import Growth
from steps_engine.methods.tree.sparse import is_sampled
from steps_engine.noise import Randomness


def build_tree(
    domain: Domain,
    plan: Plan,
    counts: Counts | None,
    randomness: Randomness | None,
    utilities: Mapping[str, Utility] = UTILITIES,
) -> Tree:
    """The tree of a plan. Only a plan that elects looks at `counts`, and pays for each look."""
    election = _Election.of(plan, counts, randomness, utilities)
    groups = _groups(domain, plan, election)
    growth = Growth.from_root(Space(domain))
    held = len(plan.layers) - is_sampled(plan)  # cells that are too many to list are no part of the tree
    splits: tuple[Split, ...]
    for depth in range(held):
        if groups is not None:
            splits, split_of = (groups[depth],), np.zeros(growth.width, dtype=np.int32)
        elif election is not None and depth < election_of(plan).layers:
            splits, split_of = elect_attributes(growth, election.counts, plan, depth, election.randomness, election.utility)
        else:
            splits, split_of = growth.remainder()
        growth = growth.split(splits, split_of, last=depth == len(plan.layers) - 1)
        if not growth.open.any():
            break  # every branch has ended
    return Tree(domain, growth.splits, growth.layers)


@dataclass(frozen=True)
class _Election:
    """What a plan that elects is given: CONFIDENTIAL counts, the source of its draws, and what a good split is."""

    counts: Counts
    randomness: Randomness
    utility: Utility

    @classmethod
    def of(
        cls, plan: Plan, counts: Counts | None, randomness: Randomness | None, utilities: Mapping[str, Utility]
    ) -> _Election | None:
        if plan.election is None:
            return None
        if counts is None or randomness is None:
            raise ValueError("the plan elects its tree; give it exact counts and a source of randomness")
        return cls(counts, randomness, utilities[plan.election.utility])


def _groups(domain: Domain, plan: Plan, election: _Election | None) -> tuple[Split, ...] | None:
    """Attributes per layer where the whole layer splits on the same ones: given, or a grouping elected at the root."""
    if election is None:
        return tuple(tuple(domain.index(name) for name in _named(layer)) for layer in plan.layers)
    if election_of(plan).what == "groups":
        return elect_groups(domain, election.counts, plan, election.randomness, election.utility)
    return None


def _named(layer: LayerPlan) -> tuple[str, ...]:
    if layer.attributes is None:
        raise ValueError(f"layer {layer.layer} names no attributes, and the plan does not elect them")
    return layer.attributes
