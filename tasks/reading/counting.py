"""Records → exact counts of occupied cells, in one streamed pass inside DuckDB. CONFIDENTIAL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from schemas import tables
from schemas.errors import DataInvalid
from schemas.expectations import wanted_columns
from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.domain.rules import breaking
from tasks.reading.encoding_sql import unpacked
from tasks.reading.persons_sql import bounded_cells, prepare
from tasks.reading.sources import ReadingFailed, Source, connect, open_source, query

UNFIT = "the records do not fit the domain although they were validated: they have changed since. Run the release again."


def count_cells(path: str, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Counts:
    """How many records each occupied cell holds, within the bound on rows per person; `key` draws the lots of `excess: drop`.

    DuckDB spills into `scratch`, which must be confidential.
    """
    source = open_source(path, domain)
    must_be_readable(source, domain)
    return counts_of(bounded_cells(source, domain), source, domain, scratch, key)


def counts_of(cells: str, source: Source, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> Counts:
    """The counts of packed cells, in the order of their codes."""
    columns = ", ".join(f"{code} AS k{j}" for j, code in enumerate(unpacked(domain)))
    sql = f"SELECT {columns}, n FROM ({cells} ORDER BY ALL)"  # sorted words, sorted codes
    found = answer(sql, source, domain, scratch, key)
    counts = Counts.from_table(domain, pa.Table.from_arrays(found.columns, schema=tables.cells(domain)))
    if not _fits(counts, domain):
        raise DataInvalid(UNFIT)
    return counts


def answer(sql: str, source: Source, domain: Domain, scratch: Path, key: bytes = PUBLIC_KEY) -> pa.Table:
    """What DuckDB answers about records that were validated: if it cannot, they have changed since."""
    try:
        with connect(source, scratch) as connection:
            prepare(connection, domain, key)
            return query(connection, sql)
    except ReadingFailed:
        pass  # raised below: neither cause nor context
    raise DataInvalid(UNFIT)


def must_be_readable(source: Source, domain: Domain) -> None:
    if sorted(source.wanted) != sorted(wanted_columns(domain)):
        raise DataInvalid(UNFIT)


def _fits(counts: Counts, domain: Domain) -> bool:
    """Whether every cell is one of the domain's and breaks no rule."""
    outside = (column.max(initial=0) >= size for column, size in zip(counts.codes.T, domain.sizes, strict=True))
    if any(outside):
        return False
    return not any(breaking(zero, counts.codes).any() for zero in domain.zeros)
