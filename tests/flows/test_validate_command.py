"""`steps validate`: the suite alone, before anything is paid. What it finds stays under confidential/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.specs import load_release
from tasks.stages import validate
from tasks.stores.home import Home
from tests.flows.small import STRANGER, Small, canaries_in, leaks, write_records

OWN = [
    {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "age", "min_value": 19, "max_value": 21}},
    {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "region", "regex": "^[a-z]+$"}},
    {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": ["region", "working", "age", "person"]}},
    {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "person"}},
]


def page_of(small: Small) -> str:
    return (small.home / "confidential" / "small-1" / "validation.html").read_text(encoding="utf-8")


def with_own(small: Small, *expectations: dict) -> Path:
    (small.folder / "own.json").write_text(json.dumps({"name": "own", "expectations": list(expectations)}))
    return small.write(more="expectations: own.json\n")


def expecting(small: Small, rows: int) -> Path:
    dataset = small.folder / "dataset.yaml"
    dataset.write_text(dataset.read_text().replace("expected_rows: 1000000", f"expected_rows: {rows}"))
    return small.release


def test_good_records_may_be_released_and_nothing_but_a_page_is_kept(small: Small, steps):
    expecting(small, 2_000)
    said = steps("validate", small.release)
    assert said.code == 0 and "the data may be released (no warnings)" in said.out and "confidential" in said.out
    assert sorted(str(path.relative_to(small.home)) for path in small.home.rglob("*")) == [
        "confidential",
        "confidential/small-1",
        "confidential/small-1/validation.html",
    ], "no ledger, no counts, no keys"
    assert (small.home / "confidential").stat().st_mode & 0o077 == 0


@pytest.mark.whole
def test_records_that_do_not_fit_end_with_4_and_only_the_page_says_why(small: Small, steps):
    write_records(small.folder / "records.parquet", 2_003, region=STRANGER)
    for words in ([], ["--json"]):
        said = steps("validate", small.release, *words)
        assert said.code == 4 and "data fail validation; see " in said.err
        assert canaries_in((said.out + said.err).encode()) == [] and "2,003" not in said.out + said.err
    assert STRANGER in page_of(small) and leaks(small.home) == []
    assert steps("validate", small.release, "--json").json["exit_code"] == 4


@pytest.mark.whole
def test_far_fewer_rows_than_expected_are_a_warning_that_stays_inside(small: Small, steps):
    said, told = steps("validate", small.release), steps("validate", small.release, "--json")
    assert said.code == told.code == 0 and "(1 warning)" in said.out
    assert set(told.json) == {"release", "reads", "expectations", "page"}, "what a program may log says nothing of it"
    assert "not met (warning)" in page_of(small) and "2,003" in page_of(small)
    assert "2,003" not in said.out + said.err + told.out + told.err
    expecting(small, 2_000)
    assert "(no warnings)" in steps("validate", small.release).out and "(warning)" not in page_of(small)


def test_the_stage_of_a_run_returns_and_says_nothing_of_warnings(small: Small, capfd, caplog):
    with caplog.at_level(0):
        assert validate.validate(Home(small.home), load_release(small.release)) is None
    assert "not met (warning)" in page_of(small)
    assert "".join(capfd.readouterr()) == "" and not [
        r for r in caplog.records if "2003" in r.getMessage() or "warning" in r.getMessage()
    ]


def test_a_column_that_is_not_there_is_told_before_a_record_is_read(small: Small, steps):
    dataset = small.folder / "dataset.yaml"
    dataset.write_text(dataset.read_text().replace("name: working", "name: job").replace("working:", "job:"))
    said = steps("validate", small.release)
    assert (
        said.code == 4 and "lacks the column job" in said.err and "No record was read" in said.err and not small.home.exists()
    )


@pytest.mark.whole
def test_a_suppliers_own_expectations_are_met_with_the_domains(small: Small, steps):
    said = steps("validate", with_own(small, *OWN), "--json")
    assert said.code == 0, said.err
    assert "supplier&#39;s: mean to be between: min_value 19, max_value 21" in page_of(small)
    without = steps("validate", small.write(), "--json").json["expectations"]
    assert said.json["expectations"] == without + len(OWN)


@pytest.mark.parametrize(("severity", "code"), [("critical", 4), ("warning", 0), ("info", 0)])
@pytest.mark.whole
def test_one_that_is_not_met_refuses_unless_it_is_a_warning(severity: str, code: int, small: Small, steps):
    own = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "age", "min_value": 21}, "severity": severity}
    said = steps("validate", expecting(small, 2_000) and with_own(small, *OWN, own))
    assert said.code == code
    assert ("not met" + (f" ({severity})" if code == 0 else "")) in page_of(small)
    assert ("1 warning" in said.out) == (severity == "warning")


def test_records_in_csv_are_read_as_the_domain_reads_them(small: Small, steps):
    import pyarrow.csv
    import pyarrow.parquet as pq

    pyarrow.csv.write_csv(pq.read_table(small.folder / "records.parquet"), small.folder / "records.csv")
    release = with_own(small, *OWN)
    release.write_text(release.read_text().replace("records.parquet", "records.csv"))
    assert steps("validate", release).code == 0


@pytest.mark.whole
def test_more_values_than_memory_holds_are_not_checked_and_so_refused(small: Small, steps, monkeypatch):
    monkeypatch.setattr("tasks.reading.supplied.MOST_VALUES", 2_003 * 3)
    said = steps("validate", with_own(small, *OWN[:2]))
    assert said.code == 0, "two columns fit"
    monkeypatch.setattr("tasks.reading.supplied.MOST_VALUES", 2_003)
    said = steps("validate", small.release)
    assert said.code == 4 and "more values than are held in memory" in page_of(small)


@pytest.mark.parametrize("command", ["plan", "run", "validate"])
def test_expectations_that_cannot_be_run_are_met_at_the_door(command: str, small: Small, steps):
    bad = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "agee"}}
    said = steps(command, with_own(small, bad))
    assert said.code == 2 and "expectations.0: the source has no column 'agee'; it has region, working, age, person" in said.err
    assert not small.home.exists()


def test_what_great_expectations_refuses_is_met_before_a_run_begins(small: Small, steps, monkeypatch):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    bad = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "age", "min": 3}}
    for command in ("run", "validate"):
        said = steps(command, with_own(small, bad))
        assert said.code == 2 and "expectations.0 (expect_column_mean_to_be_between)" in said.err
    assert not list(small.home.glob("confidential/*"))


def test_expectations_change_neither_the_plan_nor_its_hash(small: Small, steps):
    plain = steps("plan", small.write(), "--json").json
    assert steps("plan", with_own(small, *OWN), "--json").json["hash"] == plain["hash"]


def test_the_suite_for_suppliers_is_written_without_reading_a_record(small: Small, steps):
    (small.folder / "records.parquet").unlink()
    said = steps("validate", small.release, "--suite", small.folder / "suite.json", "--json")
    assert said.code == 0 and not small.home.exists()
    suite = json.loads((small.folder / "suite.json").read_text())
    assert len(suite["expectations"]) == said.json["expectations"] > 5 and said.json["not_checked"] == []
    again = steps("validate", small.release, "--suite", small.folder / "suite.json")
    assert again.code == 2 and "is never overwritten" in again.err
