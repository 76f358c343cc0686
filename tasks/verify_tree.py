"""Checks of a published tree: its nodes are disjoint within each layer, and together hold every allowed cell.

The rules leave a public set of cells. All of them walk down the published tree at once; a cell without a child to go to,
or a node that no cell reaches, shows a tree that is not a function of the domain and the elections alone: leaving out
a node where nobody is would say so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.domain import Domain
from schemas.errors import EvidenceBroken
from schemas.plan import LayerPlan, Plan
from steps_engine.cells import Space

MOST_CELLS = 2**31  # a published tree lists every allowed cell; beyond this none could


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
    """A tree that was found sound: its layers, and for every allowed cell the row of its leaf in the tree's table."""

    space: Space
    splits: tuple[tuple[int, ...], ...]
    layers: tuple[Nodes, ...]
    cells: np.ndarray
    leaf_row: np.ndarray

    @property
    def leaf_layers(self) -> tuple[int, ...]:
        return tuple(depth for depth, nodes in enumerate(self.layers, start=1) if nodes.leaf.any())


def read_branches(domain: Domain, plan: Plan, table: pa.Table) -> Branches:
    """The tree of a bundle, or EvidenceBroken with the first thing that does not hold."""
    space = Space(domain)
    if domain.all_cells > MOST_CELLS or space.count() != plan.cells or plan.cells > table.num_rows:
        raise EvidenceBroken("the domain's rules allow another number of cells than the plan and the tree have")
    splits, split_of = _splits(domain, table)
    layers = tuple(_layers(table, split_of))
    if len(layers) != len(plan.layers):
        raise EvidenceBroken(f"has {len(layers)} layers; the plan has {len(plan.layers)}")
    for nodes, planned in zip(layers, plan.layers, strict=True):
        _must_follow_plan(nodes, planned, splits, domain)
    _must_be_families(layers, splits, domain)
    cells = space.allowed()
    return Branches(space, tuple(splits), layers, cells, _walk(space, splits, layers, cells))


def _splits(domain: Domain, table: pa.Table) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Every split as attribute indices, and which one each row has."""
    column = table.unify_dictionaries()["split"].combine_chunks()
    numbers: dict[tuple[int, ...], int] = {}
    number_of = []
    for text in column.dictionary.to_pylist():
        try:
            names = json.loads(text)
            split = tuple(domain.index(name) for name in names)
        except (ValueError, TypeError, RecursionError):
            raise EvidenceBroken("a split is not a list of the domain's attributes") from None
        if not split or not isinstance(names, list) or len(set(split)) < len(split):
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
    if not above_leaf.all():
        raise EvidenceBroken("the last layer has a node that is not a leaf")


def _walk(space: Space, splits: list[tuple[int, ...]], layers: tuple[Nodes, ...], cells: np.ndarray) -> np.ndarray:
    """The row of each cell's leaf."""
    leaf_row = np.full(len(cells), -1, dtype=np.int64)
    walking, node, start = np.arange(len(cells)), np.zeros(len(cells), dtype=np.int64), 0
    for depth, nodes in enumerate(layers, start=1):
        code = _codes(space, splits, nodes, cells[walking], node)
        key = nodes.parent * space.domain.all_cells + nodes.code
        wanted = node * space.domain.all_cells + code
        child = np.minimum(np.searchsorted(key, wanted), len(nodes) - 1)
        if (key[child] != wanted).any():
            raise EvidenceBroken(f"layer {depth} lacks nodes that the domain has; leaving out a node tells who is not there")
        reached = np.bincount(child, minlength=len(nodes))
        if not reached.all():
            raise EvidenceBroken(f"layer {depth} has a node that the rules leave no cell for")
        if not np.array_equal(nodes.leaf, reached == 1):
            raise EvidenceBroken(f"layer {depth} has a leaf of several cells, or a single cell that is no leaf")
        ends = nodes.leaf[child]
        leaf_row[walking[ends]] = start + child[ends]
        walking, node, start = walking[~ends], child[~ends], start + len(nodes)
    return leaf_row


def _codes(space: Space, splits: list[tuple[int, ...]], nodes: Nodes, cells: np.ndarray, node: np.ndarray) -> np.ndarray:
    """Each cell's code among the children of the node it is in: Σ digit_j · weight_j, by that node's split."""
    weight = np.zeros((len(splits), len(space.domain.sizes)), dtype=np.int64)
    for row, split in zip(weight, splits, strict=True):
        sizes = [space.domain.sizes[j] for j in split]
        row[list(split)] = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    split_of = np.zeros(int(nodes.parent.max()) + 1, dtype=np.int64)
    split_of[nodes.parent] = nodes.split
    code = np.zeros(len(cells), dtype=np.int64)
    for j in np.flatnonzero(weight[np.unique(nodes.split)].any(axis=0)):
        code += space.digit(cells, j) * weight[split_of, j][node]
    return code
