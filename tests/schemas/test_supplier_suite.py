"""The public suite: a supplier runs it with Great Expectations alone, and learns what the run would refuse."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from schemas.expectations import silent_gx
from schemas.spec.domain import Domain
from schemas.supplier_suite import supplier_suite

DOMAIN = Domain.model_validate(
    {
        "name": "wages",
        "population": "people",
        "expected_rows": 4,
        "unit": {"column": "person"},
        "attributes": (
            {"name": "sector", "kind": "categorical", "categories": ("public", 'it\'s "private"')},
            {"name": "grade", "kind": "ordinal", "categories": (1, 2, 3)},
            {"name": "head", "kind": "categorical", "categories": ("no", "yes"), "recode": {"J": "yes"}, "missing": ["-"]},
            {"name": "age", "kind": "integer", "bounds": (15, 74), "missing": (-9,)},
            {"name": "wage", "kind": "numeric", "bounds": (0, 100), "bins": 5, "outside": "clamp"},
            {"name": "hired", "kind": "date", "bounds": ("1980-01-01", "2026-12-31"), "bins": 5, "format": "%d.%m.%Y"},
            {"name": "region", "kind": "categorical", "categories": ("north", "south")},
            {"name": "first", "kind": "integer", "bounds": (15, 74), "missing": "category"},
            {"name": "starts", "kind": "time", "bounds": ("00:00", "24:00"), "bins": 24},
            {"name": "debt", "kind": "numeric", "bounds": (0, 10), "bins": 2, "above": {"shape": "exponential", "mean": 20}},
        ),
        "rules": (
            {"never": {"sector": 'it\'s "private"', "region": ("south",)}},
            {"never": {"grade": 1, "age": {"from": 15, "below": 20}}},
            {"always": "age <= first"},
        ),
        "rename": {"SECTOR": "sector"},
    }
)
GOOD = {
    "person": [1, 2, 3, 4],
    "SECTOR": ["public", "public", 'it\'s "private"', "public"],
    "grade": [1, 2, 3, 3],
    "head": ["no", "J", "-", None],
    "age": [20, -9, 74, 20],
    "wage": [1.5, 1000, -3, 4],
    "hired": ["31.12.2026", "01.02.2003", "01.02.2003", "01.02.2003"],
    "region": ["north", "south", "north", "north"],
    "first": [20, 20, 74, None],
    "starts": ["08:30", "09:00", "23:59", "00:00"],
    "debt": [0.0, 3, 900, 10],
}


def verdicts(suite: dict[str, Any], frame: pd.DataFrame) -> dict[str, bool]:
    """As a supplier would: the file's text, Great Expectations, a frame, nothing of ours."""
    gx = silent_gx()
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("file").add_dataframe_asset("records")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    context.variables.progress_bars = {"globally": False}
    found = batch.validate(gx.ExpectationSuite(**json.loads(json.dumps(suite)))).results
    return {
        f"{r.expectation_config.kwargs.get('column', 'table')} {r.expectation_config.type.removeprefix('expect_')}": bool(
            r.success
        )
        for r in found
    }


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    return supplier_suite(DOMAIN, is_csv=True)


def test_a_good_file_passes(suite: dict[str, Any]):
    found = verdicts(suite, pd.DataFrame(GOOD))
    assert all(found.values()) and len(found) == len(suite["expectations"]) == 20, found


BAD = {
    "SECTOR column_values_to_be_in_set": {"SECTOR": ["state"] * 4},
    "grade column_values_to_be_in_set": {"grade": [1, 2, 3, 4]},
    "head column_values_to_be_in_set": {"head": ["no", "j", "-", None]},
    "age column_values_to_be_between": {"age": [20, -8, 74, 20]},
    "age column_values_to_be_between ": {"age": [20, 75, -9, 20]},
    "region column_values_to_not_be_null": {"region": ["north", None, "north", "north"]},
    "region column_values_to_not_be_in_set": {"region": ["north", "south", "south", "north"]},
    "hired column_values_to_match_strftime_format": {"hired": ["2026-12-31"] * 4},
    "person column_values_to_be_unique": {"person": [1, 2, 3, 3]},
    "person column_values_to_not_be_null": {"person": [1, None, 3, 4]},
    "table table_columns_to_match_set": {"more": [1, 2, 3, 4]},
}


@pytest.mark.parametrize("broken", BAD)
@pytest.mark.whole
def test_a_bad_file_fails_where_it_is_bad(broken: str, suite: dict[str, Any]):
    found = verdicts(suite, pd.DataFrame(GOOD | BAD[broken]))
    assert [name for name, met in found.items() if not met] == [broken.strip()]


def test_too_few_rows_are_a_warning(suite: dict[str, Any]):
    rows = next(each for each in suite["expectations"] if each["type"] == "expect_table_row_count_to_be_between")
    assert rows["severity"] == "warning" and rows["kwargs"] == {"min_value": 2, "max_value": 8}
    assert not verdicts(suite, pd.DataFrame(GOOD).head(1))["table table_row_count_to_be_between"]
    assert {each["severity"] for each in suite["expectations"] if each is not rows} == {"critical"}


def test_what_it_cannot_say_it_says(suite: dict[str, Any]):
    assert suite["meta"]["steps_release"]["not_checked"] == [
        "hired: from 1980-01-01 to 2026-12-31",
        "starts: from 00:00 to 24:00",
        "rule 2: never grade = 1 with age from 15 and below 20",
        "rule 3: always age <= first",
    ]


def test_a_rule_by_a_level_of_places_is_left_to_the_run():
    """The file need not have the level's column."""
    table = (("N", "t1"), ("S", "t2"))
    place = {"name": "tract", "kind": "categorical", "geography": {"levels": ("region", "tract"), "table": table}}
    sex = {"name": "sex", "kind": "categorical", "categories": ("m", "f")}
    rules = ({"never": {"region": "N", "sex": "m"}}, {"never": {"tract": "t2", "sex": "m"}})
    of = Domain.model_validate({"name": "d", "population": "p", "attributes": (place, sex), "rules": rules})
    made = supplier_suite(of, is_csv=False)
    assert made["meta"]["steps_release"]["not_checked"] == ["rule 1: never region = N with sex = m"]
    assert sum("not_be_in_set" in each["type"] for each in made["expectations"]) == 1
