"""DuckDB files, opened for reading alone by a DuckDB that reaches no other file and loads no extension."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb

from schemas.errors import StepsError
from schemas.expectations import AS_WRITTEN
from schemas.spec.database import DatabaseSource
from tasks.reading.databases import DatabaseKind, one_select, out_of_reach, unusable
from tasks.reading.formats import Columns, Unreadable
from tasks.reading.locked_down import LOCKED_DOWN, literal, lock

_HOLDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "whole numbers"),
    **dict.fromkeys(("HUGEINT", "UHUGEINT", "UBIGINT"), AS_WRITTEN),  # kept to the last digit
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "numbers"),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"), "times"),
    "BOOLEAN": "true or false",
    "DATE": "dates",
    '"NULL"': "nothing",
}
_READ_AS = {
    "whole numbers": "{}::BIGINT",
    "times": "make_timestamp(epoch_us({}))",  # with a zone or without: to UTC, and needs no extension
    "text": "{}::VARCHAR",
    AS_WRITTEN: "{}::VARCHAR",
}
_HINT = "Close it where it is open for writing."


def _open(source: DatabaseSource, room: Path | None) -> duckdb.DuckDBPyConnection:
    assert source.path is not None
    config = LOCKED_DOWN | ({"temp_directory": str(room)} if room else {})
    return duckdb.connect(source.path, read_only=True, config=config)


def _columns(source: DatabaseSource) -> Columns:
    problem: StepsError | None = None
    try:
        with _open(source, None) as connection:
            lock(connection, ())
            statements = connection.extract_statements(source.sql)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT] or statements[0].named_parameters:
                raise one_select(source)
            found = connection.execute(f"DESCRIBE {source.sql}").fetchall()
            return tuple((name, _holds(type_)) for name, type_, *_ in found)
    except duckdb.Error as error:
        problem = _refusal(source, error)
    raise problem


def _holds(type_: str) -> str:
    """
    >>> _holds("DECIMAL(9,2)"), _holds("ENUM('a', 'b')"), _holds("INTEGER[]")
    ('numbers', 'text', 'INTEGER[]')
    """
    return type_ if type_.endswith("]") else _HOLDS.get(type_.partition("(")[0], type_)


def _refusal(source: DatabaseSource, error: duckdb.Error) -> StepsError:
    """The first line of DuckDB's words is about what was asked; the others name what it found in its place."""
    if isinstance(error, duckdb.IOException) and "lock" in str(error):
        return out_of_reach(source, "it is open for writing elsewhere", _HINT)
    if isinstance(error, duckdb.IOException):
        return unusable(source, "the file is no DuckDB database that this version can read")
    return unusable(source, str(error).splitlines()[0].rstrip("!. ") if str(error) else type(error).__name__)


def _unpack(source: DatabaseSource, target: Path, columns: Columns, wanted: Collection[int]) -> None:
    names = [f"c{i}" for i in range(len(columns))]
    read = [_READ_AS.get(holds, "{}").format(name) for name, (_, holds) in zip(names, columns, strict=True)]
    picked = ", ".join(f"{way if i in wanted else 'NULL'} AS c{i}" for i, way in enumerate(read))
    problem: BaseException | None = None
    try:
        with _open(source, target.parent) as connection:
            lock(connection, (str(target),))
            asked = f"SELECT {picked} FROM ({source.sql}\n) AS asked({', '.join(names)})"
            connection.execute(f"COPY ({asked}) TO {literal(str(target))} (FORMAT parquet, COMPRESSION zstd)")
    except duckdb.InterruptException:
        problem = KeyboardInterrupt()
    except (duckdb.IOException, duckdb.OutOfMemoryException):
        problem = out_of_reach(source, "it is open for writing elsewhere, or room is short", _HINT)
    except duckdb.Error as error:
        problem = Unreadable(str(error))
    if problem is not None:
        raise problem


ENTRY = DatabaseKind("duckdb", 3, _columns, _unpack)
