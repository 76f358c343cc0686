"""The published tables of a tree: their Arrow schemas, and how a tree is read back. Reading is checking: the tree is grown
again.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from schemas.identity import canonical
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.nodes import Split, Tree
from steps_engine.methods.tree.growth import Growth
from steps_engine.methods.tree.sparse import is_sampled

# A node: `parent` is its parent's number in the layer above (the root is layer 0, node 0). Siblings share `split`, the
# attributes on which their parent was split, and differ in `code`, the category (mixed radix over `split`, first slowest).
TREE = pa.schema(
    [
        pa.field("layer", pa.int16(), nullable=False),
        pa.field("node", pa.int64(), nullable=False),
        pa.field("parent", pa.int64(), nullable=False),
        pa.field("split", pa.dictionary(pa.int32(), pa.string()), nullable=False),  # JSON list of attribute names
        pa.field("code", pa.int64(), nullable=False),
        pa.field("leaf", pa.bool_(), nullable=False),
    ]
)


def noisy_counts(measurements: int, sparse: bool = False) -> pa.Schema:
    """Noisy counts of every node, one column per measurement: one for each set, or one that all sets share.

    Where cells are too many to list, the last layer has those that reached the threshold, `node` being the cell (mixed radix
    over the domain's attributes, first slowest); null where a cell did not reach it in this measurement.
    """
    columns = [pa.field(f"noisy_{i}", pa.int64(), nullable=sparse) for i in range(1, measurements + 1)]
    return pa.schema([("layer", pa.int16()), ("node", pa.int64()), *columns])


def consistent_counts(sets: int, sparse: bool = False) -> pa.Schema:
    """Least-squares counts (mean over sets) with standard errors, and the whole numbers behind each set's rows.

    Where cells are too many to list, the last layer has those that hold rows in some set, without estimates: what has
    passed a threshold is not an unbiased count any more.
    """
    whole = [pa.field(f"whole_{i}", pa.int64(), nullable=False) for i in range(1, sets + 1)]
    estimate = [pa.field(name, pa.float64(), nullable=sparse) for name in ("estimate", "standard_error")]
    return pa.schema([("layer", pa.int16()), ("node", pa.int64()), *estimate, *whole])


def schemas_of(plan: Plan) -> dict[str, pa.Schema]:
    """The schema of each table that a release by this plan publishes beside its records."""
    sampled = is_sampled(plan)
    noisy, consistent = noisy_counts(plan.measurements, sampled), consistent_counts(plan.sets, sampled)
    return {"tree": TREE, "noisy-counts": noisy, "consistent-counts": consistent}


def tree_table(tree: Tree) -> pa.Table:
    """One row per node, layer by layer."""
    names = pa.array([canonical([tree.domain.names[j] for j in split]) for split in tree.splits], pa.string())
    parts = []
    for depth, layer in enumerate(tree.layers, start=1):
        columns = [
            pa.array(np.full(len(layer), depth, dtype=np.int16)),
            pa.array(np.arange(len(layer))),
            pa.array(layer.parent.astype(np.int64)),
            pa.DictionaryArray.from_arrays(pa.array(layer.split, pa.int32()), names),
            pa.array(layer.code),
            pa.array(layer.cell >= 0),
        ]
        parts.append(pa.Table.from_arrays(columns, schema=TREE))
    return pa.concat_tables(parts)


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
