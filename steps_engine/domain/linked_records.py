"""Linked synthetic tables: households and persons with their keys, from household rows and members; and back again.

Household i is row i of the household rows. Person 1 of a household is its reference person; others are numbered on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.flattened import PERSONS, REFERENCE, number_of
from schemas.spec.linked import PersonTable
from schemas.spec.unit import Unit
from schemas.tables import HOUSEHOLD, PERSON
from steps_engine.domain.records import codes_of, derived_columns, not_following


def _person(domain: Domain) -> PersonTable:
    assert domain.tables is not None
    return domain.tables.person


def members_of(domain: Domain, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Of every other member that household rows tell of: its household's row, and its kind where kinds are counted."""
    person = _person(domain)
    number = codes[:, domain.index(PERSONS)].astype(np.int64)
    home = np.repeat(np.arange(len(codes)), number)
    if not person.listed_kinds:
        return home, None
    listed = [codes[:, domain.index(number_of(kind))].astype(np.int64) for kind in person.listed_kinds[:-1]]
    counts = np.stack([*listed, number - sum(listed, np.zeros_like(number))], axis=1)
    return home, np.repeat(np.tile(np.arange(counts.shape[1]), len(codes)), counts.ravel())


def linked_tables(domain: Domain, rows: pa.Table, home: np.ndarray, own: pa.Table, before: int = 0) -> dict[str, pa.Table]:
    """Households and persons; `own` are the attributes of other members, by household, `home` the household's row of each.

    Keys go on where those of so many households before them end.
    """
    return {HOUSEHOLD: households_of(domain, rows, before), PERSON: _persons(domain, rows, home, own, before)}


def households_of(domain: Domain, rows: pa.Table, before: int = 0) -> pa.Table:
    """Each with its key, 1, 2, …, and its own attributes."""
    schema = tables.households(domain)
    key = pa.array(np.arange(1, len(rows) + 1) + before)
    return pa.Table.from_arrays([key, *(rows[name] for name in schema.names[1:])], schema=schema)


def _persons(domain: Domain, rows: pa.Table, home: np.ndarray, own: pa.Table, before: int) -> pa.Table:
    person, schema = _person(domain), tables.persons(domain)
    place = np.arange(len(home)) - np.searchsorted(home, home) + 2
    household = np.concatenate([np.arange(len(rows)), home]) + 1 + before
    number = np.concatenate([np.ones(len(rows), dtype=np.int64), place])
    order = pa.array(np.lexsort((number, household)))
    columns = [pa.array(household).take(order), pa.array(number).take(order)]
    for name in person.names:
        if name == person.reference_name:
            first = pa.chunked_array([pa.array([person.reference_label]).take(pa.array(np.zeros(len(rows), dtype=np.int64)))])
        else:
            first = rows[REFERENCE + name]
        columns.append(_joined(first, own[name], schema.field(name).type).take(order))
    alone = domain.of_table(person)
    codes = codes_of(pa.table(columns[2:], names=person.names), alone)
    return pa.Table.from_arrays([*columns, *derived_columns(codes, alone)], schema=schema)


def _joined(first: pa.ChunkedArray, second: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    plain = pa.string() if pa.types.is_dictionary(kind) else kind
    both = pa.chunked_array([*first.cast(plain).chunks, *second.cast(plain).chunks], plain)
    whole = pa.concat_arrays(both.chunks) if both.num_chunks else pa.array([], plain)
    return whole.dictionary_encode() if pa.types.is_dictionary(kind) else whole


def member_table(domain: Domain, rows: pa.Table, persons: pa.Table) -> pa.Table:
    """The rows of other members: their household's columns, then their own."""
    others = persons.filter(pc.greater(persons[PERSON], 1))
    home = pc.subtract(others[HOUSEHOLD], 1)
    schema, flat = tables.records(domain.counted), rows.take(home)
    columns = [flat[name] for name in domain.names] + [others[name] for name in _person(domain).names]
    plain = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in columns]
    encoded = [
        each.dictionary_encode() if pa.types.is_dictionary(t) else each for each, t in zip(plain, schema.types, strict=True)
    ]
    return pa.Table.from_arrays([each.combine_chunks() for each in encoded], schema=schema)


def everybody(domain: Domain) -> Domain:
    """The domain of all persons beside the columns of their households, as somebody asks who has the linked tables."""
    person, flat = _person(domain), domain.as_published()
    own = tuple(each.as_published() for each in person.attributes)
    derived, ignored = (*domain.derived, *person.derived), (*flat.ignore, *(each.name for each in person.derived))
    unit = Unit(who=domain.unit.who, rows_per_person=person.at_most)
    kept = {"attributes": (*domain.attributes, *own), "derived": derived, "ignore": ignored, "rules": (), "unit": unit}
    return flat.model_copy(update=kept | {"expected_rows": person.expected_rows})


def everybody_table(domain: Domain, rows: pa.Table, persons: pa.Table) -> pa.Table:
    """Every person, the reference person included, beside its household's columns."""
    homes, own = rows.take(pc.subtract(persons[HOUSEHOLD], 1)), persons.drop_columns([HOUSEHOLD, PERSON])
    return pa.table({name: table[name] for table in (homes, own) for name in table.column_names})


def link_problems(domain: Domain, rows: pa.Table, persons: pa.Table) -> Iterator[str]:
    """Whatever does not hold between household rows and persons: keys, numbers, reference persons, composition."""
    person, codes = _person(domain), codes_of(rows, domain)
    household, number = persons[HOUSEHOLD].to_numpy(), persons[PERSON].to_numpy()
    size = codes[:, domain.index(PERSONS)] + 1
    wanted = np.repeat(np.arange(1, len(rows) + 1), size)
    first = np.cumsum(size) - size
    if not np.array_equal(household, wanted) or not np.array_equal(number, np.arange(len(wanted)) - first[wanted - 1] + 1):
        yield "does not have as many persons in every household as its row says, numbered 1, 2, … and in order"
        return
    reference = persons.take(pa.array(first))
    label = pc.equal(persons[person.reference_name].cast(pa.string()), person.reference_label).fill_null(False)
    if not np.array_equal(np.asarray(label), number == 1):
        yield f"does not have exactly one {person.reference_label} in every household, who is its person 1"
    for name in (name for name in person.names if name != person.reference_name):
        if not same_values(reference[name], rows[REFERENCE + name]):
            yield f"has a reference person whose {name} is not the one of its household's row"
    yield from _kind_problems(domain, codes, persons)
    own = domain.of_table(person)
    if (own_codes := codes_of(persons, own)).min(initial=0) >= 0:  # other values are told where members are looked at
        for name in not_following(persons, own_codes, own):
            yield f"has a person whose {name} does not follow from its other attributes by the domain's table"


def is_same(one: pa.Table, other: pa.Table) -> bool:
    """Whether tables of one schema hold the same values."""
    return len(one) == len(other) and all(same_values(one[name], other[name]) for name in other.column_names)


def same_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    plain = pa.string() if pa.types.is_dictionary(one.type) else one.type
    return bool(one.cast(plain).combine_chunks().equals(other.cast(plain).combine_chunks()))


def _kind_problems(domain: Domain, codes: np.ndarray, persons: pa.Table) -> Iterator[str]:
    person = _person(domain)
    if not person.listed_kinds:
        return
    others = persons.filter(pc.greater(persons[PERSON], 1))
    home = others[HOUSEHOLD].to_numpy() - 1
    kinds = others[str(person.kinds)].cast(pa.string()).fill_null("(missing)")
    for kind in person.listed_kinds[:-1]:
        here = np.bincount(home[np.asarray(pc.equal(kinds, kind))], minlength=len(codes))
        if not np.array_equal(here, codes[:, domain.index(number_of(kind))]):
            yield f"does not have as many members of kind {kind} in every household as its row says"
