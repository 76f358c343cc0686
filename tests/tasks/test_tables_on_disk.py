"""Tables on disk: the same rows are the same bytes however they come, and no more than a block of them is held."""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from schemas.errors import StepsError
from tasks import progress, tables_on_disk
from tasks.tables_on_disk import Stored, digest_of, write_blocks

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("word", pa.dictionary(pa.int32(), pa.string()))])
TABLE = pa.table({"n": np.arange(5000), "word": pa.array(["a", None, "b", "c", "b"] * 1000)}).cast(SCHEMA)


def written(table) -> bytes:
    file = io.BytesIO()
    write_blocks(file, table, SCHEMA, "a table")
    return file.getvalue()


def test_a_table_and_its_only_block_are_the_same_bytes_as_ever():
    before = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(TABLE.columns, schema=SCHEMA.with_metadata(None)), before, compression="zstd")
    assert written(TABLE) == written([TABLE]) == before.getvalue()


def test_blocks_are_row_groups_in_order():
    content = written(TABLE.slice(first, 1000) for first in range(0, 5000, 1000))
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1000] * 5
        again = written(file.read_row_group(i) for i in range(file.num_row_groups))
        assert file.read() == TABLE and again == content  # what was read back is the same file, whoever writes it


def test_a_block_is_gone_before_the_next_one_is_made():
    size, before, held = 8 * 2**20, pa.total_allocated_bytes(), list[int]()
    schema = pa.schema([pa.field("n", pa.int64())])

    def make() -> pa.Table:
        held.append(pa.total_allocated_bytes() - before)
        return pa.table({"n": pc.random(size // 8).cast(pa.float64()).view(pa.int64())}, schema=schema)

    write_blocks(io.BytesIO(), progress.told([(make, 1)] * 5, 5), schema, "a table")
    assert max(held) < size / 2
    kept = [make() for _ in range(3)]  # control: whoever keeps them is seen
    assert len(kept) == 3 and held[-1] > 1.5 * size


def test_a_file_that_is_read_in_blocks_is_not_held_as_they_pass(tmp_path: Path):
    """However large it is: Arrow's own iterator over all row groups keeps what it has read of them until it ends."""
    groups, rows = 48, 2**14
    schema = pa.schema([pa.field(f"a{j}", pa.int64()) for j in range(4)])
    random = np.random.default_rng(0)
    made = (pa.table({name: random.integers(0, 2**62, rows) for name in schema.names}, schema=schema) for _ in range(groups))
    with (tmp_path / "t.parquet").open("wb") as file:
        write_blocks(file, made, schema, "a table")
    size, stored = (tmp_path / "t.parquet").stat().st_size, Stored(tmp_path / "t.parquet")

    def most(blocks: Iterator) -> int:
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in blocks)

    assert [len(block) for block in stored.blocks(rows=rows)] == [rows] * groups
    assert most(stored.blocks(rows=rows)) < size / 8
    with pq.ParquetFile(stored.path) as file:
        assert most(file.iter_batches(rows)) > size / 2  # the control


@pytest.mark.parametrize("rows", [1, 7, 1000, 1001, 2500, 10_000])
def test_blocks_have_every_row_in_order_whatever_the_row_groups_are(tmp_path: Path, rows: int):
    for groups in ([5000], [1000] * 5, [1] * 50 + [4950], [3, 0, 2000, 2997]):
        ends = np.cumsum(groups)
        content = written(TABLE.slice(end - size, size) for end, size in zip(ends.tolist(), groups, strict=True))
        (tmp_path / "t.parquet").write_bytes(content)
        found = list(Stored(tmp_path / "t.parquet").blocks(rows=rows))
        assert pa.concat_tables(found) == TABLE and all(0 < len(block) <= rows for block in found)


def test_what_does_not_fit_the_schema_is_refused_in_any_block():
    with pytest.raises(StepsError, match='a table: column "n" must not have missing values'):
        written([TABLE, pa.table({"n": pa.array([None], pa.int64()), "word": TABLE["word"].slice(0, 1)})])


def test_a_stored_table_is_read_in_batches_by_columns_or_whole(tmp_path: Path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(written([TABLE.slice(0, 3000), TABLE.slice(3000)]))
    monkeypatch.setattr(tables_on_disk, "VALUES", 1400)
    monkeypatch.setattr(tables_on_disk, "FEWEST_ROWS", 1)
    stored = Stored(path)
    sizes = [len(block) for block in stored.blocks()]
    assert max(sizes) <= 700 and sum(sizes) == stored.num_rows == 5000
    assert pa.concat_tables(stored.blocks()) == stored.read() == TABLE
    assert pa.concat_tables(stored.blocks(["n"])) == TABLE.select(["n"]) and stored["n"] == TABLE["n"]
    empty = tmp_path / "empty.parquet"
    empty.write_bytes(written(TABLE.slice(0, 0)))
    assert [len(block) for block in Stored(empty).blocks()] == [0]


def test_digests_are_those_of_the_bytes(tmp_path: Path):
    path = tmp_path / "t"
    path.write_bytes(content := bytes(range(256)) * 9000)
    assert digest_of(path) == hashlib.sha256(content).hexdigest()
    assert digest_of(path, b"key") == hmac.new(b"key", content, hashlib.sha256).hexdigest() != digest_of(path, b"other")
