"""A supplier's own expectations: what can be run on the records is, everything else is refused at the door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import SpecError
from schemas.expectations import silent_gx
from schemas.supplied import TYPES, load_supplied, suite_of
from tests.tasks.reading.records import make_domain

NEVER_RUN = {  # they look at more than the records, at their order, or at SQL alone
    "expect_column_values_to_be_increasing",
    "expect_column_values_to_be_decreasing",
    "expect_query_results_to_match_comparison",
    "expect_table_row_count_to_equal_other_table",
    "unexpected_rows_expectation",
    "expect_column_values_to_match_like_pattern",
    "expect_column_values_to_match_like_pattern_list",
    "expect_column_values_to_not_match_like_pattern",
    "expect_column_values_to_not_match_like_pattern_list",
}


def load(folder: Path, *expectations: Any, **more: Any):
    path = folder / "own.json"
    path.write_text(json.dumps({"name": "own", "expectations": list(expectations), **more}))
    return load_supplied(path, make_domain())


@pytest.mark.whole
def test_every_type_that_great_expectations_brings_is_run_or_refused_on_purpose():
    gx = silent_gx()
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    assert gx is not None and set(list_registered_expectation_implementations()) == set(TYPES) | NEVER_RUN


def test_a_suite_as_great_expectations_writes_it_is_read_and_built(tmp_path: Path):
    gx = silent_gx()
    suite = gx.ExpectationSuite(
        name="own",
        expectations=[
            gx.expectations.ExpectColumnMeanToBeBetween(column="age", min_value=19, max_value=21, severity="warning"),
            gx.expectations.ExpectTableRowCountToBeBetween(min_value=1, notes="quarterly"),
        ],
    )
    path = tmp_path / "own.json"
    path.write_text(json.dumps(suite.to_json_dict()))
    mean, rows = supplied = load_supplied(path, make_domain())
    assert (mean.severity, mean.columns, mean.words) == (
        "warning",
        ("age",),
        "mean to be between: min_value 19.0, max_value 21.0",
    )
    assert rows.words == "row count to be between: min_value 1 (quarterly)"
    assert len(suite_of(supplied, path).expectations) == 2


REFUSED = [
    ({"type": "expect_column_values_to_be_purple", "kwargs": {"column": "age"}}, "is not run here"),
    ({"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT 1"}}, "is not run here"),
    (
        {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "pay"}},
        "no column 'pay'; it has voted, age, wage, born",
    ),
    ({"type": "expect_column_mean_to_be_between", "kwargs": {}}, "column is needed"),
    ({"type": "expect_column_pair_values_to_be_equal", "kwargs": {"column_A": "age"}}, "column_B is needed"),
    (
        {
            "type": "expect_column_values_to_be_null",
            "kwargs": {"column": "age", "row_condition": "@pd.x()", "condition_parser": "pandas"},
        },
        "row_condition is not run here",
    ),
    (
        {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "age", "min_value": {"$PARAMETER": "x"}}},
        "a parameter stands in it",
    ),
    (
        {"type": "expect_column_values_to_be_null", "kwargs": {"column": "age"}, "severity": "fatal"},
        "severity is critical, warning or info",
    ),
    (
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "voted", "regex": "(yes|no"}},
        "regular expression '(yes|no' cannot be read: missing ), unterminated subpattern at position 0; mend it",
    ),
    (
        {"type": "expect_column_values_to_not_match_regex_list", "kwargs": {"column": "voted", "regex_list": ["a", "*"]}},
        "regular expression '*' cannot be read: nothing to repeat",
    ),
    ({"type": ["x"], "kwargs": {}}, "is not run here"),
    ("age", 'an expectation is {"type": …'),
    ({"type": "expect_column_values_to_be_null", "kwargs": 1}, 'an expectation is {"type": …'),
]


@pytest.mark.parametrize(("expectation", "told"), REFUSED)
def test_what_cannot_be_run_is_refused_with_its_place(expectation: Any, told: str, tmp_path: Path):
    good = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "age"}}
    with pytest.raises(SpecError) as refused:
        load(tmp_path, good, expectation)
    assert "expectations.1: " in str(refused.value) and told in str(refused.value)


def test_it_is_refused_with_its_line(tmp_path: Path):
    path, good = (
        tmp_path / "own.json",
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "age", "regex": "."}},
    )
    bad = {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "age", "regex": "["}}
    path.write_text(json.dumps({"name": "own", "expectations": [good, bad]}, indent=1))
    with pytest.raises(SpecError, match=r"own.json, line 11: expectations.1: regular expression '\['"):
        load_supplied(path, make_domain())


def test_what_great_expectations_itself_refuses_is_told_with_its_place(tmp_path: Path):
    supplied = load(
        tmp_path, {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "age", "min_value": 1, "most": 2}}
    )
    with pytest.raises(SpecError, match=r"expectations.0 \(expect_column_mean_to_be_between\): "):
        suite_of(supplied, tmp_path / "own.json")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"expectations": []}', '{"expectations": {}}', "\xff", "[" * 100_000])
def test_a_file_that_is_no_suite_is_refused(content: str, tmp_path: Path):
    (tmp_path / "own.json").write_text(content, encoding="latin-1")
    with pytest.raises(SpecError, match="Great Expectations suite"):
        load_supplied(tmp_path / "own.json", make_domain())


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "absent.json"):
        with pytest.raises(SpecError, match="Great Expectations suite"):
            load_supplied(path, make_domain())
