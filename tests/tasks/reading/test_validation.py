"""Great Expectations on the small tables says what it says on all rows, and never sees all rows."""

from __future__ import annotations

import datetime
import socket

import numpy as np
import pandas as pd
import pytest

from schemas.expectations import build_suite
from schemas.spec.attributes import EPOCH
from tasks.reading.profile import EXAMPLES, contents, structure
from tasks.reading.sources import connect, open_source
from tasks.stages import validate
from tests.tasks.reading.records import ATTRIBUTES, good_frame, make_domain, make_release


def small_tables(frame: pd.DataFrame, domain, folder):
    frame.to_parquet(folder / "records.parquet", index=False)
    source = open_source(folder / "records.parquet")
    with connect(source, folder) as connection:
        return structure(source, domain) | contents(connection, source, domain)


def verdicts(suite, frame: pd.DataFrame) -> dict[str, bool]:
    """Of the expectations about the values of attributes: those that can be run on a frame of all rows as well."""
    suite.expectations = [e for e in suite.expectations if e.column in {a["name"] for a in ATTRIBUTES}]
    results = validate._run(suite, frame)
    return {f"{r.expectation_config.kwargs['column']} {r.expectation_config.type}": r.success for r in results}


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Days since 1970, as the suite's bounds are written; the rest as it is."""
    days = [None if day is None else (day - EPOCH).days for day in frame["born"]]
    return frame.assign(born=pd.Series(days, dtype=object)).astype({"voted": object})


def spoilt(**changes) -> pd.DataFrame:
    frame = pd.concat([good_frame()] * 5, ignore_index=True)
    for column, value in changes.items():
        frame[column] = frame[column].astype(object)
        frame.loc[7, column] = value
    return frame.astype({"age": float, "wage": float})


SPOILT = {
    "nothing": {},
    "category": {"voted": "unseen"},
    "missing category": {"voted": None},
    "below": {"age": 17},
    "above": {"wage": 1000.5},
    "infinite": {"wage": np.inf},
    "missing number": {"wage": np.nan},
    "late": {"born": datetime.date(2000, 1, 1)},
    "no day": {"born": None},
    "several": {"voted": "unseen", "age": 23, "born": datetime.date(1979, 12, 31)},
}


@pytest.mark.parametrize("name", SPOILT)
@pytest.mark.whole
def test_the_small_tables_pass_and_fail_as_all_rows_do(name, tmp_path):
    frame, domain = spoilt(**SPOILT[name]), make_domain()
    on_all_rows = verdicts(build_suite(domain), as_numbers(frame))
    on_small_tables = verdicts(build_suite(domain), small_tables(frame, domain, tmp_path).frame())
    assert on_small_tables == on_all_rows
    assert all(on_all_rows.values()) == (name == "nothing")


def test_the_small_tables_stay_small_however_many_values_there_are(tmp_path):
    domain = make_domain([{"name": "x", "kind": "numeric", "bounds": (0, 1), "bins": 1000}])
    digest = small_tables(pd.DataFrame({"x": np.linspace(-1, 2, 30_000)}), domain, tmp_path)
    assert len(digest.frame()) <= EXAMPLES + 2
    finding = digest.findings["x", "outside"]
    assert finding.rows == 20_000 and len(finding.examples) == EXAMPLES + 1 and "19,990 more" in finding.examples[-1]
    assert digest.values["x"][-2:] == [-1.0, 2.0]


def test_every_expectation_of_the_domain_stands_on_the_page_once(tmp_path, confidential):
    rules = [{"never": {"voted": "yes", "age": 19}}]
    domain = make_domain(rules=rules, column="id", rows_per_person=1)
    good_frame().assign(id=range(4)).to_parquet(tmp_path / "records.parquet", index=False)
    validate.validate_records(make_release(tmp_path / "records.parquet", domain), confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    # 4 of the table; type, missing, and categories or (readable, bounds) of each attribute; 3 of people; 1 rule
    assert page.count('<td class="state">met</td>') == 4 + 3 + 3 * 4 + 3 + 1 == page.count('<td class="state">')


def test_a_check_that_did_not_run_fails_the_data(tmp_path, monkeypatch, confidential):
    good_frame().to_parquet(tmp_path / "records.parquet", index=False)
    forgetful = lambda connection, source, domain: contents(connection, source, domain).__class__()  # noqa: E731
    monkeypatch.setattr(validate, "contents", forgetful)
    with pytest.raises(validate.DataInvalid):
        validate.validate_records(make_release(tmp_path / "records.parquet"), confidential)
    assert "not checked" in (confidential / "validation.html").read_text(encoding="utf-8")


def test_validation_opens_no_connection_and_says_nothing(tmp_path, monkeypatch, confidential, capfd, caplog):
    def refuse(*_):
        raise AssertionError("validation reached for the network")

    good_frame().to_parquet(tmp_path / "records.parquet", index=False)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with caplog.at_level(0):
        validate.validate_records(make_release(tmp_path / "records.parquet"), confidential)
    assert "".join(capfd.readouterr()) == ""
    assert not [record for record in caplog.records if record.name.startswith("great_expectations")]


def test_the_page_needs_nothing_from_elsewhere(tmp_path, confidential):
    good_frame().to_parquet(tmp_path / "records.parquet", index=False)
    validate.validate_records(make_release(tmp_path / "records.parquet"), confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    assert not [sign for sign in ("http:", "https:", "src=", "@import", "<link", "url(") if sign in page]
