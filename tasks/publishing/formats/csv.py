"""CSV as in RFC 4180, in UTF-8. No cell can be a formula: a label that a spreadsheet would run gets an apostrophe."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.publishing.formats import BundleFormat

# A spreadsheet takes full-width signs for the narrow ones, and skips what is white.
_FORMULA = re.compile(r"[\s\ufeff]*[=+\-@＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


def harmless(text: str | None) -> str | None:
    """A label as it may stand in a spreadsheet: what would be run as a formula is quoted by an apostrophe. Numbers are not run.

    >>> harmless("=1+2"), harmless("-9"), harmless("over 65")
    ("'=1+2", '-9', 'over 65')
    """
    is_run = text is not None and _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_run else text


def _write(sealed: bytes) -> bytes:
    return csv_lines(pq.read_table(pa.BufferReader(sealed)))


def _holds(content: bytes, records: pa.Table) -> bool:
    """Whether the text is the one way to write these records."""
    return csv_lines(records) == content


def _pieces(blocks: Iterator[pa.Table]) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        yield csv_lines(block, header=number == 0)


def csv_lines(records: pa.Table, header: bool = True) -> bytes:
    """The one way to write these records, with the names of their columns first."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    if header:
        writer.writerow(records.column_names)
    writer.writerows(zip(*map(_cells, records.columns), strict=True))
    return text.getvalue().encode()


def _cells(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; labels are quoted once each, not once per row. Times of day are whole minutes."""
    if pa.types.is_time(column.type):
        return [None if time is None else f"{time:%H:%M}" for time in column.to_pylist()]
    if pa.types.is_dictionary(column.type):
        labels = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        shown = pa.array([harmless(label) for label in labels.dictionary.to_pylist()], pa.string())
        column = pa.DictionaryArray.from_arrays(labels.indices, shown)
    return list(column.to_pylist())


ENTRY = BundleFormat("csv", 2, ".csv", _write, _holds, _pieces)
