"""The hash of what a table says, however its file is encoded: there is no other way to write it that makes another hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.identity import canonical


def content_hash(table: pa.Table) -> str:
    """SHA-256 over every column: its name, type and length as JSON, then what `_parts` yields; all numbers little-endian.

    >>> content_hash(pa.table({"n": [1, 2]})) == content_hash(pa.table({"n": pa.chunked_array([[1], [2]])}))
    True
    """
    said = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        said.update(canonical([name, _named(array.type), len(array)]).encode())
        for part in _parts(array):
            said.update(part)
    return said.hexdigest()


def _named(kind: pa.DataType) -> str:
    """A type's name; what the values of a list are called within it depends on who wrote it."""
    return f"list<{_named(kind.value_type)}>" if pa.types.is_list(kind) else str(kind)


def _parts(array: pa.Array) -> Iterator[bytes]:
    """A byte per entry, 0 for null; then the numbers, 0 for null; of texts and lists the lengths, then what they hold."""
    yield np.asarray(array.is_valid()).astype(np.uint8).tobytes()
    kind = array.type
    if pa.types.is_list(kind):
        yield _numbers(pc.list_value_length(array))
        yield from _parts(array.flatten())
    elif pa.types.is_string(kind):
        yield _numbers(pc.binary_length(array))
        texts = pc.fill_null(array, "").cast(pa.large_binary())
        first, last = (int(np.frombuffer(texts.buffers()[1], "<i8")[texts.offset + at]) for at in (0, len(texts)))
        yield (texts.buffers()[2] or pa.py_buffer(b"")).to_pybytes()[first:last] if len(texts) else b""
    elif pa.types.is_date32(kind):
        yield _numbers(array.cast(pa.int32()))
    elif pa.types.is_time64(kind):
        yield _numbers(array.cast(pa.int64()))
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        yield _numbers(array)
    else:
        raise ValueError(f"a column of type {kind} has no content hash")


def _numbers(array: pa.Array) -> bytes:
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    numbers: np.ndarray = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()
