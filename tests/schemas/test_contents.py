"""A table's content hash: one for everything that it says, whatever file, encoding or chunks it comes from."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.contents import content_hash

COLUMNS = {
    "n": pa.array([1, None, 3], pa.int64()),
    "small": pa.array([1, 2, 3], pa.int16()),
    "leaf": pa.array([True, False, None]),
    "text": pa.array(["ab", "c", None]),
    "split": pa.array(["x", "y", "x"]).dictionary_encode(),
    "of": pa.array([[1, 2], [], None], pa.list_(pa.int16())),
    "share": pa.array([0.5, -0.0, 1e300]),
    "day": pa.array([datetime.date(2026, 1, 1), None, None]),
}
TABLE = pa.table(COLUMNS)


@pytest.mark.parametrize(
    "options", [{"compression": "zstd"}, {"compression": "none", "use_dictionary": False, "row_group_size": 1}]
)
def test_another_file_of_the_same_content_has_the_same_hash(tmp_path, options):
    pq.write_table(TABLE, tmp_path / "t.parquet", **options)
    assert content_hash(pq.read_table(tmp_path / "t.parquet")) == content_hash(TABLE)


def test_neither_chunks_nor_slices_nor_the_order_of_a_dictionary_count():
    longer = pa.concat_tables([TABLE, TABLE, TABLE])
    assert content_hash(longer.slice(3, 3)) == content_hash(longer.combine_chunks().slice(3, 3)) == content_hash(TABLE)
    other = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int32()), pa.array(["y", "x"]))
    assert content_hash(TABLE.set_column(4, "split", other)) == content_hash(TABLE)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", pa.array([1, 0, 3], pa.int64())),
        ("n", pa.array([1, None, 4], pa.int64())),
        ("small", pa.array([1, 2, 3], pa.int32())),
        ("leaf", pa.array([True, False, False])),
        ("text", pa.array(["a", "bc", None])),
        ("split", pa.array(["x", "y", "y"]).dictionary_encode()),
        ("of", pa.array([[1], [2], None], pa.list_(pa.int16()))),
        ("of", pa.array([[1, 2], None, None], pa.list_(pa.int16()))),
        ("share", pa.array([0.5, 0.0, 1e300])),
        ("day", pa.array([datetime.date(2026, 1, 2), None, None])),
    ],
)
def test_whatever_a_table_says_otherwise_changes_its_hash(name, values):
    place = TABLE.column_names.index(name)
    assert content_hash(TABLE.set_column(place, name, values)) != content_hash(TABLE)


def test_names_order_and_rows_count():
    hashes = {
        content_hash(each) for each in (TABLE, TABLE.rename_columns([*"abcdefgh"]), TABLE.take([0, 2, 1]), TABLE.slice(0, 2))
    }
    assert len(hashes) == 4 and content_hash(TABLE.slice(0, 0)) != content_hash(TABLE.select(["n"]).slice(0, 0))


def test_a_type_without_one_text_is_refused():
    with pytest.raises(ValueError, match="no content hash"):
        content_hash(pa.table({"at": pa.array([datetime.datetime(2026, 1, 1)])}))
