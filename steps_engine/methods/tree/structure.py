"""The tree of STEPS (Algorithm 1 of the paper): which attributes split which node, given or elected, layer by layer.

Branches may split on different attributes and differ in length: a node that holds a single cell is a leaf, and spends
what is left of its path in one draw. With fewer layers than attributes the last layer is the full cross-tabulation of
what remains.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split, Tree
from steps_engine.methods.tree.election import UTILITIES, Utility, elect_attributes, elect_groups
from steps_engine.methods.tree.growth import Growth
from steps_engine.noise import Randomness


def build_tree(
    domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness | None, utilities: dict[str, Utility] = UTILITIES
) -> Tree:
    """The tree of a plan. Only a plan that elects looks at `counts`, and pays for each look."""
    space = Space(domain)
    utility = utilities[plan.election.utility] if plan.election else None
    groups = _given_groups(domain, plan, counts, randomness, utility)
    growth = Growth.from_root(space)
    held = len(plan.layers) - plan.sparse  # cells that are too many to list are no part of the tree
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


def read_tree(domain: Domain, table: pa.Table, sparse: bool = False) -> Tree:
    """The tree of a published table, grown again from its splits: a table that is not a tree of this domain is refused.

    A sparse tree ends above its cells, and may begin with a layer of one node, everybody.
    """
    column = table["split"].combine_chunks()
    splits = tuple(tuple(domain.index(name) for name in json.loads(text)) for text in column.dictionary.to_pylist())
    which, depth_of = column.indices.to_numpy(), table["layer"].to_numpy()
    node, parent, code = (table[name].to_numpy() for name in ("node", "parent", "code"))
    leaf, deepest = table["leaf"].to_numpy(zero_copy_only=False), int(depth_of.max(initial=0))
    growth = Growth.from_root(Space(domain))
    for depth in range(1, deepest + 1):
        rows = np.flatnonzero(depth_of == depth)
        growth = _grow_again(growth, splits, parent[rows], which[rows], depth == deepest and not sparse, sparse and depth == 1)
        layer = growth.layers[-1]
        grown = (np.arange(len(layer)), layer.parent, layer.code, layer.cell >= 0)
        if not all(np.array_equal(a[rows], b) for a, b in zip((node, parent, code, leaf), grown, strict=True)):
            raise ValueError(f"layer {depth} lacks nodes that the domain has, or has others; leaving one out tells of nobody")
    if (growth.open.any() and not sparse) or len(table) != sum(len(layer) for layer in growth.layers):
        raise ValueError("some cells are in no leaf, or some rows in no layer")
    return Tree(domain, growth.splits, growth.layers)


def _grow_again(
    growth: Growth, splits: tuple[Split, ...], parent: np.ndarray, which: np.ndarray, last: bool, may_be_everybody: bool
) -> Growth:
    """One layer from its published rows: each parent is split on the attributes that all its children name."""
    if len(parent) == 0 or parent.min() < 0 or parent.max() >= growth.width:
        raise ValueError("a layer names parents that the layer above does not have")
    used, number = np.unique(which, return_inverse=True)
    split_of = np.zeros(growth.width, dtype=np.int32)
    split_of[parent] = number
    if not np.array_equal(split_of[parent], number):
        raise ValueError("the children of a node must be split on the same attributes")
    chosen = tuple(splits[u] for u in used)
    for index, split in enumerate(chosen):
        again = growth.used[np.ix_(parent[number == index], split)].any()
        if not (split or may_be_everybody) or len(set(split)) < len(split) or again:
            raise ValueError("an attribute splits a branch once")
    return growth.split(chosen, split_of, last)


def _given_groups(
    domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness | None, utility: Utility | None
) -> tuple[Split, ...] | None:
    """Attributes per layer where the whole layer splits on the same ones: given, or a grouping elected at the root."""
    if plan.election is None:
        return tuple(tuple(domain.index(name) for name in layer.attributes) for layer in plan.layers)
    if plan.election.what == "groups":
        return elect_groups(domain, counts, plan, randomness, utility)
    return None
