"""Counting shared out: workers count some of the source's files each, into parts that are added up. CONFIDENTIAL.

A part holds packed cells, problems included. Counts of disjoint records add, so the sum over parts is the table that one
pass over all files gives, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from schemas.spec.database import DatabaseSource
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from tasks.reading.counting import answers, counts_of, must_be_readable
from tasks.reading.encoding_sql import words
from tasks.reading.persons_sql import bounded_cells
from tasks.reading.sources import open_files, open_source, short_lived
from tasks.stores.files import keep, private_folder, temporary
from tasks.stores.home import Home
from tasks.stores.keys import secret_key
from tasks.tables_on_disk import write_blocks

MOST_PARTS = 64


def shares_of_source(release: Release) -> list[tuple[str, ...]]:
    """The source's files, in shares that can be counted apart.

    Whether a person's records keep the bound depends on all of that person's, in whichever files: where a column names
    the person there is one share. A database is asked once, and linked tables are joined: there is no file to share.
    """
    if release.domain.tables is not None or isinstance(release.source, DatabaseSource):
        return []
    files = open_source(release.source, release.domain).files
    parts = 1 if release.domain.unit.column is not None else min(MOST_PARTS, len(files))
    return [files[i::parts] for i in range(parts)]


@contextmanager
def room_for_parts(home: Home, release: Release, count: int) -> Iterator[list[str]]:
    """Where that many parts go: gone afterwards, and after a crash when the release is next counted."""
    with short_lived(private_folder(home.confidential / release.name), "parts") as folder:
        yield [str(folder / f"{number}.parquet") for number in range(1, count + 1)]


def count_part(home: Home, release: Release, files: tuple[str, ...], part: str) -> None:
    """Count the cells of some files of the source, block by block; done twice, it gives the same.

    However large the files are, DuckDB's bound and a block are held.
    """
    source, domain, final = open_files(files, str(release.source), release.domain), release.domain, Path(part)
    must_be_readable(source, domain)
    scratch = private_folder(home.confidential / release.name)
    blocks = answers(bounded_cells(source, domain), source, domain, scratch, secret_key(home, "excess"))
    with temporary(final.parent) as file:
        write_blocks(file, blocks, packed_schema(domain), "a part of the counts")
        keep(file, final)


def packed_schema(domain: Domain) -> pa.Schema:
    """Codes of a cell packed into whole numbers, and how many records, or millionths of a unit, it holds."""
    return pa.schema([(name, pa.int64()) for name in (*(f"b{i}" for i in range(len(words(domain)))), "n")])


def add_up(release: Release, parts: Sequence[str], scratch: Path, key: bytes) -> Iterator[pa.Table]:
    """The sum of the parts' cells, block by block: what one pass over all files would have counted."""
    source, domain = open_files(tuple(parts), str(release.source)), release.domain
    packed = len(words(domain))
    columns = ", ".join(f"c{i} AS b{i}" for i in range(packed))
    cells = f"SELECT {columns}, sum(c{packed})::BIGINT AS n FROM {source.relation()} GROUP BY ALL"
    return counts_of(cells, source, domain, scratch, key)
