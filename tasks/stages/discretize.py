"""Records → exact counts of occupied cells, in one streamed pass inside DuckDB. CONFIDENTIAL from here until sanitized."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.errors import DataInvalid
from schemas.expectations import wanted_columns
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from tasks.reading.encoding_sql import category_types, cells_sql, keyed_rows, keys, unpacked
from tasks.reading.sources import ReadingFailed, Source, connect, open_source, query
from tasks.stores.artifacts import Reference, Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home

UNFIT = "the records do not fit the domain although they were validated: they have changed since. Run the release again."


def count_cells(release: Release, scratch: Path) -> Counts:
    """How many records each occupied cell holds; DuckDB spills into `scratch`, which must be confidential."""
    source, domain = open_source(release.source), release.domain
    must_be_readable(source, domain)
    return counts_of(cells_sql(kept_rows(source, domain), source, domain), source, domain, scratch)


def counts_of(cells: str, source: Source, domain: Domain, scratch: Path) -> Counts:
    """The counts of packed cells, in the order of their codes."""
    columns = ", ".join(f"{code} AS k{j}" for j, code in enumerate(unpacked(domain)))
    found = answer(f"SELECT {columns}, n FROM ({cells} ORDER BY ALL)", source, domain, scratch)  # sorted words, sorted codes
    counts = Counts.from_table(domain, pa.Table.from_arrays(found.columns, schema=tables.cells(domain)))
    if not _fits(counts, domain):
        raise DataInvalid(UNFIT)
    return counts


def answer(sql: str, source: Source, domain: Domain, scratch: Path) -> pa.Table:
    """What DuckDB answers about records that were validated: if it cannot read them, they have changed since."""
    try:
        with connect(source, scratch) as connection:
            for statement in category_types(domain):
                query(connection, statement)
            return query(connection, sql)
    except ReadingFailed:
        pass  # raised below: neither cause nor context
    raise DataInvalid(UNFIT)


def kept_rows(source: Source, domain: Domain) -> str:
    """All records, or at most rows_per_person of each person where the rest is dropped.

    Which of them stay depends on that person's own records alone, so adding or removing a person moves nobody else's.
    """
    rows, unit = keyed_rows(source, domain), domain.unit
    if unit.excess == "forbid":
        return rows
    turn = f"row_number() OVER (PARTITION BY c{source.names.index(unit.column)} ORDER BY {keys(domain)})"
    return f"(SELECT {keys(domain)} FROM {rows} QUALIFY {turn} <= {unit.rows_per_person})"


def fingerprint(counts: Counts, domain: Domain, key: bytes) -> str:
    """Keyed hash of the occupied cells in order: the same for any order of rows and any split into files."""
    order = slice(None) if _in_order(counts.codes) else np.lexsort(counts.codes.T[::-1])
    digest = hmac.new(key, json.dumps([domain.names, domain.sizes]).encode(), hashlib.sha256)
    for column in counts.codes.T:
        digest.update(np.ascontiguousarray(column[order], dtype="<i4"))
    digest.update(np.ascontiguousarray(counts.count[order], dtype="<i8"))
    return digest.hexdigest()


def _in_order(codes: np.ndarray) -> bool:
    """Whether rows increase, first column first. DuckDB has put them so; sorting millions of them again would take minutes."""
    alike = np.ones(max(len(codes) - 1, 0), dtype=bool)
    for column in codes.T:
        before, after = column[:-1], column[1:]
        if (alike & (after < before)).any():
            return False
        alike &= after == before
    return True


def must_be_readable(source: Source, domain: Domain) -> None:
    if sorted(source.names) != sorted(wanted_columns(domain)):
        raise DataInvalid(UNFIT)


def _fits(counts: Counts, domain: Domain) -> bool:
    """Whether every cell is one of the domain's, breaks no rule, and there is one at all."""
    outside = (column.max(initial=0) >= size for column, size in zip(counts.codes.T, domain.sizes, strict=True))
    if not len(counts.count) or any(outside):
        return False
    return not any(
        np.logical_and.reduce([np.isin(counts.codes[:, j], codes) for j, codes in rule.items()]).any()
        for rule in domain.forbidden
    )


def discretize(home: Home, release: Release) -> Reference:
    """Count the records' cells and keep them, confidential, until the release is evaluated."""
    return keep_counts(home, release, count_cells(release, private_folder(home.confidential / release.name)))


def keep_counts(home: Home, release: Release, counts: Counts) -> Reference:
    return Store(home).write(
        release.name, "cells", counts.to_table(release.domain), tables.cells(release.domain), "confidential"
    )
