"""CSV of a bundle: no label is run as a formula, and every one can be told from the others."""

from __future__ import annotations

import csv
import io
from datetime import date, time

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.publishing.formats.csv import ENTRY, csv_lines

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


def test_arrays_write_what_pythons_writer_does_cell_by_cell():
    odd = ["a", "", None, "a,b", 'x"y', "l\nm", "r\rs", "é", "\u2028", "'", " ", "0"]
    columns = {
        "label": pa.array(odd).dictionary_encode(),
        "text, too": pa.array([*reversed(odd)]),
        "whole": pa.array([*range(-6, 5), None]),
        "decimal": pa.array([1e300, -0.0, 0.0, 1e-7, 0.1, 3.0, 1e16, None, 2.5, 1 / 3, 7.0, -2.0]),
        "day": pa.array([*map(date.fromordinal, range(1, 12)), None]),
        "clock": pa.array([*(time(hour, 5) for hour in range(11)), None], pa.time32("s")),
    }
    for table in (pa.table(columns), *(pa.table({name: values}) for name, values in columns.items())):
        for records in (table, table.slice(3), pa.concat_tables([table.slice(0, 5), table.slice(5)]), table.slice(0, 0)):
            expected = io.StringIO(newline="")
            writer = csv.writer(expected, lineterminator="\r\n")
            writer.writerow(records.column_names)
            writer.writerows([_shown(value) for value in row.values()] for row in records.to_pylist())
            assert csv_lines(records) == expected.getvalue().encode()


def _shown(value: object) -> object:
    return f"{value:%H:%M}" if isinstance(value, time) else value
