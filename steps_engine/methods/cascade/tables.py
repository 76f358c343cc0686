"""Tables of a cascade or a Bayesian network: the trees of its attributes, their noisy histograms, estimates with errors.

Trees are numbered 1, 2, … in the order of the attributes; a tree splits on attributes of earlier trees only. Row 0 of the
noisy histograms is the exact number of rows, where that is public or invariant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from schemas.identity import canonical
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.nodes import Split
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.sanitize import Cascade
from steps_engine.methods.cascade.synthesize import leaf_variances

# A cascade or a Bayesian network: one tree per attribute. `split` is the JSON list of the predecessors on which a node was
# split, [] where it stopped; the children of a node follow in the next layer, in the order of their categories.
FOREST = pa.schema(
    [
        pa.field("tree", pa.int16(), nullable=False),
        pa.field("attribute", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("layer", pa.int16(), nullable=False),
        pa.field("node", pa.int64(), nullable=False),
        pa.field("split", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
)
_LEAF_CELL = [
    pa.field("tree", pa.int16(), nullable=False),
    pa.field("leaf", pa.int64(), nullable=False),
    pa.field("category", pa.int32(), nullable=False),
]


def forest_noisy(measurements: int) -> pa.Schema:
    """Noisy histograms of the leaves of every tree; tree 0 is the exact number of rows, where that is public."""
    return pa.schema(_LEAF_CELL + [pa.field(f"noisy_{i}", pa.int64(), nullable=False) for i in range(1, measurements + 1)])


FOREST_COUNTS = pa.schema(
    [*_LEAF_CELL, pa.field("estimate", pa.float64(), nullable=False), pa.field("standard_error", pa.float64(), nullable=False)]
)

Trees = tuple[AttributeTree, ...]


def schemas_of(plan: Plan) -> dict[str, pa.Schema]:
    """The schema of each table that a release by this plan publishes beside its records."""
    return {"tree": FOREST, "noisy-counts": forest_noisy(plan.measurements), "consistent-counts": FOREST_COUNTS}


def trees_table(domain: Domain, trees: Trees) -> pa.Table:
    """One row per node that was split or stopped; a tree without layers has one row, its root, in layer 0."""
    parts = []
    for number, tree in enumerate(trees, start=1):
        names = pa.array([canonical([domain.names[j] for j in split]) for split in tree.splits], pa.string())
        owner = pa.array([domain.names[tree.attribute]])
        for depth, layer in enumerate(tree.layers or (np.zeros(1, dtype=np.int32),), start=1 if tree.layers else 0):
            columns = [
                pa.array(np.full(len(layer), number, dtype=np.int16)),
                pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(layer), np.int32)), owner),
                pa.array(np.full(len(layer), depth, dtype=np.int16)),
                pa.array(np.arange(len(layer))),
                pa.DictionaryArray.from_arrays(pa.array(layer, pa.int32()), names),
            ]
            parts.append(pa.Table.from_arrays(columns, schema=FOREST))
    return pa.concat_tables(parts).unify_dictionaries()


def read_trees(domain: Domain, table: pa.Table) -> Trees:
    """The trees of a published table; one that no growth could have made is refused."""
    number, depth_of, node = (table[name].to_numpy() for name in ("tree", "layer", "node"))
    column, owner = table["split"].combine_chunks(), table["attribute"].combine_chunks()
    splits = [tuple(domain.index(name) for name in json.loads(text)) for text in column.dictionary.to_pylist()]
    owners, which = [domain.index(name) for name in owner.dictionary.to_pylist()], column.indices.to_numpy()
    trees: list[AttributeTree] = []
    for tree_number in range(1, int(number.max(initial=0)) + 1):
        rows = np.flatnonzero(number == tree_number)
        attributes = {owners[i] for i in np.unique(owner.indices.to_numpy()[rows])}
        if len(attributes) != 1 or attributes & {tree.attribute for tree in trees}:
            raise ValueError(f"tree {tree_number} must have one attribute, and no other tree the same")
        tree = _read_tree(domain, attributes.pop(), splits, depth_of[rows], node[rows], which[rows])
        if not {j for split in tree.splits for j in split} <= {earlier.attribute for earlier in trees}:
            raise ValueError(f"tree {tree_number} splits on an attribute that has no tree before it")
        trees.append(tree)
    if {j for j, size in enumerate(domain.sizes) if size > 1} - {tree.attribute for tree in trees} or not trees:
        raise ValueError("an attribute has no tree")
    if len(table) != sum(max(1, sum(len(layer) for layer in tree.layers)) for tree in trees):
        raise ValueError("some rows are in no layer")
    return tuple(trees)


def _read_tree(
    domain: Domain, attribute: int, splits: list[Split], depth_of: np.ndarray, node: np.ndarray, which: np.ndarray
) -> AttributeTree:
    """Layer by layer: as many nodes as the layer above has children; what has stopped stays so; no attribute twice."""
    used = sorted({splits[i] for i in np.unique(which)} | {()})
    place = {split: number for number, split in enumerate(used)}  # () sorts first
    tree = AttributeTree(domain, attribute, tuple(used), ())
    for depth in range(1, int(depth_of.max()) + 1):
        rows = np.flatnonzero(depth_of == depth)
        layer = np.array([place[split] if split in place else 0 for split in splits], dtype=np.int32)[which[rows]]
        if not np.array_equal(node[rows], np.arange(tree.leaves)):
            raise ValueError(f"layer {depth} does not have the nodes that the layer above it splits into")
        fixed, stopped = tree.branches() >= 0, _stopped(tree)
        member = np.array([np.isin(np.arange(len(domain.sizes)), split) for split in used])[layer]
        if (fixed & member).any() or (layer[stopped] != 0).any():
            raise ValueError(f"layer {depth} splits a branch twice on an attribute, or one that has stopped")
        tree = AttributeTree(domain, attribute, tuple(used), (*tree.layers, layer))
    return tree


def _stopped(tree: AttributeTree) -> np.ndarray:
    if not tree.layers:
        return np.zeros(1, dtype=bool)
    return np.repeat(tree.layers[-1] == 0, tree.fanouts[-1])


def cells_of(trees: Trees) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tree, leaf, category) of every cell that is sanitized: those that some allowed record can have."""
    number, leaf, category = [], [], []
    for position, tree in enumerate(trees, start=1):
        leaves, categories = np.nonzero(tree.allowed)
        number.append(np.full(len(leaves), position))
        leaf.append(leaves)
        category.append(categories)
    return np.concatenate(number), np.concatenate(leaf), np.concatenate(category)


def noisy_table(cascade: Cascade) -> pa.Table:
    number, leaf, category = cells_of(cascade.trees)
    values = np.concatenate([noisy[:, tree.allowed] for tree, noisy in zip(cascade.trees, cascade.noisy, strict=True)], axis=1)
    if cascade.total is not None:
        number, leaf, category = (np.concatenate([[0], column]) for column in (number, leaf, category))
        values = np.concatenate([np.full((len(values), 1), cascade.total), values], axis=1)
    columns = {"tree": number.astype(np.int16), "leaf": leaf, "category": category.astype(np.int32)}
    columns |= {f"noisy_{i}": row.astype(np.int64) for i, row in enumerate(values, start=1)}
    return pa.table(columns).cast(forest_noisy(len(values)))


def read_noisy(domain: Domain, trees: Trees, table: pa.Table) -> Cascade:
    """Histograms of exactly the cells that the trees have."""
    number, values = table["tree"].to_numpy(), np.stack([table[name].to_numpy() for name in table.column_names[3:]])
    known = number == 0
    if known.sum() > 1 or len({int(total) for total in values[:, known].ravel()}) > 1:
        raise ValueError("there is more than one exact number of rows")
    found = [table[name].to_numpy()[~known] for name in ("tree", "leaf", "category")]
    if not all(np.array_equal(a, b) for a, b in zip(found, cells_of(trees), strict=True)):
        raise ValueError("the cells are not those of the trees, each once and in order")
    noisy = []
    for position, tree in enumerate(trees, start=1):
        allowed = tree.allowed
        histogram = np.zeros((len(values), *allowed.shape), dtype=np.int64)
        histogram[:, allowed] = values[:, number == position]
        noisy.append(histogram)
    return Cascade(domain, trees, tuple(noisy), int(values[0, known][0]) if known.any() else None)


def read_sanitized(domain: Domain, tables: Mapping[str, pa.Table]) -> Cascade:
    """Trees and noisy histograms as they were published."""
    return read_noisy(domain, read_trees(domain, tables["tree"]), tables["noisy-counts"])


def estimates_table(plan: Plan, cascade: Cascade) -> pa.Table:
    """The mean of the measurements of every cell, with its standard error."""
    number, leaf, category = cells_of(cascade.trees)
    mean, error = [], []
    for tree, noisy in zip(cascade.trees, cascade.noisy, strict=True):
        allowed = tree.allowed
        variance = np.broadcast_to(leaf_variances(tree, plan)[:, None] / plan.measurements, allowed.shape)
        mean.append(noisy.mean(axis=0)[allowed])
        error.append(np.sqrt(variance[allowed]))
    columns = {"tree": number.astype(np.int16), "leaf": leaf, "category": category.astype(np.int32)}
    columns |= {"estimate": np.concatenate(mean), "standard_error": np.concatenate(error)}
    return pa.table(columns).cast(FOREST_COUNTS)


def total_with_error(plan: Plan, cascade: Cascade) -> tuple[float, float]:
    """The inverse-variance mean of the trees' totals with its standard error; exact where the total is known."""
    if cascade.total is not None:
        return float(cascade.total), 0.0
    found = [(counts.sum(), (error**2).sum()) for _, counts, error in margins(plan, cascade)]
    weight = np.array([1 / variance for _, variance in found])
    return float(np.array([total for total, _ in found]) @ weight / weight.sum()), float(weight.sum() ** -0.5)


def margins(plan: Plan, cascade: Cascade) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(attribute, counts, standard errors) of every attribute, summed over the leaves of its own tree."""
    found = []
    for tree, noisy in zip(cascade.trees, cascade.noisy, strict=True):
        variance = (leaf_variances(tree, plan)[:, None] * tree.allowed).sum(axis=0) / plan.measurements
        found.append((tree.attribute, noisy.mean(axis=0).sum(axis=0), np.sqrt(variance)))
    return found
