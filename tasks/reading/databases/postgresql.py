"""PostgreSQL: libpq finds out who reads (PGUSER, PGPASSWORD, ~/.pgpass, …); no name or password passes through here.

Rows come as COPY sends them, whole ones one after the other, and are parsed by the block; the transaction can only read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from psycopg import pq as libpq

from schemas.errors import StepsError
from schemas.expectations import AS_WRITTEN
from schemas.spec.database import DatabaseSource
from tasks.reading.databases import DatabaseKind, one_select, out_of_reach, unusable
from tasks.reading.formats import Columns, Unreadable

BLOCK = 8 << 20  # bytes that are parsed at once
_HINT = "Is it up, and does it let this account in? PGUSER, PGPASSWORD and the like, or ~/.pgpass, say who reads."
_SETTINGS = "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; SET LOCAL extra_float_digits = 1"
_HOLDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "whole numbers"),
    **dict.fromkeys(("float4", "float8"), "numbers"),
    **dict.fromkeys(("timestamp", "timestamptz"), "times"),
    "numeric": AS_WRITTEN,  # of any length, and kept to the last digit
    "bool": "true or false",
    "date": "dates",
    "uuid": "text",
}
_TYPES = {
    "whole numbers": pa.int64(),
    "numbers": pa.float64(),
    "times": pa.timestamp("us"),
    "true or false": pa.bool_(),
    "dates": pa.date32(),
}
_READ_AS = {"text": "{}::text", AS_WRITTEN: "trim_scale({})::text", "times": "{}::timestamp"}

Answer = TypeVar("Answer")


class _Type(NamedTuple):
    name: str
    kind: str
    category: str

    @property
    def holds(self) -> str:
        return _HOLDS.get(self.name) or ("text" if self.kind == "e" or self.category == "S" else self.name)


def _reading(source: DatabaseSource, act: Callable[[psycopg.Connection], Answer]) -> Answer:
    """What `act` does in one transaction that only reads. Out of reach: a fault; any other error is the caller's."""
    patience: dict[str, Any] = {} if "connect_timeout" in source.url else {"connect_timeout": 10}
    said = None
    try:
        connection = psycopg.connect(source.url, client_encoding="utf8", application_name="steps-release", **patience)
    except psycopg.OperationalError as error:
        said = (str(error).splitlines() or ["no answer"])[0]
    if said is not None:
        raise out_of_reach(source, said, _HINT)
    with connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(_SETTINGS)
        return act(connection)


def _columns(source: DatabaseSource) -> Columns:
    problem: StepsError | None = None
    try:
        return _reading(source, lambda connection: _described(connection, source))
    except psycopg.OperationalError:
        problem = out_of_reach(source, "the connection was lost", _HINT)
    except psycopg.Error as error:
        problem = unusable(source, error.diag.message_primary or "the database refuses it")
    raise problem


def _described(connection: psycopg.Connection, source: DatabaseSource) -> Columns:
    """What the parser knows of the statement: it is neither planned nor run.

    It stands alone first, so that it closes no bracket of ours, and then in brackets, where only a SELECT can stand.
    """
    for statement in (source.sql, f"SELECT * FROM ({source.sql}\n) AS asked"):
        prepared = connection.pgconn.prepare(b"", statement.encode())
        if prepared.status != libpq.ExecStatus.COMMAND_OK:
            words = prepared.error_field(libpq.DiagnosticField.MESSAGE_PRIMARY) or b"the database refuses it"
            said = words.decode("utf8", "replace")
            raise one_select(source) if statement != source.sql or "multiple" in said else unusable(source, said)
    found = connection.pgconn.describe_prepared(b"")
    if found.nparams or not found.nfields:
        raise one_select(source)
    numbers = [found.ftype(i) for i in range(found.nfields)]
    asked = "SELECT oid::int8, typname, typtype::text, typcategory::text FROM pg_catalog.pg_type WHERE oid = ANY(%s::oid[])"
    types = {row[0]: _Type(*row[1:]) for row in connection.execute(asked, [numbers])}
    names = [(found.fname(i) or b"").decode() for i in range(found.nfields)]
    return tuple((name, types[number].holds) for name, number in zip(names, numbers, strict=True))


def _unpack(source: DatabaseSource, target: Path, columns: Columns, wanted: Collection[int]) -> None:
    problem: Exception | None = None
    try:
        _reading(source, lambda connection: _copy(connection, source, target, columns, wanted))
    except psycopg.OperationalError:
        problem = out_of_reach(source, "the connection was lost", _HINT)
    except (psycopg.Error, pa.ArrowInvalid) as error:
        problem = Unreadable(str(error))
    if problem is not None:
        raise problem


def _copy(
    connection: psycopg.Connection, source: DatabaseSource, target: Path, columns: Columns, wanted: Collection[int]
) -> None:
    if _described(connection, source) != columns:
        raise Unreadable("the columns have changed")
    names = [f"c{i}" for i in range(len(columns))]
    ways = [_READ_AS.get(holds, "{}").format(name) for name, (_, holds) in zip(names, columns, strict=True)]
    picked = ", ".join(way if i in wanted else "NULL" for i, way in enumerate(ways))
    rows = f"SELECT {picked} FROM ({source.sql}\n) AS asked({', '.join(names)})"
    schema = pa.schema([(name, _TYPES.get(holds, pa.string())) for name, (_, holds) in zip(names, columns, strict=True)])
    with (
        pq.ParquetWriter(target, schema, compression="zstd") as writer,
        connection.cursor() as cursor,
        cursor.copy(f"COPY ({rows}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)".encode()) as copied,
    ):
        for block in _blocks(copied):
            writer.write_table(_parsed(block, schema))


def _blocks(rows: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """Whole rows, about as many bytes at a time as are parsed at once."""
    block = bytearray()
    for row in rows:
        block += row
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _parsed(block: bytes, schema: pa.Schema) -> pa.Table:
    """Every value stands in quotes but NULL, which is nothing at all."""
    return pa_csv.read_csv(
        pa.BufferReader(block),
        pa_csv.ReadOptions(column_names=schema.names, block_size=len(block) + 1),
        pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pa_csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


ENTRY = DatabaseKind("postgresql", 1, _columns, _unpack)
