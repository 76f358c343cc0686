"""Bad records get the right error, and not one value of theirs leaves the confidential page."""

from __future__ import annotations

import io
import logging
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import tables
from schemas.errors import DataInvalid, SpecError
from tasks.reading.counting import UNFIT
from tasks.stages.validate import validate_records
from tests.tasks.reading.records import ATTRIBUTES, count_cells, good_frame, make_domain, make_release

CANARY = "canary-7319"
CANARY_NUMBER = 731_988.25


def with_value(column: str, value) -> pd.DataFrame:
    """The good frame with one value of one column replaced."""
    frame = good_frame().astype({column: object})
    frame.loc[1, column] = value
    return frame


def parquet(frame: pd.DataFrame):
    return lambda folder: frame.to_parquet(folder / "records.parquet", index=False) or folder / "records.parquet"


def csv(frame: pd.DataFrame):
    return lambda folder: frame.to_csv(folder / "records.csv", index=False) or folder / "records.csv"


def text(content: str, encoding: str = "utf-8"):
    def write(folder):
        (folder / "records.csv").write_bytes(content.encode(encoding))
        return folder / "records.csv"

    return write


def typed(column: str, array: pa.Array):
    def write(folder):
        table = pa.Table.from_pandas(good_frame(), preserve_index=False)
        pq.write_table(table.set_column(table.column_names.index(column), column, array), folder / "records.parquet")
        return folder / "records.parquet"

    return write


def doubled_column(folder):
    table = pa.Table.from_pandas(good_frame(), preserve_index=False)
    pq.write_table(table.append_column("voted", pa.array([CANARY] * 4)), folder / "records.parquet")
    return folder / "records.parquet"


def damaged_page(folder):
    """A whole footer over a damaged page: found while reading, not at the door."""
    path = parquet(pd.concat([good_frame()] * 500))(folder)
    content = bytearray(path.read_bytes())
    content[4:200] = b"\xff" * 196
    path.write_bytes(content)
    return path


HEADER = "voted,age,wage,born\n"
FIRST = "no,18,0,1980-01-01\n"
RULE = make_domain(rules=[{"never": {"voted": "yes", "age": 20}}])
ONE_ROW_EACH = make_domain(column="id", rows_per_person=1)
TWO_ROWS_EACH = make_domain(column="id", rows_per_person=2, exactly=True)
DROPPING = make_domain(column="id", rows_per_person=1, excess="drop")

# name: (the records, the domain if it is not the usual one, what the page shows)
BAD = {
    "a column is missing": (parquet(good_frame().drop(columns="wage")), None, "wage"),
    "a column is extra": (parquet(good_frame().assign(**{CANARY: 1})), None, CANARY),
    "a column stands twice": (doubled_column, None, "stands twice"),
    "a column stands twice in CSV": (text("voted," + HEADER + "no," + FIRST), None, "stands twice"),
    "names that differ in case alone": (parquet(good_frame().assign(AGE=1)), None, "AGE"),
    "a CSV file without a header": (text(f"{CANARY},18,0,1980-01-01\n{FIRST}"), None, CANARY),
    "a category that is not in the domain": (parquet(with_value("voted", CANARY)), None, CANARY),
    "a category that is not in the domain, CSV": (csv(with_value("voted", CANARY)), None, CANARY),
    "a number above the bounds": (csv(with_value("wage", CANARY_NUMBER)), None, str(CANARY_NUMBER)),
    "a number above the bounds, Parquet": (parquet(good_frame().assign(wage=CANARY_NUMBER)), None, str(CANARY_NUMBER)),
    "a whole number below the bounds": (parquet(good_frame().assign(age=-731988)), None, "-731988"),
    "a day outside the bounds": (csv(with_value("born", "1731-09-08")), None, "1731-09-08"),
    "a day that does not exist": (csv(with_value("born", "1990-02-30")), None, "1990-02-30"),
    "a moment beyond the bounds": (
        parquet(good_frame().assign(born=pd.Timestamp("2000-01-01 00:00:01"))),
        None,
        "00:00:01",
    ),
    "a whole number with a fraction": (csv(with_value("age", 20.7319)), None, "20.7319"),
    "NaN": (parquet(good_frame().assign(wage=np.nan)), None, "is never missing"),
    "infinity": (parquet(good_frame().assign(wage=np.inf)), None, "inf"),
    "minus infinity in CSV": (csv(with_value("wage", "-inf")), None, "-inf"),
    "None": (parquet(with_value("voted", None)), None, "is never missing"),
    "an empty CSV field": (text(HEADER + FIRST + "yes,,5,1990-01-01\n"), None, "is never missing"),
    "text where a number belongs": (csv(with_value("age", CANARY)), None, CANARY),
    "mixed types": (csv(with_value("wage", f"{CANARY} 12")), None, CANARY),
    "a text column for a number": (typed("wage", pa.array([CANARY] * 4)), None, "stored as text"),
    "a column of booleans": (typed("voted", pa.array([True] * 4)), None, "true (4×)"),
    "whole numbers for categories": (typed("voted", pa.array([1] * 4)), None, "1 (4×)"),
    "moments with a time zone": (
        typed("born", pa.array([0] * 4, pa.timestamp("us", tz="Asia/Tokyo"))),
        None,
        "stored as timestamp",
    ),
    "a row breaks a rule": (parquet(good_frame()), RULE, "rule 1"),
    "too many rows of a person": (parquet(good_frame().assign(id=[1, 2, 3, 3])), ONE_ROW_EACH, "one person has 2 records"),
    "too few rows of a person": (parquet(good_frame().assign(id=[1, 2, 2, 1])[:3]), TWO_ROWS_EACH, "one person has 1 records"),
    "a row without its person": (parquet(good_frame().assign(id=["a", "b", None, "d"])), ONE_ROW_EACH, "names its person"),
    "no person where rows are dropped": (parquet(good_frame().assign(id=["a", "b", None, "d"])), DROPPING, "names its person"),
    "a CSV row that is too short": (text(HEADER + FIRST + f"{CANARY},18\n"), None, "every record can be read"),
    "a CSV row that is too long": (text(HEADER + FIRST + f"no,18,0,1980-01-01,{CANARY}\n"), None, "every record can be read"),
    "an open quote": (text(HEADER + FIRST + f'"{CANARY},18,0,1980-01-01\n'), None, "every record can be read"),
    "latin-1 beyond the first bytes": (text(HEADER + FIRST * 60_000 + "é,18,0,1980-01-01\n", "latin-1"), None, "can be read"),
    "a damaged page": (damaged_page, None, "every record can be read"),
}


def everything_said(action) -> tuple[Exception, str]:
    """The exception, and all that left the process on the way: its chain, standard output and error, every log record."""
    heard, handler = io.StringIO(), logging.StreamHandler(io.StringIO())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with redirect_stdout(heard), redirect_stderr(heard), pytest.raises(Exception) as caught:
            action()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    error, chain = caught.value, []
    while error is not None:
        chain += [str(error), repr(error), repr(error.args), repr(vars(error))]
        error = error.__cause__ or error.__context__
    said = [*chain, *traceback.format_exception(caught.value), heard.getvalue(), handler.stream.getvalue()]
    return caught.value, "\n".join(said)


def confidential_values(shown: str) -> list[str]:
    """What must not be heard: the canaries, and whatever of the record itself this case puts on the page."""
    return [value for value in (CANARY, "731988", "1731-09-08", "1990-02-30", "19:08:57", "20.7319") if value in shown] + [
        CANARY
    ]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.whole
def test_bad_records_stand_on_the_page_and_nowhere_else(name, tmp_path, confidential, capfd):
    write, domain, shown = BAD[name]
    release = make_release(write(tmp_path), domain)
    error, said = everything_said(lambda: validate_records(release, confidential))
    page = confidential / "validation.html"
    assert type(error) is DataInvalid and str(error) == f"data fail validation; see {page}"
    content = page.read_text(encoding="utf-8")
    assert content.splitlines()[0].find("CONFIDENTIAL") > 0
    broken = content.split('<tr class="broken">')[1:]
    assert any(shown in part.split("</tr>")[0] for part in broken)
    printed = "".join(capfd.readouterr())
    assert not [value for value in confidential_values(shown) if value in said + printed]
    assert [path.name for path in confidential.iterdir()] == ["validation.html"]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.whole
def test_counting_refuses_what_validation_refuses(name, tmp_path, confidential, capfd):
    write, domain, shown = BAD[name]
    release = make_release(write(tmp_path), domain)
    error, said = everything_said(lambda: count_cells(release, confidential))
    assert type(error) is DataInvalid and str(error) == UNFIT
    assert not [value for value in confidential_values(shown) if value in said + "".join(capfd.readouterr())]
    assert list(confidential.iterdir()) == []


def test_the_listening_hears_a_value_that_does_leave(capfd):
    def leak():
        logging.getLogger("anything").info("log %s-1", CANARY)
        print(f"{CANARY}-2", file=sys.stderr)
        try:
            raise ValueError(f"{CANARY}-3")
        except ValueError:
            raise DataInvalid("nothing") from None

    _, said = everything_said(leak)
    assert all(f"{CANARY}-{i}" in said for i in (1, 2, 3))


@pytest.mark.whole
def test_good_records_pass_and_leave_a_private_page(tmp_path, confidential):
    good_frame().to_parquet(tmp_path / "records.parquet", index=False)
    validate_records(make_release(tmp_path / "records.parquet"), confidential)
    page = confidential / "validation.html"
    assert page.stat().st_mode & 0o777 == 0o600
    assert 'class="broken"' not in page.read_text(encoding="utf-8")


EMPTY = {
    "no records": (parquet(good_frame()[:0]), None),
    "a CSV header alone": (text(HEADER), None),
    "no records, with a rule": (parquet(good_frame()[:0]), RULE),
    "no records of anybody": (parquet(good_frame().assign(id=range(4))[:0]), ONE_ROW_EACH),
    "no records of anybody, exactly": (parquet(good_frame().assign(id=range(4))[:0]), TWO_ROWS_EACH),
    "no records to drop": (parquet(good_frame().assign(id=range(4))[:0]), DROPPING),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.whole
def test_a_table_without_records_passes_with_a_remark_and_is_counted(name, tmp_path, confidential):
    """Whether there is a record may hang on one person: a release that exists because of that person would tell."""
    write, domain = EMPTY[name]
    release = make_release(write(tmp_path), domain)
    validate_records(release, confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    assert "Remark: There is no record." in page and 'class="broken"' not in page and 'class="open"' not in page
    assert count_cells(release, confidential).to_table(release.domain).num_rows == 0
    release = make_release(parquet(good_frame().assign(id=[1, 1, 2, 2]))(tmp_path), TWO_ROWS_EACH)
    validate_records(release, confidential)
    assert "Remark" not in (confidential / "validation.html").read_text(encoding="utf-8")


@pytest.mark.whole
def test_empty_values_beyond_the_header_are_passed_over_and_no_others(tmp_path, confidential):
    header, *rows = good_frame().to_csv(index=False).splitlines()
    release = make_release(text("\n".join([header, *rows]))(tmp_path))
    plain = count_cells(release, confidential)
    for beyond in (",", ",,", ',""'):
        text("\n".join([header, rows[0] + beyond, *rows[1:]]))(tmp_path)
        validate_records(release, confidential)
        counted = count_cells(release, confidential)
        assert (counted.codes.tolist(), counted.count.tolist()) == (plain.codes.tolist(), plain.count.tolist())
    for wrong in (rows[0] + ",x", rows[0] + ",,x", rows[0].rpartition(",")[0]):
        text("\n".join([header, wrong, *rows[1:]]))(tmp_path)
        with pytest.raises(DataInvalid):
            validate_records(release, confidential)
        with pytest.raises(DataInvalid):
            count_cells(release, confidential)


def test_a_value_on_the_page_cannot_run_as_a_script(tmp_path, confidential):
    with_value("voted", "<script>alert(1)</script>").to_parquet(tmp_path / "records.parquet", index=False)
    with pytest.raises(DataInvalid):
        validate_records(make_release(tmp_path / "records.parquet"), confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_a_neighbour_with_an_unseen_value_leaves_the_public_schema_as_it_was(tmp_path, confidential):
    """Clamped or missing, one person's odd values move counts only: the cells' columns, types and codes are the domain's."""
    odd = [{**a, "missing": "category", **({"outside": "clamp"} if a["kind"] == "numeric" else {})} for a in ATTRIBUTES]
    domain = make_domain(odd)
    neighbour = pd.concat([good_frame(), pd.DataFrame({"voted": [None], "age": [None], "wage": [9e9], "born": [None]})])
    schemas = []
    for i, frame in enumerate((good_frame(), neighbour)):
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
        counts = count_cells(make_release(tmp_path / f"{i}.csv", domain), confidential)
        schemas.append(counts.to_table(domain).schema)
        assert (counts.codes < np.array(domain.sizes)).all()
    assert schemas[0] == schemas[1] == tables.cells(domain)


def test_a_column_of_nulls_is_missing_not_of_another_type(tmp_path, confidential):
    domain = make_domain([{**a, "missing": "category"} for a in ATTRIBUTES])
    pq.write_table(pa.table({a["name"]: pa.nulls(3) for a in ATTRIBUTES}), tmp_path / "records.parquet")
    release = make_release(tmp_path / "records.parquet", domain)
    validate_records(release, confidential)
    assert count_cells(release, confidential).codes.tolist() == [[size - 1 for size in domain.sizes]]


def test_a_source_that_cannot_be_opened_is_an_error_of_the_spec_not_of_the_data(tmp_path, confidential):
    for run in (validate_records, count_cells):
        with pytest.raises(SpecError, match="no such file"):
            run(make_release(tmp_path / "absent.parquet"), confidential)
