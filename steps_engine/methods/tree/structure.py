"""The tree of STEPS (Algorithm 1 of the paper): which attributes split which node, given or elected, layer by layer.

Branches may split on different attributes and differ in length: a node that holds a single cell is a leaf, and spends
what is left of its path in one draw. With fewer layers than attributes the last layer is the full cross-tabulation of
what remains.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split, Tree
from steps_engine.methods.tree.election import UTILITIES, Utility, elect_attributes, elect_groups
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
    space = Space(domain)
    utility = utilities[plan.election.utility] if plan.election else None
    groups = _given_groups(domain, plan, counts, randomness, utility)
    growth = Growth.from_root(space)
    held = len(plan.layers) - is_sampled(plan)  # cells that are too many to list are no part of the tree
    for depth in range(held):
        if groups is not None:
            splits, split_of = (groups[depth],), np.zeros(growth.width, dtype=np.int32)
        elif depth < plan.election.layers:
            splits, split_of = elect_attributes(growth, counts, plan, depth, randomness, utility)
        else:
            splits, split_of = growth.remainder()
        growth = growth.split(splits, split_of, last=depth == len(plan.layers) - 1)
        if not growth.open.any():
            break  # every branch has ended
    return Tree(domain, growth.splits, growth.layers)


def _given_groups(
    domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness | None, utility: Utility | None
) -> tuple[Split, ...] | None:
    """Attributes per layer where the whole layer splits on the same ones: given, or a grouping elected at the root."""
    if plan.election is None:
        return tuple(tuple(domain.index(name) for name in layer.attributes) for layer in plan.layers)
    if plan.election.what == "groups":
        return elect_groups(domain, counts, plan, randomness, utility)
    return None
