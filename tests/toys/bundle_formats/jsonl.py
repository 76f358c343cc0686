"""A toy format in one file: a JSON object per line."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.publishing.formats import BundleFormat


def lines(records: pa.Table) -> bytes:
    return "".join(json.dumps(row, default=str) + "\n" for row in records.to_pylist()).encode()


def write(sealed: bytes) -> bytes:
    return lines(pq.read_table(pa.BufferReader(sealed)))


def holds(content: bytes, records: pa.Table) -> bool:
    return lines(records) == content


ENTRY = BundleFormat("jsonl", 10, ".jsonl", write, holds)
