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
from steps_engine.domain.encoding import PUBLIC_KEY
from tasks.reading.encoding_sql import unpacked
from tasks.reading.persons_sql import bounded_cells, prepare
from tasks.reading.sources import ReadingFailed, Source, connect, open_source, query
from tasks.stores.artifacts import Reference, Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home
from tasks.stores.keys import secret_key

UNFIT = "the records do not fit the domain although they were validated: they have changed since. Run the release again."


def count_cells(release: Release, scratch: Path, key: bytes = PUBLIC_KEY) -> Counts:
    """How many records each occupied cell holds, within the bound on rows per person; `key` draws the lots of `excess: drop`.

    DuckDB spills into `scratch`, which must be confidential.
    """
    source, domain = open_source(release.source), release.domain
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
    """Whether every cell is one of the domain's and breaks no rule."""
    outside = (column.max(initial=0) >= size for column, size in zip(counts.codes.T, domain.sizes, strict=True))
    if any(outside):
        return False
    return not any(
        np.logical_and.reduce([np.isin(counts.codes[:, j], codes) for j, codes in rule.items()]).any()
        for rule in domain.forbidden
    )


def discretize(home: Home, release: Release) -> Reference:
    """Count the records' cells and keep them, confidential, until the release is evaluated."""
    scratch = private_folder(home.confidential / release.name)
    return keep_counts(home, release, count_cells(release, scratch, secret_key(home, "excess")))


def keep_counts(home: Home, release: Release, counts: Counts) -> Reference:
    return Store(home).write(
        release.name, "cells", counts.to_table(release.domain), tables.cells(release.domain), "confidential"
    )
