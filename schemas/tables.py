"""The Arrow schemas of what every release writes, whatever its method; a method's own tables are described in its folder."""

from __future__ import annotations

import pyarrow as pa

from schemas.spec.domain import Domain

COUNT = "(count)"  # no attribute can be named so


PROBLEMS = 3  # codes behind an attribute's categories, for values that are none of them


def code_type(size: int) -> pa.DataType:
    """The narrowest type for the codes of an attribute with so many categories."""
    return pa.uint8() if size + PROBLEMS <= 2**8 else pa.uint16() if size + PROBLEMS <= 2**16 else pa.int32()


def cells(domain: Domain) -> pa.Schema:
    """Occupied cells with their exact counts. CONFIDENTIAL."""
    named = zip(domain.counted.names, domain.counted.sizes, strict=True)
    codes = [pa.field(name, code_type(size), nullable=False) for name, size in named]
    return pa.schema([*codes, pa.field(COUNT, pa.int64(), nullable=False)])


LABELS = pa.dictionary(pa.int32(), pa.string())
_VALUES = {"integer": pa.int64(), "numeric": pa.float64(), "date": pa.date32(), "time": pa.time64("us")}
MINUTE = 60_000_000  # in the parts of a second that a time of day is stored in


def records(domain: Domain) -> pa.Schema:
    """Synthetic records: labels, numbers, dates, times of day, what is derived, the weight; null where a value is missing."""
    fields = []
    for attribute in domain.attributes:
        fields.append(pa.field(attribute.name, _VALUES.get(attribute.kind, LABELS), nullable=attribute.missing == "category"))
    for following in domain.followings:
        fields.append(pa.field(following.derived.name, LABELS, nullable=None in following.codes))
    return pa.schema([*fields, *weights(domain)])


def weights(domain: Domain) -> list[pa.Field]:
    """The column that says for how many people a synthetic row stands, where rows have one."""
    return [pa.field(name, pa.float64(), nullable=False) for name in domain.published_weight]


SYNTHETIC = "synthetic"  # what the records of a set are called; of linked tables those of its households
HOUSEHOLD, PERSON = "household", "person"  # of linked tables; also what their keys are called


def households(domain: Domain) -> pa.Schema:
    """Of linked tables: one row per household, with its key."""
    assert domain.tables is not None
    own = records(domain.of_table(domain.tables.household))
    return pa.schema([pa.field(HOUSEHOLD, pa.int64(), nullable=False), *own])


def persons(domain: Domain) -> pa.Schema:
    """Of linked tables: one row per person, with its household's key and its number there; 1 is the reference person.

    Its weight is the household's.
    """
    assert domain.tables is not None
    own = records(domain.of_table(domain.tables.person))
    keys = (pa.field(name, pa.int64(), nullable=False) for name in (HOUSEHOLD, PERSON))
    return pa.schema([*keys, *own, *weights(domain)])


def linked(domain: Domain) -> dict[str, pa.Schema]:
    """What a set of linked tables has beside its household rows."""
    return {HOUSEHOLD: households(domain), PERSON: persons(domain)} if domain.tables is not None else {}


# What SPECKS and its relatives found, as (measure, which, value) rows. CONFIDENTIAL.
EVALUATION = pa.schema([("measure", pa.string()), ("which", pa.string()), ("value", pa.float64())])

# The plan as its JSON text: one row.
PLAN = pa.schema([pa.field("plan", pa.string(), nullable=False)])

# By which rule what comes after the noise draws: one row.
SEEDS = pa.schema([pa.field("seeds", pa.string(), nullable=False)])
