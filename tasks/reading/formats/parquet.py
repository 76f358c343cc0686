"""Parquet: what a file's footer declares is checked before a single page of it is unpacked."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import SpecError
from schemas.spec.reading import Csv
from tasks.reading.formats import MOST_COLUMNS, Columns, Ends, SourceFormat

MAGIC = b"PAR1"
MOST_ROWS = 10**10
MOST_BYTES = 1 << 40  # unpacked, all files together
VALUES_PER_BYTE = 100_000  # a constant column in large row groups reaches about 10,000
LARGEST_FOOTER = 64 << 20


def _claims(ends: Ends) -> bool:
    """A Parquet file begins and ends with PAR1, whatever it is called."""
    if ends.first == ends.last == MAGIC:
        return True
    if ends.suffix in (".parquet", ".pq") or ends.first == MAGIC:
        raise SpecError(f"source {ends.file}: not a whole Parquet file (its first or last bytes are wrong); write it again.")
    return False


def _columns(files: tuple[str, ...], csv: Csv) -> list[Columns]:
    """The columns of each file; refuses files that declare more than can be read."""
    columns: list[Columns] = []
    rows = unpacked = 0
    for file in files:
        schema, metadata = _footer(file)
        columns.append(tuple((field.name, _holds(field.type)) for field in schema))
        rows += metadata.num_rows
        unpacked += sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        values = metadata.num_rows * metadata.num_columns
        if metadata.num_columns > MOST_COLUMNS:
            raise SpecError(f"source {file}: more than {MOST_COLUMNS:,} columns.")
        if rows > MOST_ROWS or unpacked > MOST_BYTES or values > VALUES_PER_BYTE * os.path.getsize(file):
            raise SpecError(
                f"source {file}: declares far more than a file of its size can hold, or more than {MOST_ROWS:,} rows or "
                f"{MOST_BYTES >> 30:,} GiB in all; write it again, or split the release."
            )
    return columns


def relation(files: str, names: Sequence[str], csv: Csv) -> str:
    return f"read_parquet({files}, union_by_name=true, hive_partitioning=false) AS t({', '.join(names)})"


def _footer(file: str) -> tuple[pa.Schema, pq.FileMetaData]:
    size = os.path.getsize(file)
    with open(file, "rb") as stream:
        stream.seek(max(size - 8, 0))
        length = int.from_bytes(stream.read(4), "little")
    if length > min(LARGEST_FOOTER, size - 12):
        raise SpecError(
            f"source {file}: its Parquet footer is broken or larger than {LARGEST_FOOTER >> 20} MiB; write it again."
        )
    try:
        with pq.ParquetFile(file) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata
        if metadata.num_rows >= 0 and metadata.num_columns == len(schema):
            return schema, metadata
    except (pa.ArrowException, OSError, ValueError):
        pass
    raise SpecError(f"source {file}: its Parquet footer is broken, or its columns are nested; write it again as a flat table.")


def _holds(type_: pa.DataType) -> str:
    """What a column holds, in a person's words.

    >>> _holds(pa.dictionary(pa.int8(), pa.string())), _holds(pa.uint8()), _holds(pa.decimal128(9, 2)), _holds(pa.bool_())
    ('text', 'whole numbers', 'numbers', 'true or false')
    """
    if pa.types.is_dictionary(type_):
        return _holds(type_.value_type)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "text"
    if pa.types.is_integer(type_):
        return "whole numbers"
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "numbers"
    if pa.types.is_date(type_):
        return "dates"
    if pa.types.is_boolean(type_):
        return "true or false"
    if pa.types.is_timestamp(type_) and type_.tz in (None, "UTC"):
        return "times"
    if pa.types.is_time(type_):
        return "times of day"
    return "nothing" if pa.types.is_null(type_) else str(type_)


ENTRY = SourceFormat("parquet", 1, "Parquet", _claims, _columns, relation)
