"""Times of day in files: as times, as moments, as text in the usual form or a stated one; seconds are dropped, nothing guessed."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid
from steps_engine.domain.encoding import encode
from tests.tasks.reading.records import count_cells, make_domain, make_release

TIMES = [datetime.time(6), datetime.time(11, 59, 59), datetime.time(12), datetime.time(23, 59), None]
CODES = Counter([(0,), (0,), (1,), (2,), (3,)])


def domain(**said):
    edges = ("06:00", "12:00", "18:00", "24:00")
    time = {"name": "start", "kind": "time", "bounds": ("06:00", "24:00"), "edges": edges, "missing": "category", **said}
    return make_domain([time])


def counted(path, confidential, **said) -> Counter:
    counts = count_cells(make_release(path, domain(**said)), confidential)
    return Counter({tuple(cell): n for cell, n in zip(counts.codes.tolist(), counts.count.tolist(), strict=True)})


DAY = datetime.date(2026, 3, 1)
COLUMNS = {
    "times": pa.array(TIMES, pa.time64("us")),
    "times in milliseconds": pa.array(TIMES, pa.time32("ms")),
    "moments": pa.array([t and datetime.datetime.combine(DAY, t) for t in TIMES], pa.timestamp("us")),
    "text": pa.array(["06:00", "11:59:59", "12:00:00.5", "23:59", None]),
    "text without a zero": pa.array(["6:00", "11:59", "12:00", "23:59", None]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_times_are_counted_however_they_are_stored(column, tmp_path, confidential):
    pq.write_table(pa.table({"start": column}), tmp_path / "a.parquet")
    assert counted(tmp_path / "a.parquet", confidential) == CODES
    frame = pd.DataFrame({"start": column.to_pandas()})
    assert Counter(map(tuple, encode(frame, domain()).tolist())) == CODES


@pytest.mark.parametrize(
    ("form", "texts"),
    [("%H.%M", ["06.00", "11.59", "12.00", "23.59"]), ("%I:%M %p", ["06:00 AM", "11:59 AM", "12:00 PM", "11:59 PM"])],
)
def test_a_form_says_how_text_is_read(form, texts, tmp_path, confidential):
    (tmp_path / "a.csv").write_text("\n".join(["start", *texts, '""', ""]))
    assert counted(tmp_path / "a.csv", confidential, format=form) == CODES
    frame = pd.DataFrame({"start": [*texts, None]})
    assert Counter(map(tuple, encode(frame, domain(format=form)).tolist())) == CODES


@pytest.mark.parametrize("text", ["24:00", "12:60", "noon", "1200", "12:0", " 12:00", "2026-03-01 12:00", "05:59"])
def test_what_is_no_time_within_the_bounds_is_refused(text, tmp_path, confidential):
    (tmp_path / "a.csv").write_text(f'start\n"{text}"\n')
    with pytest.raises(DataInvalid):
        counted(tmp_path / "a.csv", confidential)
    with pytest.raises(DataInvalid):
        encode(pd.DataFrame({"start": [text]}), domain())


def test_values_that_mean_missing_or_another_time_are_read_so(tmp_path, confidential):
    (tmp_path / "a.csv").write_text("start\n99:99\nnoon\n")
    said = {"missing": ("99:99",), "recode": {"noon": "12:00"}}
    assert counted(tmp_path / "a.csv", confidential, **said) == Counter([(3,), (1,)])


def test_numbers_are_no_times(tmp_path, confidential):
    pq.write_table(pa.table({"start": np.array([600])}), tmp_path / "a.parquet")
    from tasks.reading.fitting import look_at

    assert any("start" in problem for problem in look_at(str(tmp_path / "a.parquet"), domain()).problems)
