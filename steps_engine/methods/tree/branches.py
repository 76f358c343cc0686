"""A published tree, read back: its nodes are disjoint within each layer, and together hold every allowed cell.

The tree is grown again from its splits. A node too few or too many shows a tree that is not a function of the domain and
the elections alone: leaving out a node where nobody is would say so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.errors import EvidenceBroken
from schemas.plan import LayerPlan, Plan
from schemas.spec.domain import Domain
from steps_engine import noise
from steps_engine.domain.cells import Space
from steps_engine.domain.nodes import Tree
from steps_engine.methods.tree.sparse import is_sampled
from steps_engine.methods.tree.tables import read_tree


@dataclass(frozen=True)
class Nodes:
    """One layer as published; `parent` and `code` increase together, siblings side by side."""

    parent: np.ndarray
    split: np.ndarray  # index into the table of splits
    code: np.ndarray
    leaf: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)


@dataclass(frozen=True)
class Branches:
    """A tree that was found sound. Its branches end in leaves or, where cells are too many to list, above them.

    `ends` are cells, with 0 for attributes that a branch does not fix, increasing; `end_row` the rows in the tree's table.
    """

    tree: Tree
    splits: tuple[tuple[int, ...], ...]
    layers: tuple[Nodes, ...]
    ends: np.ndarray
    end_row: np.ndarray
    fixed: tuple[int, ...]  # attributes that every branch fixes

    @property
    def space(self) -> Space:
        return Space(self.tree.domain)

    @property
    def leaf_layers(self) -> tuple[int, ...]:
        """Layers at which a way down can end, that of the cells included."""
        last = len(self.layers)
        below = () if self.layers[-1].leaf.all() else (last + 1,)
        return tuple(depth for depth, nodes in enumerate(self.layers, start=1) if nodes.leaf.any()) + below


def read_branches(domain: Domain, plan: Plan, table: pa.Table) -> Branches:
    """The tree of a bundle, or EvidenceBroken with the first thing that does not hold."""
    too_few = plan.cells > table.num_rows and not is_sampled(plan)
    if domain.all_cells > noise.MOST_CELLS or Space(domain).count() != plan.cells or too_few:
        raise EvidenceBroken("the domain's rules allow another number of cells than the plan and the tree have")
    table = table.unify_dictionaries()
    splits, split_of = _splits(domain, table, is_sampled(plan))
    layers, planned = tuple(_layers(table, split_of)), plan.layers[: len(plan.layers) - is_sampled(plan)]
    ended = plan.election is not None and len(layers) < len(planned) and layers[-1].leaf.all()
    if len(layers) != len(planned) and not ended:
        raise EvidenceBroken(f"has {len(layers)} layers; the plan has {len(planned)}")
    for nodes, layer in zip(layers, planned, strict=False):
        _must_follow_plan(nodes, layer, splits, domain)
    _must_be_families(layers, splits, domain)
    if not (layers[-1].leaf.all() or is_sampled(plan)):
        raise EvidenceBroken("the last layer has a node that is not a leaf")
    return _with_ends(read_tree(domain, table, is_sampled(plan)), tuple(splits), layers)


def _with_ends(tree: Tree, splits: tuple[tuple[int, ...], ...], layers: tuple[Nodes, ...]) -> Branches:
    last, prefix, fixed = tree.layers[-1], tree.layers[-1].cell, list(range(len(tree.domain.sizes)))
    if (last.cell < 0).any():
        codes = tree.branches(len(tree.layers))
        prefix = np.where(last.cell < 0, Space(tree.domain).cells(np.maximum(codes, 0)), last.cell)
        fixed = np.flatnonzero((codes[last.cell < 0] >= 0).all(axis=0)).tolist()
    rows = [np.flatnonzero((layer.cell >= 0) | (layer is last)) for layer in tree.layers]
    ends = np.concatenate([*(layer.cell[row] for layer, row in zip(tree.layers[:-1], rows, strict=False)), prefix])
    starts = np.cumsum([0, *(len(layer) for layer in tree.layers[:-1])])
    end_row = np.concatenate([start + row for start, row in zip(starts, rows, strict=True)])
    order = np.argsort(ends, kind="stable")
    return Branches(tree, splits, layers, ends[order], end_row[order], tuple(fixed))


def _splits(domain: Domain, table: pa.Table, may_be_everybody: bool) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Every split as attribute indices, and which one each row has."""
    column = table["split"].combine_chunks()
    numbers: dict[tuple[int, ...], int] = {}
    number_of = []
    for text in column.dictionary.to_pylist():
        try:
            names = json.loads(text)
            split = tuple(domain.index(name) for name in names)
        except (ValueError, TypeError, RecursionError):
            raise EvidenceBroken("a split is not a list of the domain's attributes") from None
        if not (split or may_be_everybody) or not isinstance(names, list) or len(set(split)) < len(split):
            raise EvidenceBroken("a split is empty or names an attribute twice")
        number_of.append(numbers.setdefault(split, len(numbers)))
    return list(numbers), np.array(number_of, dtype=np.int64)[column.indices.to_numpy()]


def _layers(table: pa.Table, split_of: np.ndarray) -> Iterator[Nodes]:
    depth, node = table["layer"].to_numpy(), table["node"].to_numpy()
    starts = np.flatnonzero(np.diff(depth, prepend=0))
    ends = np.append(starts[1:], len(depth))
    if not len(starts) or starts[0] != 0 or not np.array_equal(depth[starts], np.arange(1, len(starts) + 1)):
        raise EvidenceBroken("layers do not follow one another as 1, 2, 3, …")
    parent, code = table["parent"].to_numpy(), table["code"].to_numpy()
    leaf = table["leaf"].to_numpy()
    for start, end in zip(starts, ends, strict=True):
        here = slice(int(start), int(end))
        if not np.array_equal(node[here], np.arange(end - start)):
            raise EvidenceBroken("the nodes of a layer are not numbered 0, 1, 2, …: one is missing or stands twice")
        yield Nodes(parent[here], split_of[here], code[here], leaf[here])


def _must_follow_plan(nodes: Nodes, planned: LayerPlan, splits: list[tuple[int, ...]], domain: Domain) -> None:
    if len(nodes) > planned.nodes or (planned.nodes_are == "exact" and len(nodes) < planned.nodes):
        raise EvidenceBroken(f"layer {planned.layer} has {len(nodes):,} nodes; the plan says {planned.nodes:,}")
    if planned.attributes is not None:
        wanted = tuple(domain.index(name) for name in planned.attributes)
        if any(splits[number] != wanted for number in np.unique(nodes.split)):
            raise EvidenceBroken(f"layer {planned.layer} splits on other attributes than the plan says")


def _must_be_families(layers: tuple[Nodes, ...], splits: list[tuple[int, ...]], domain: Domain) -> None:
    """Siblings share a split and differ in code, every inner node has children, no attribute comes twice on a branch."""
    sizes = [math.prod(domain.sizes[j] for j in split) for split in splits]
    member = np.zeros((len(splits), len(domain.sizes)), dtype=bool)
    for number, split in enumerate(splits):
        member[number, list(split)] = True
    used, above_leaf = np.zeros((1, len(domain.sizes)), dtype=bool), np.zeros(1, dtype=bool)
    for depth, nodes in enumerate(layers, start=1):
        if nodes.parent.min() < 0 or nodes.parent.max() >= len(above_leaf):
            raise EvidenceBroken(f"layer {depth} has a node whose parent does not exist")
        if above_leaf[nodes.parent].any():
            raise EvidenceBroken(f"layer {depth} has a node below a leaf")
        if not np.bincount(nodes.parent, minlength=len(above_leaf))[~above_leaf].all():
            raise EvidenceBroken(f"layer {depth - 1} has a node that is neither a leaf nor split")
        step, same = np.diff(nodes.parent), np.diff(nodes.parent) == 0
        if (step < 0).any() or (np.diff(nodes.code)[same] <= 0).any():
            raise EvidenceBroken(f"layer {depth} has siblings of the same code, or not in order: nodes would overlap")
        if (np.diff(nodes.split)[same] != 0).any():
            raise EvidenceBroken(f"layer {depth} has siblings split on different attributes: nodes would overlap")
        if (used[nodes.parent] & member[nodes.split]).any():
            raise EvidenceBroken(f"layer {depth} splits a branch on an attribute that was used above")
        ranges = ((nodes.code[nodes.split == number], sizes[number]) for number in np.unique(nodes.split))
        if any(codes.min() < 0 or codes.max() >= size for codes, size in ranges):
            raise EvidenceBroken(f"layer {depth} has a code beyond its attributes' categories")
        used, above_leaf = used[nodes.parent] | member[nodes.split], nodes.leaf
