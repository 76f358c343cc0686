"""Records against what a domain says of values: open ends take what lies above, spikes their own, comparisons are kept."""

from __future__ import annotations

import datetime
from collections import Counter

import pandas as pd
import pytest

from schemas.errors import DataInvalid
from tasks.reading.fitting import look_at
from tasks.stages import validate
from tasks.stages.compare import compare_files
from tests.tasks.reading.records import count_cells, make_domain, make_release

OPEN = {"above": {"shape": "exponential", "mean": 90}}
ATTRIBUTES = (
    {"name": "wage", "kind": "numeric", "bounds": (0, 40), "bins": 2, "at": (0, 30), **OPEN, "missing": "category"},
    {"name": "hours", "kind": "integer", "bounds": (0, 39), "bins": 2, "at": 0, **OPEN, "outside": "clamp"},
    {"name": "first", "kind": "integer", "bounds": (0, 29), "bins": 3, "missing": "category"},
    {"name": "last", "kind": "integer", "bounds": (0, 29), "bins": 3},
    {"name": "start", "kind": "time", "bounds": ("08:00", "17:00"), "bins": 2},
)
ROWS = [
    # wage, hours, first, last, start, and their codes
    (0.0, 0, 5, 25, datetime.time(8), (0, 0, 0, 2, 0)),
    (0.5, 1, 15, 15, datetime.time(17, 0, 30), (1, 1, 1, 1, 1)),
    (30.0, 39, None, 0, datetime.time(12, 31), (3, 2, 3, 0, 1)),
    (40.0, 40, 29, 29, datetime.time(9), (2, 3, 2, 2, 0)),
    (1e12, 10**9, 0, 9, datetime.time(9), (4, 3, 0, 0, 0)),
    (None, -7, 9, 0, datetime.time(9), (5, 0, 0, 0, 0)),  # within one bin nothing is compared
]
NAMES = [each["name"] for each in ATTRIBUTES]
DOMAIN = make_domain(ATTRIBUTES, rules=[{"always": "first <= last"}])


def frame(**changes) -> pd.DataFrame:
    table = pd.DataFrame([row[:-1] for row in ROWS], columns=NAMES).astype({"first": "Int64"})
    for column, value in changes.items():
        table.loc[0, column] = value
    return table


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.whole
def test_records_that_fit_are_validated_and_counted_as_meant(suffix, tmp_path, confidential):
    path = tmp_path / f"records.{suffix}"
    frame().to_parquet(path, index=False) if suffix == "parquet" else frame().to_csv(path, index=False)
    validate.validate_records(make_release(path, DOMAIN), confidential)
    counts = count_cells(make_release(path, DOMAIN), confidential)
    assert Counter(map(tuple, counts.codes.tolist())) == Counter(row[-1] for row in ROWS)


BAD = {
    "below the bounds of an open end": ({"wage": -0.5}, "is at least 0"),
    "a comparison that is broken": ({"first": 25, "last": 5}, "rule 1: always first &lt;= last"),
    "a time outside": ({"start": datetime.time(7, 59)}, "lies between 08:00 and 17:00"),
    "a time after": ({"start": datetime.time(17, 1)}, "lies between 08:00 and 17:00"),
}


@pytest.mark.parametrize(("changes", "says"), BAD.values(), ids=BAD)
@pytest.mark.whole
def test_records_that_do_not_fit_are_refused_and_the_page_says_why(changes, says, tmp_path, confidential):
    frame(**changes).to_parquet(tmp_path / "records.parquet", index=False)
    with pytest.raises(DataInvalid):
        validate.validate_records(make_release(tmp_path / "records.parquet", DOMAIN), confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    (line,) = [part for part in page.split("<tr") if '">not met<' in part]
    assert says in line
    with pytest.raises(DataInvalid):
        count_cells(make_release(tmp_path / "records.parquet", DOMAIN), confidential)


def test_a_derived_column_in_the_source_has_to_be_ignored(tmp_path):
    derived = {"derived": ({"name": "late", "from": "last", "by": {"0–9": "no", "10–19": "no", "20–29": "yes"}},)}
    frame().assign(late="no").to_csv(tmp_path / "a.csv", index=False)
    domain = type(DOMAIN).model_validate(
        {**DOMAIN.model_dump(), "attributes": DOMAIN.attributes, "rules": DOMAIN.rules, **derived}
    )
    assert "ignore: in dataset.yaml" in look_at(str(tmp_path / "a.csv"), domain).problems[0]
    ignoring = domain.model_copy(update={"ignore": ("late",)})
    assert look_at(str(tmp_path / "a.csv"), ignoring).problems == ()


def test_synthetic_files_with_derived_columns_are_compared_with_originals_that_have_none(tmp_path):
    dataset = """\
name: d
population: p
attributes:
  - {name: last, kind: integer, bounds: [0, 29], bins: 3, above: {shape: exponential, mean: 60}}
  - {name: start, kind: time, bounds: [00:00, 24:00], bins: 2}
derived:
  - {name: late, from: last, by: {0–9: "no", 10–19: "no", 20–29: "yes", "> 29": "yes"}}
"""
    (tmp_path / "d.yaml").write_text(dataset, encoding="utf-8")
    rows = pd.DataFrame({"last": [1, 2, 11, 25, 70] * 20, "start": ["08:00", "13:00", "23:59", "00:00", "12:00"] * 20})
    rows.to_csv(tmp_path / "a.csv", index=False)
    rows.assign(late="no").to_csv(tmp_path / "b.csv", index=False)
    found = compare_files(tmp_path / "a.csv", [tmp_path / "b.csv"], tmp_path / "d.yaml")
    assert found["tvd"]["1"] == 0
