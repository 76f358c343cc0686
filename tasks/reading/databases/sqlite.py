"""SQLite files. Their columns have no types, only their values do: all is taken as it is written, as from a CSV file.

A query stands in a temporary view, which holds one SELECT and nothing else; its columns are known without running it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import StepsError
from schemas.expectations import AS_WRITTEN
from schemas.spec.database import DatabaseSource
from tasks.reading.databases import VALUES_PER_BATCH, DatabaseKind, one_select, out_of_reach, unusable
from tasks.reading.formats import Columns, Unreadable

PATIENCE = 10.0  # seconds to wait for a writer
_VIEW = '"(what is asked)"'  # a name that no table has
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM)
_HINT = "Let its writers finish, and see that this account may read the file and its folder."


def _connect(source: DatabaseSource) -> sqlite3.Connection:
    assert source.path is not None
    connection = sqlite3.connect(f"file:{quote(source.path)}?mode=ro", uri=True, timeout=PATIENCE, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _columns(source: DatabaseSource) -> Columns:
    problem: StepsError | None = None
    try:
        with closing(_connect(source)) as connection:
            connection.execute("BEGIN")
            _view(connection, source, "")
            return tuple((str(row[1]), AS_WRITTEN) for row in connection.execute(f"PRAGMA table_info({_VIEW})"))
    except (sqlite3.Error, sqlite3.Warning) as error:
        problem = _refusal(source, error)
    raise problem


def _view(connection: sqlite3.Connection, source: DatabaseSource, names: str) -> None:
    connection.execute(f"CREATE TEMP VIEW {_VIEW}{names} AS {source.sql}")


def _refusal(source: DatabaseSource, error: Exception) -> StepsError:
    """Before records are read, SQLite's words are about the file and the query."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return out_of_reach(source, str(error), _HINT)
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.Warning) or "parameters are not allowed" in str(error):
        return one_select(source)
    if code == sqlite3.SQLITE_NOTADB:
        return unusable(source, "the file is no SQLite database")
    return unusable(source, str(error))


def _unpack(source: DatabaseSource, target: Path, columns: Columns, wanted: Collection[int]) -> None:
    problem: Exception | None = None
    try:
        with closing(_connect(source)) as connection:
            connection.execute("BEGIN")
            _view(connection, source, f"({', '.join(f'c{i}' for i in range(len(columns)))})")
            _write(connection, target, len(columns), wanted)
    except sqlite3.Error as error:
        is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
        problem = out_of_reach(source, "busy or unreadable", _HINT) if is_busy else Unreadable(str(error))
    if problem is not None:
        raise problem


def _write(connection: sqlite3.Connection, target: Path, width: int, wanted: Collection[int]) -> None:
    picked = ", ".join(_text(f"c{i}") if i in wanted else "NULL" for i in range(width))
    rows = connection.execute(f"SELECT {picked} FROM {_VIEW}")
    schema = pa.schema([(f"c{i}", pa.string()) for i in range(width)])
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for batch in _batches(rows, max(1, VALUES_PER_BATCH // width)):
            writer.write_table(pa.table([pa.array(values, pa.string()) for values in zip(*batch, strict=True)], schema=schema))


def _batches(rows: sqlite3.Cursor, size: int) -> Iterator[list[tuple[str | None, ...]]]:
    while batch := rows.fetchmany(size):
        yield batch


def _text(column: str) -> str:
    """The value as a file would write it: a whole number without a point, any other with all of its digits."""
    whole = f"{column} = CAST({column} AS INTEGER) AND abs({column}) < 9007199254740992"
    short = f"CAST(CAST({column} AS TEXT) AS REAL) = {column}"
    real = (
        f"CASE WHEN {whole} THEN CAST(CAST({column} AS INTEGER) AS TEXT) "
        f"WHEN {short} THEN CAST({column} AS TEXT) ELSE printf('%!.17g', {column}) END"
    )
    return f"CASE typeof({column}) WHEN 'real' THEN {real} WHEN 'blob' THEN hex({column}) ELSE CAST({column} AS TEXT) END"


ENTRY = DatabaseKind("sqlite", 2, _columns, _unpack)
