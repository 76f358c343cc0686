"""Files of statistics programs, read in batches by pyreadstat and written anew as Parquet, where only this run can see them.

Values are the codes that stand in the file, not their labels; what the program declares missing is missing. Dates and times
are numbers that count from an epoch; which they are is said by a column's format, never by its values.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors import SpecError
from schemas.spec.attributes import EPOCH
from schemas.spec.reading import Csv
from tasks.reading.formats import MOST_COLUMNS, Columns, SourceFormat, Unpack, Unreadable

VALUES_PER_BATCH = 4_000_000
_WHOLE = ("int8", "int16", "int32")
_TYPES = {
    "text": pa.string(),
    "whole numbers": pa.int64(),
    "numbers": pa.float64(),
    "dates": pa.date32(),
    "times": pa.timestamp("ms"),
}


@dataclass(frozen=True)
class Program:
    """How a program marks columns of days and of moments, from when it counts, and in which parts of a second."""

    name: str
    reader: str  # of pyreadstat, by the file's suffix or the one there is
    epoch: datetime.date
    days: re.Pattern[str]
    moments: re.Pattern[str]
    seconds_per_day: float  # of a column of days: 1 where days themselves are counted
    per_second: int  # of a column of moments

    def holds(self, kind: str, form: str) -> str:
        """
        >>> import tasks.reading.formats.stata as stata
        >>> stata.STATA.holds("double", "%td"), stata.STATA.holds("double", "%9.0g"), stata.STATA.holds("int8", "%8.0g")
        ('dates', 'numbers', 'whole numbers')
        """
        if kind == "string":
            return "text"
        if self.moments.match(form):
            return "times"
        if self.days.match(form):
            return "dates"
        return "whole numbers" if kind in _WHOLE else "numbers"

    def array(self, values: list[Any], holds: str) -> pa.Array:
        if holds == "text":
            texts = pa.array(values, pa.string())
            return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        if holds not in ("dates", "times"):
            return pa.array(values, _TYPES[holds], from_pandas=True)
        numbers = np.array(values, dtype=float)
        away = (self.epoch - EPOCH).days
        if holds == "dates":
            since, largest = np.floor(numbers / self.seconds_per_day) + away, 2**31
        else:
            since, largest = np.floor(numbers * (1000 // self.per_second)) + away * 86_400_000, 2**62
        nothing = ~(np.abs(since) < largest)
        whole = np.where(nothing, 0, since).astype(np.int32 if holds == "dates" else np.int64)
        return pa.array(whole, mask=nothing).cast(_TYPES[holds])


Read = Callable[..., tuple[Any, Any]]


def _reader(program: Program, file: str) -> Read:
    try:
        import pyreadstat
    except ImportError:
        raise SpecError(
            f"source {file}: reading {program.name} files needs pyreadstat; install steps-release[pipeline]."
        ) from None
    name = "read_xport" if Path(file).suffix.lower() in (".xpt", ".xport") else program.reader
    return partial(getattr(pyreadstat, name), disable_datetime_conversion=True, output_format="dict")


def _described(program: Program, metadata: Any) -> Columns:
    kinds, forms = metadata.readstat_variable_types, metadata.original_variable_types
    return tuple((name, program.holds(kinds[name], forms[name] or "")) for name in metadata.column_names)


def _columns(program: Program, files: tuple[str, ...], csv: Csv) -> list[Columns]:
    return [_header(program, file) for file in files]


def _header(program: Program, file: str) -> Columns:
    read, found = _reader(program, file), None
    try:
        found = _described(program, read(file, metadataonly=True)[1])
    except Exception:  # of many classes, and their words may quote the file
        pass
    if found is None:
        raise SpecError(f"source {file}: cannot be read as a {program.name} file; write it again, or as Parquet or CSV.")
    if len(found) > MOST_COLUMNS:
        raise SpecError(f"source {file}: more than {MOST_COLUMNS:,} columns.")
    return found


def _batches(program: Program, file: str, columns: Columns) -> Iterator[pa.Table]:
    """The records in order, some at a time. A file that changed meanwhile gives other columns: refused."""
    read, offset, rows = _reader(program, file), 0, max(1, VALUES_PER_BATCH // max(len(columns), 1))
    schema = pa.schema([(f"c{i}", _TYPES[holds]) for i, (_, holds) in enumerate(columns)])
    while True:
        values, metadata = read(file, row_offset=offset, row_limit=rows)
        if _described(program, metadata) != columns:
            raise Unreadable("the file's columns have changed")
        batch = pa.table([program.array(values[name], holds) for name, holds in columns], schema=schema)
        yield batch
        offset += len(batch)
        if len(batch) < rows:
            return


def _unpack(program: Program, file: str, target: Path, columns: Columns, csv: Csv) -> None:
    schema = pa.schema([(f"c{i}", _TYPES[holds]) for i, (_, holds) in enumerate(columns)])
    try:
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for batch in _batches(program, file, columns):
                writer.write_table(batch)
    except (OSError, MemoryError, KeyboardInterrupt, Unreadable):
        raise
    except Exception as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None


def format_of_program(program: Program, place: int, claims: Callable[[Any], bool], known_by: str) -> SourceFormat:
    """The format of a program's files; unpacked they are Parquet."""
    from tasks.reading.formats.parquet import relation

    unpack: Unpack = partial(_unpack, program)
    return SourceFormat(
        program.name.lower(),
        place,
        program.name,
        claims,
        partial(_columns, program),
        relation,
        known_by,
        unpack=lambda csv: unpack,
    )
