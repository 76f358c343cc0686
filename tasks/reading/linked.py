"""Linked tables → exact counts of household rows and of members' rows. CONFIDENTIAL.

Each table is coded by itself, as any source is, into a file of codes and keys that lives as long as the query that joins them.
That query keeps the bounds itself, whatever the sources held when they were validated: where one does not hold, DuckDB ends it
with an error, whose text is ours and names nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import DataInvalid
from schemas.expectations import wanted_columns
from schemas.spec.attributes import Named
from schemas.spec.database import DatabaseSource
from schemas.spec.domain import Domain
from schemas.spec.linked import HouseholdTable, PersonTable, Tables
from schemas.tables import HOUSEHOLD, PERSON, code_type
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.domain.linked import joined
from steps_engine.domain.rules import breaking
from tasks.reading.encoding_sql import coded_rows, counted_rows, keyed_rows
from tasks.reading.locked_down import literal, memory_for
from tasks.reading.persons_sql import KEY, prepare
from tasks.reading.profile import EXAMPLES, Finding, short
from tasks.reading.sources import ReadingFailed, Source, connect, open_source, query, query_in_blocks, short_lived
from tasks.reading.values_sql import as_text
from tasks.reading.weights_sql import WHOLE, number, rounded_households
from tasks.stores.files import disk_faults

UNFIT = "the records do not fit the domain although they were validated: they have changed since. Run the release again."
_REFUSED = "error('a household or a person stands twice or alone, or has more members than the domain says')"
_NARROW = {pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.int32(): "INTEGER"}
Sources = tuple[str | DatabaseSource, ...]


@dataclass(frozen=True)
class Link:
    """Something that must hold between the tables: in words, and the SQL of the keys of those that break it."""

    name: str
    column: str
    words: str
    breaks: str


def count_linked(sources: Sources, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Counts:
    """Household rows and members' rows, or units of their households' weights, within all bounds; `key` draws the lots by which
    weights are rounded. DuckDB spills into `scratch`, which must be confidential.
    """
    return Counts.from_table(domain, pa.concat_tables(counted_linked(sources, domain, scratch, key)))


def counted_linked(sources: Sources, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Iterator[pa.Table]:
    """The same as a table, block by block: however many cells there are, DuckDB's bound and one block are held."""
    try:
        with coded(sources, domain, scratch, key) as connection:
            for households, members in counts_of(connection, domain):
                if any(rule_breaks([(households, members)], domain)):
                    raise DataInvalid(UNFIT)
                yield joined(domain, households, members).to_table(domain)
            return
    except ReadingFailed:
        pass  # raised below: neither cause nor context
    raise DataInvalid(UNFIT)


def counts_of(connection: duckdb.DuckDBPyConnection, domain: Domain) -> Iterator[tuple[Counts, Counts]]:
    """Distinct rows of codes with their number, or that of units, of households and of other members: in the order of their
    codes, block by block, and at least one.
    """
    assert domain.tables is not None
    query(connection, f"CREATE TEMP TABLE homes AS {_homes(domain.tables)}")  # whole, whatever is asked of it later
    some = False
    for block in query_in_blocks(connection, _cells(domain), BLOCK):
        yield _apart(block, domain)
        some = True
    if not some:
        yield _apart(query(connection, f"{_cells(domain)} LIMIT 0"), domain)


def _apart(block: pa.Table, domain: Domain) -> tuple[Counts, Counts]:
    """Household rows, and rows of other members: told apart by the query, whatever codes they have."""
    alone, found = np.asarray(block["alone"].combine_chunks()), []
    for kept, flat in ((alone, domain), (~alone, domain.counted)):
        codes = no_codes(int(kept.sum()), flat.sizes)
        for j, column in enumerate(block.columns[: len(flat.sizes)]):
            codes[:, j] = np.asarray(column)[kept]
        found.append(Counts(codes, block["n"].to_numpy()[kept]))
    return found[0], found[1]


def _cells(domain: Domain) -> str:
    """Both kinds of rows with their number, in the order in which they are kept: of a household's row members are nobody."""
    sizes, first = domain.counted.sizes, len(domain.sizes)
    places = range(len(sizes))
    own = ", ".join(f"k{j}" for j in places[:first])
    everything = ", ".join(f"k{j}" for j in places)
    nobody = ", ".join(f"{sizes[j]} AS k{j}" for j in places[first:])
    narrow = ", ".join(f"k{j}::{_NARROW[code_type(sizes[j])]} AS k{j}" for j in places)
    n = f"{number(domain, WHOLE)}::BIGINT AS n"
    households = f"SELECT {own}, {nobody}, {n}, true AS alone FROM ({household_rows(domain)}) GROUP BY {own}"
    members = f"SELECT {everything}, {n}, false AS alone FROM ({member_rows(domain)}) GROUP BY {everything}"
    return f"SELECT {narrow}, n, alone FROM ({households} UNION ALL {members}) WHERE n > 0 ORDER BY {everything}"


def rule_breaks(counts: Iterable[tuple[Counts, Counts]], domain: Domain) -> list[int]:
    """Of every rule of both flat tables how many rows break it; the last two: rows with a code that is no category."""
    return [sum(rows) for rows in zip(*(_breaks(*each, domain) for each in counts), strict=True)]


def _breaks(households: Counts, members: Counts, domain: Domain) -> Iterator[int]:
    for zero in domain.zeros:
        yield int(households.count[breaking(zero, households.codes)].sum())
    for zero in domain.counted.zeros[len(domain.zeros) :]:
        yield int(members.count[breaking(zero, members.codes)].sum())
    for found, flat in ((households, domain), (members, domain.counted)):
        yield int(found.count[(found.codes >= np.array(flat.sizes)).any(axis=1)].sum())


@contextmanager
def coded(sources: Sources, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with both tables as codes: `households` (household, h0, h1, …) and `persons` (household, person, p0, …).

    With weights each household has its whole units too.
    """
    assert domain.tables is not None
    household, person = domain.tables.household, domain.tables.person
    with short_lived(scratch, "parts") as folder:
        files = []
        both: tuple[HouseholdTable | PersonTable, ...] = (household, person)
        for path, table, letter in zip(sources, both, "hp", strict=True):
            files.append(folder / f"{letter}.parquet")
            _write(open_table(path, table, domain), table, domain.of_table(table), files[-1], key)
        with connect(Source(tuple(map(str, files)), "parquet", ()), scratch, memory_for(domain.counted)) as connection:
            for name, file in zip(("households", "persons"), files, strict=True):
                query(connection, f"CREATE TEMP VIEW {name} AS SELECT * FROM read_parquet({literal(str(file))})")
            yield connection


def open_table(path: str | DatabaseSource, table: HouseholdTable | PersonTable, domain: Domain) -> Source:
    """The source of one table; the key of persons is read, though it is no attribute."""
    source = open_source(path, domain.of_table(table))
    key = table.key if isinstance(table, PersonTable) else None
    wanted = [*wanted_columns(domain.of_table(table)), *((key,) if key else ())]
    source = replace(source, ignored=source.ignored - {key})
    if sorted(source.wanted) != sorted(wanted):
        raise DataInvalid(UNFIT)
    return source


def _write(source: Source, table: HouseholdTable | PersonTable, domain: Domain, file: Path, key: bytes) -> None:
    """Codes and keys of one table, keys as texts: tables of different formats are compared, and 1 is 1.0 there.

    A household's weight becomes whole units here, once for itself and everybody in it; one out of bounds ends the query.
    """
    home, letter = _key(str(domain.unit.column), source), file.name[0]
    columns = [f"{home} AS household", *(f"k{j} AS {letter}{j}" for j in range(len(domain.names)))]
    if isinstance(table, PersonTable) and table.key:
        columns.append(f"{_key(table.key, source)} AS person")
    if domain.weight is not None:
        columns.append(rounded_households(home, KEY))
    rows = counted_rows(source, domain) if domain.weight is not None else keyed_rows(source, domain)
    with connect(source, file.parent) as connection:
        prepare(connection, domain, key)
        sql = f"SELECT {', '.join(columns)} FROM {coded_rows(rows, source, domain)}"
        schema = query(connection, f"{sql} LIMIT 0").schema
        with disk_faults(file), pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for block in query_in_blocks(connection, sql, BLOCK):
                writer.write_table(block)


def _key(column: str, source: Source) -> str:
    """As text; NULL where nobody is named, which is NaN in a column of numbers."""
    place = source.names.index(column)
    return as_text(f"c{place}", source.columns[place][1])


def links(domain: Domain) -> tuple[Link, ...]:
    """What must hold between households and persons; each query is of whole tables, and none of them is left to another."""
    assert domain.tables is not None
    household, person = domain.tables.household, domain.tables.person
    per_home = f"SELECT household AS key, count(*) AS n, {_counted(domain.tables)} FROM persons GROUP BY household"
    alone = "SELECT household AS key FROM {0} ANTI JOIN {1} USING (household)"
    one, of_person = f"is {person.reference_label} of exactly one person in every household", f"{PERSON}: {{}}".format
    there = "is the key of a household that is there"
    found = [
        Link("orphan", of_person(person.column), there, alone.format("persons", "households")),
        Link("empty", f"{HOUSEHOLD}: {household.key}", "has at least one person", alone.format("households", "persons")),
        Link("references", of_person(person.reference_name), one, f"SELECT key FROM ({per_home}) WHERE refs <> 1"),
    ]
    if person.key:
        words = "tells persons apart: nobody stands twice, and nobody in two households"
        twice = "SELECT person AS key FROM persons WHERE person IS NOT NULL GROUP BY person HAVING count(*) > 1"
        nobody = "SELECT 'of household ' || household AS key FROM persons WHERE person IS NULL"
        found.append(Link("twice", of_person(person.key), words, twice))
        found.append(Link("unnamed", of_person(person.key), "is never missing", nobody))
    for i, kind in enumerate(person.listed_kinds):
        if (most := person.most_of(kind)) < person.members:
            words = f"is {kind} of at most {most} other member{'' if most == 1 else 's'} of a household"
            found.append(
                Link(f"most {kind}", of_person(person.kinds), words, f"SELECT key FROM ({per_home}) WHERE kind{i} > {most}")
            )
    return tuple(found)


def household_rows(domain: Domain) -> str:
    """One row of codes per household: its own, its composition, its reference person's."""
    assert domain.tables is not None
    person = domain.tables.person
    reference = person.names.index(person.reference_name)
    own = [f"h{j}" for j in range(len(domain.tables.household.names))]
    numbers = ["n - 1", *(f"kind{i}" for i in range(len(person.listed_kinds) - 1))]
    theirs = [f"p{j}" for j in range(len(person.names)) if j != reference]
    columns = ", ".join([*(f"{each} AS k{j}" for j, each in enumerate((*own, *numbers, *theirs))), *_units(domain)])
    return f"SELECT {columns} FROM homes JOIN persons USING (household) WHERE {_is_reference(person)}"


def member_rows(domain: Domain) -> str:
    """One row of codes per other member: its household's row and its own."""
    assert domain.tables is not None
    person = domain.tables.person
    place, code = person.names.index(person.reference_name), _reference_code(person)
    names = [f"k{j}" for j in range(len(domain.names))]
    homes = household_rows(domain).replace("SELECT ", "SELECT household, ", 1)
    own = [f"p{j} - (p{j} > {code})::INTEGER" if j == place else f"p{j}" for j in range(len(person.names))]
    columns = ", ".join([*names, *(f"{each} AS k{len(names) + j}" for j, each in enumerate(own)), *_units(domain)])
    return f"SELECT {columns} FROM ({homes}) JOIN persons USING (household) WHERE NOT ({_is_reference(person)})"


def _units(domain: Domain) -> tuple[str, ...]:
    """Of a household, and of everybody in it, where households have weights."""
    return (WHOLE,) if domain.weight else ()


def _homes(tables: Tables) -> str:
    """Households with the number of their persons, in all and of each kind. The bounds hold here or the query ends."""
    person = tables.person
    homes = f"SELECT household, count(*) AS n, {_counted(tables)} FROM ({_persons(person)}) GROUP BY household"
    once = "SELECT *, count(*) OVER (PARTITION BY household) AS times FROM households"
    within = [f"n > {person.at_most}", "refs <> 1", "times <> 1", "n IS NULL", "times IS NULL", "household IS NULL"]
    within += [f"kind{i} > {person.most_of(kind)}" for i, kind in enumerate(person.listed_kinds)]
    joined_ = f"SELECT * FROM ({once}) FULL JOIN ({homes}) USING (household)"
    return f"SELECT * FROM ({joined_}) WHERE CASE WHEN {' OR '.join(within)} THEN {_REFUSED} ELSE true END"


def _persons(person: PersonTable) -> str:
    """All of them; the query ends where one stands twice, in one household or in two."""
    if person.key is None:
        return "SELECT * FROM persons"
    times = "SELECT *, count(*) OVER (PARTITION BY person) AS often FROM persons"
    return f"SELECT * EXCLUDE (often) FROM ({times}) WHERE CASE WHEN often > 1 OR person IS NULL THEN {_REFUSED} ELSE true END"


def _counted(tables: Tables) -> str:
    """Reference persons, and other members of each kind."""
    person = tables.person
    parts = [f"count(*) FILTER ({_is_reference(person)}) AS refs"]
    for i, kind in enumerate(person.listed_kinds):
        attribute = person.attribute(str(person.kinds))
        code, place = attribute.labels.index(kind), person.names.index(str(person.kinds))
        parts.append(f"count(*) FILTER (NOT ({_is_reference(person)}) AND p{place} = {code}) AS kind{i}")
    return ", ".join(parts)


def _is_reference(person: PersonTable) -> str:
    return f"p{person.names.index(person.reference_name)} = {_reference_code(person)}"


def _reference_code(person: PersonTable) -> int:
    attribute = person.attribute(person.reference_name)
    assert isinstance(attribute, Named)
    return attribute.code_of[person.reference_label]


def broken(connection: duckdb.DuckDBPyConnection, domain: Domain) -> dict[str, Finding]:
    """Of every link how many households or persons break it, and the keys of some. CONFIDENTIAL."""
    found: dict[str, Finding] = {}
    for link in links(domain):
        number = int(query(connection, f"SELECT count(*) FROM ({link.breaks})").column(0)[0].as_py())
        some = f"SELECT DISTINCT key FROM ({link.breaks}) ORDER BY length(key), key LIMIT {EXAMPLES}" if number else None
        found[link.name] = Finding(number, tuple(map(short, query(connection, some)["key"].to_pylist())) if some else ())
    return found
