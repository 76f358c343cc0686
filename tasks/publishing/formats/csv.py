"""CSV as in RFC 4180, in UTF-8. No cell can be a formula: the domain refuses such labels and names."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.publishing.formats import BundleFormat


def _write(sealed: bytes) -> bytes:
    return _text(pq.read_table(pa.BufferReader(sealed)))


def _holds(content: bytes, records: pa.Table) -> bool:
    """Whether the text is the one way to write these records."""
    return _text(records) == content


def _text(records: pa.Table) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(records.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in records.columns), strict=True))
    return text.getvalue().encode()


ENTRY = BundleFormat("csv", 2, ".csv", _write, _holds)
