"""CSV of a bundle: no label is run as a formula, and every one can be told from the others."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.publishing.formats.csv import ENTRY

LABELS = ["=1+2", "＝1+2", "@SUM(A1)", "+x", "-x", "-9", "+3,5", "plain", "'quoted"]


def sealed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_a_label_that_a_spreadsheet_would_run_gets_an_apostrophe_and_a_number_stays_one():
    table = pa.table({"a": pa.array([*LABELS, None]).dictionary_encode(), "n": pa.array([-1] * 10)})
    written = ENTRY.write(sealed(table))
    rows = [*csv.reader(io.StringIO(written.decode(), newline=""))][1:]
    expected = ["'=1+2", "'＝1+2", "'@SUM(A1)", "'+x", "'-x", "-9", "+3,5", "plain", "'quoted", ""]
    assert [row[0] for row in rows] == expected and {row[1] for row in rows} == {"-1"}
    assert ENTRY.holds(written, table)
    assert not ENTRY.holds(written.replace(b"'=1", b"=1"), table)  # control: the bare formula is another file
