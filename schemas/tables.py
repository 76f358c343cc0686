"""The Arrow schema of every file a release writes. One place, so that a reader knows what to expect."""

from __future__ import annotations

import pyarrow as pa

from schemas.spec.domain import Domain

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


COUNT = "(count)"  # no attribute can be named so


PROBLEMS = 3  # codes behind an attribute's categories, for values that are none of them


def code_type(size: int) -> pa.DataType:
    """The narrowest type for the codes of an attribute with so many categories."""
    return pa.uint8() if size + PROBLEMS <= 2**8 else pa.uint16() if size + PROBLEMS <= 2**16 else pa.int32()


def cells(domain: Domain) -> pa.Schema:
    """Occupied cells with their exact counts. CONFIDENTIAL."""
    codes = [pa.field(name, code_type(size), nullable=False) for name, size in zip(domain.names, domain.sizes, strict=True)]
    return pa.schema([*codes, pa.field(COUNT, pa.int64(), nullable=False)])


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

_VALUES = {"integer": pa.int64(), "numeric": pa.float64(), "date": pa.date32()}


def records(domain: Domain) -> pa.Schema:
    """Synthetic records: labels, whole numbers, numbers and dates; null where a value is missing."""
    fields = []
    for attribute in domain.attributes:
        kind = _VALUES.get(attribute.kind, pa.dictionary(pa.int32(), pa.string()))
        fields.append(pa.field(attribute.name, kind, nullable=attribute.missing == "category"))
    return pa.schema(fields)


# What SPECKS and its relatives found, as (measure, which, value) rows. CONFIDENTIAL.
EVALUATION = pa.schema([("measure", pa.string()), ("which", pa.string()), ("value", pa.float64())])

# The plan as its JSON text: one row.
PLAN = pa.schema([pa.field("plan", pa.string(), nullable=False)])
