"""Linked synthetic tables: households and persons with their keys, from household rows and members; and back again.

Household i is row i of the household rows. Person 1 of a household is its reference person; others are numbered on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.flattened import PERSONS, REFERENCE, number_of
from schemas.spec.linked import PersonTable
from schemas.spec.unit import Unit
from schemas.tables import HOUSEHOLD, PERSON
from steps_engine.domain.blocks import Reading, blocks_of, held
from steps_engine.domain.records import codes_of, column_codes, derived_columns, not_following
from steps_engine.domain.weights import not_weighing, weight_columns

DISAGREEING = "does not have as many persons in every household as its row says, numbered 1, 2, … and in order"


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
    more = [*derived_columns(codes, alone), *weight_columns(len(codes), domain)]
    return pa.Table.from_arrays([*columns, *more], schema=schema)


def _joined(first: pa.ChunkedArray, second: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    plain = pa.string() if pa.types.is_dictionary(kind) else kind
    both = pa.chunked_array([*first.cast(plain).chunks, *second.cast(plain).chunks], plain)
    whole = pa.concat_arrays(both.chunks) if both.num_chunks else pa.array([], plain)
    return whole.dictionary_encode() if pa.types.is_dictionary(kind) else whole


@dataclass(frozen=True)
class Part:
    """Some household rows with everybody in them, and how many households come before."""

    before: int
    rows: pa.Table
    persons: pa.Table

    @property
    def home(self) -> pa.ChunkedArray:
        """Of every person the place of its household's row."""
        return pc.subtract(self.persons[HOUSEHOLD], self.before + 1)


@dataclass(frozen=True)
class Linked:
    """Household rows and persons, in memory or not: no more than a block of households, with everybody in them, is held."""

    domain: Domain
    rows: Any
    persons: Any

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Part]:
        """As many persons as each block of household rows tells of, whatever keys they have; of these columns, or of all."""
        reading, before = Reading(self.persons, _among(columns, self.persons, (HOUSEHOLD, PERSON))), 0
        for rows in blocks_of(self.rows, _among(columns, self.rows, (PERSONS,))):
            size = column_codes(rows[PERSONS], self.domain.attributes[self.domain.index(PERSONS)]) + 1
            yield Part(before, rows, reading.take(int(size.sum())))
            before += len(rows)


def _among(columns: Sequence[str] | None, records: Any, always: Sequence[str]) -> list[str] | None:
    """Those that a table has, and what it is joined by."""
    return None if columns is None else [name for name in records.schema.names if name in (*columns, *always)]


@dataclass(frozen=True)
class Members(Linked):
    """The rows of other members: their household's columns, then their own."""

    @property
    def num_rows(self) -> int:
        return int(self.persons.num_rows - self.rows.num_rows)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        made = (_member_table(self.domain, part) for part in self.parts())
        return made if columns is None else (table.select(columns) for table in made)


@dataclass(frozen=True)
class Everybody(Linked):
    """Every person, the reference person included, beside its household's columns."""

    @property
    def num_rows(self) -> int:
        return int(self.persons.num_rows)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        made = (_everybody_table(part) for part in self.parts(columns))
        return made if columns is None else (table.select(columns) for table in made)


def member_table(domain: Domain, rows: pa.Table, persons: pa.Table) -> pa.Table:
    """All of them, in memory."""
    return held(Members(domain, rows, persons))


def everybody_table(domain: Domain, rows: pa.Table, persons: pa.Table) -> pa.Table:
    """Everybody, in memory."""
    return held(Everybody(domain, rows, persons))


def _member_table(domain: Domain, part: Part) -> pa.Table:
    is_other = pc.greater(part.persons[PERSON], 1)
    others, flat = part.persons.filter(is_other), part.rows.take(part.home.filter(is_other))
    schema = tables.records(domain.counted)
    columns = [flat[name] for name in domain.names] + [others[name] for name in _person(domain).names]
    columns += [flat[level] for level in domain.coarser]
    columns += [others[name] for name in domain.published_weight]
    plain = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in columns]
    encoded = [
        each.dictionary_encode() if pa.types.is_dictionary(t) else each for each, t in zip(plain, schema.types, strict=True)
    ]
    return pa.Table.from_arrays([each.combine_chunks() for each in encoded], schema=schema)


def _everybody_table(part: Part) -> pa.Table:
    homes, own = part.rows.take(part.home), part.persons.drop_columns([HOUSEHOLD, PERSON])
    return pa.table({name: table[name] for table in (homes, own) for name in table.column_names})


def everybody(domain: Domain) -> Domain:
    """The domain of all persons beside the columns of their households, as somebody asks who has the linked tables."""
    person, flat = _person(domain), domain.as_published()
    own = tuple(each.as_published() for each in person.attributes)
    derived, ignored = (*domain.derived, *person.derived), (*flat.ignore, *(each.name for each in person.derived))
    unit = Unit(who=domain.unit.who, rows_per_person=person.at_most)
    kept: dict[str, Any] = {"attributes": (*domain.attributes, *own), "derived": derived, "ignore": ignored}
    kept |= {"rules": (), "unit": unit, "weight": domain.inherited(person.expected_rows)}
    return flat.model_copy(update=kept | {"expected_rows": person.expected_rows})


def link_problems(domain: Domain, rows: Any, persons: Any) -> Iterator[str]:
    """Whatever does not hold between household rows and persons: keys, numbers, reference persons, composition.

    Both may be tables that are not in memory: every problem is told once, whichever blocks have it.
    """
    found, seen = dict[str, None](), 0
    for part in Linked(domain, rows, persons).parts():
        seen += len(part.persons)
        found |= dict.fromkeys(_problems(domain, part))
        if DISAGREEING in found:
            break
    yield from [DISAGREEING] if DISAGREEING in found or seen != persons.num_rows else found


def _problems(domain: Domain, part: Part) -> Iterator[str]:
    person, persons, codes = _person(domain), part.persons, codes_of(part.rows, domain)
    home, number = part.home.to_numpy(), persons[PERSON].to_numpy()
    size = codes[:, domain.index(PERSONS)] + 1
    wanted = np.repeat(np.arange(len(part.rows)), size)
    first = np.cumsum(size) - size
    if not np.array_equal(home, wanted) or not np.array_equal(number, np.arange(len(wanted)) - first[wanted] + 1):
        yield DISAGREEING
        return
    reference = persons.take(pa.array(first))
    label = pc.equal(persons[person.reference_name].cast(pa.string()), person.reference_label).fill_null(False)
    if not np.array_equal(np.asarray(label), number == 1):
        yield f"does not have exactly one {person.reference_label} in every household, who is its person 1"
    for name in (name for name in person.names if name != person.reference_name):
        if not same_values(reference[name], part.rows[REFERENCE + name]):
            yield f"has a reference person whose {name} is not the one of its household's row"
    yield from (f"has a person whose {name} is not the step of the domain's weights" for name in not_weighing(persons, domain))
    yield from _kind_problems(domain, codes, part)
    own = domain.of_table(person)
    if (own_codes := codes_of(persons, own)).min(initial=0) >= 0:  # other values are told where members are looked at
        for name in not_following(persons, own_codes, own):
            yield f"has a person whose {name} does not follow from its other attributes by the domain's table"


def are_households(domain: Domain, rows: Any, households: Any) -> bool:
    """Whether these are the households of household rows, in order and with keys 1, 2, …; neither need be in memory."""
    reading, before = Reading(households), 0
    for block in blocks_of(rows):
        if not is_same(reading.take(len(block)), households_of(domain, block, before)):
            return False
        before += len(block)
    return bool(households.num_rows == before)


def is_same(one: pa.Table, other: pa.Table) -> bool:
    """Whether tables of one schema hold the same values."""
    return len(one) == len(other) and all(same_values(one[name], other[name]) for name in other.column_names)


def same_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    plain = pa.string() if pa.types.is_dictionary(one.type) else one.type
    return bool(one.cast(plain).combine_chunks().equals(other.cast(plain).combine_chunks()))


def _kind_problems(domain: Domain, codes: np.ndarray, part: Part) -> Iterator[str]:
    person = _person(domain)
    if not person.listed_kinds:
        return
    is_other = pc.greater(part.persons[PERSON], 1)
    others, home = part.persons.filter(is_other), part.home.filter(is_other).to_numpy()
    kinds = others[str(person.kinds)].cast(pa.string()).fill_null("(missing)")
    for kind in person.listed_kinds[:-1]:
        here = np.bincount(home[np.asarray(pc.equal(kinds, kind))], minlength=len(codes))
        if not np.array_equal(here, codes[:, domain.index(number_of(kind))]):
            yield f"does not have as many members of kind {kind} in every household as its row says"
