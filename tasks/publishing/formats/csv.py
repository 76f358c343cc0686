"""CSV as in RFC 4180, in UTF-8. No cell can be a formula: a label that a spreadsheet would run gets an apostrophe."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.publishing.formats import BundleFormat

# A spreadsheet takes full-width signs for the narrow ones, and skips what is white.
_FORMULA = re.compile(r"[\s\ufeff]*[=+\-@＝＋－＠]")
_END = "\r\n"
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
    first = _line(records.column_names).encode() if header else b""
    if not records.num_columns or not records.num_rows:
        return first
    cells = [_cells(column, alone=records.num_columns == 1) for column in records.columns]
    end, nothing, comma = (pa.scalar(text, pa.large_string()) for text in (_END, "", ","))
    lines = pc.binary_join_element_wise(*cells[:-1], pc.binary_join_element_wise(cells[-1], end, nothing), comma)
    return first + b"".join(_bytes(chunk) for chunk in lines.chunks)


def _cells(column: pa.ChunkedArray, alone: bool) -> pa.ChunkedArray:
    """A column as text; labels are written once each, not once per row. Times of day are whole minutes."""
    if pa.types.is_integer(column.type):
        text = column.cast(pa.large_string())
        return text if not column.null_count else text.fill_null(_cell(None, alone))
    if pa.types.is_dictionary(column.type):
        values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        last = len(values.dictionary)
        shown = [_cell(harmless(label), alone) for label in [*values.dictionary.to_pylist(), None]]
        return pa.chunked_array([pa.array(shown, pa.large_string()).take(values.indices.cast(pa.int64()).fill_null(last))])
    return pa.chunked_array([pa.array([_cell(value, alone) for value in column.to_pylist()], pa.large_string())])


def _cell(value: Any, alone: bool) -> str:
    """One value as a row of its own or beside others: a line that would be empty is two quotation marks."""
    shown = f"{value:%H:%M}" if isinstance(value, time) else value
    return _line([shown])[: -len(_END)] if alone else _line([shown, ""])[: -len(_END) - 1]


def _line(cells: list[Any]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=_END).writerow(cells)
    return text.getvalue()


def _bytes(text: pa.LargeStringArray) -> bytes:
    """All texts of an array, one after the other: what its buffer holds between the first and the last."""
    _, offsets, content = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    return b"" if content is None else content.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()


ENTRY = BundleFormat("csv", 2, ".csv", _write, _holds, _pieces)
