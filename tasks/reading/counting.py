"""Records → exact counts of occupied cells, in one streamed pass inside DuckDB. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from schemas import tables
from schemas.errors import DataInvalid, InfrastructureFault
from schemas.expectations import wanted_columns
from schemas.spec.database import DatabaseSource
from schemas.spec.domain import Domain
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.domain.rules import breaking
from tasks.reading.encoding_sql import unpacked
from tasks.reading.locked_down import ONE_THREAD, memory_for
from tasks.reading.persons_sql import bounded_cells, prepare, whole_units
from tasks.reading.sources import ReadingFailed, Source, connect, open_source, query_in_blocks

UNFIT = "the records do not fit the domain although they were validated: they have changed since. Run the release again."


def count_cells(path: str | DatabaseSource, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Counts:
    """How many records, or units of weight, each occupied cell holds, within the bounds on rows per person and weights.

    `key` draws the lots of `excess: drop`, and those by which weights are rounded.

    DuckDB spills into `scratch`, which must be confidential.
    """
    return Counts.from_table(domain, pa.concat_tables(counted(path, domain, scratch, key)))


def counted(path: str | DatabaseSource, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Iterator[pa.Table]:
    """The same as a table, block by block: however many cells there are, DuckDB's bound and one block are held."""
    source = open_source(path, domain)
    must_be_readable(source, domain)
    return counts_of(bounded_cells(source, domain), source, domain, scratch, key)


def counts_of(cells: str, source: Source, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Iterator[pa.Table]:
    """The counts of packed cells, in the order of their codes; at least one block."""
    columns = ", ".join(f"{code} AS k{j}" for j, code in enumerate(unpacked(domain)))
    sql = f"SELECT {columns}, n FROM ({whole_units(cells, domain)} ORDER BY ALL)"  # sorted words, sorted codes
    schema, some = tables.cells(domain), False
    for found in answers(sql, source, domain, scratch, key):
        block = pa.Table.from_arrays(found.columns, schema=schema)
        if not _fits(Counts.from_table(domain, block), domain):
            raise DataInvalid(UNFIT)
        yield block
        some = True
    if not some:
        yield schema.empty_table()


def answers(sql: str, source: Source, domain: Domain, scratch: Path, key: bytes) -> Iterator[pa.Table]:
    """What DuckDB answers about records that were validated, in blocks: if it cannot, they have changed since.

    Two threads that group at once now and then want more than the memory set aside, where one spills: it is asked again, as
    long as it has answered nothing.
    """
    told, roomy = False, memory_for(domain)
    for settings in (roomy, roomy | ONE_THREAD):
        try:
            for block in _asked(sql, source, domain, scratch, key, settings):
                told = True
                yield block
            return
        except ReadingFailed:
            break  # raised below: neither cause nor context
        except InfrastructureFault:
            if told or settings is not roomy:
                raise
    raise DataInvalid(UNFIT)


def _asked(
    sql: str, source: Source, domain: Domain, scratch: Path, key: bytes, settings: Mapping[str, str]
) -> Iterator[pa.Table]:
    with connect(source, scratch, settings) as connection:
        prepare(connection, domain, key)
        yield from query_in_blocks(connection, sql, BLOCK)


def must_be_readable(source: Source, domain: Domain) -> None:
    if sorted(source.wanted) != sorted(wanted_columns(domain)):
        raise DataInvalid(UNFIT)


def _fits(counts: Counts, domain: Domain) -> bool:
    """Whether every cell is one of the domain's and breaks no rule."""
    outside = (column.max(initial=0) >= size for column, size in zip(counts.codes.T, domain.sizes, strict=True))
    if any(outside):
        return False
    return not any(breaking(zero, counts.codes).any() for zero in domain.zeros)
