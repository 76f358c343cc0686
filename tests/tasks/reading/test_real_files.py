"""Files as people have them: every form gives the very cells of the plain one, and nothing is learnt from records."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid, SpecError
from schemas.identity import spec_hash
from schemas.spec import yaml
from schemas.spec.domain import Domain
from steps_engine.domain.encoding import encode
from tasks.publishing import bundle
from tasks.reading.fitting import look_at
from tasks.reading.sources import connect, open_source, query
from tasks.stages.validate import validate_records
from tests.haven import example
from tests.tasks.reading.records import count_cells, make_domain, make_release

PLAIN = """\
name: survey
population: people
attributes:
  - {name: sex, kind: categorical, categories: [male, female], missing: category}
  - {name: grade, kind: ordinal, categories: ["1", "2", "3"]}
  - {name: age, kind: integer, bounds: [18, 99], bins: 9, missing: category}
  - {name: wage, kind: numeric, bounds: [0, 1000], bins: 4, missing: category}
  - {name: born, kind: date, bounds: [1980-01-01, 1999-12-31], bins: 5, missing: category}
"""
AS_FOUND = """\
name: survey
population: people
ignore: [note]
rename: {AGE_R: age}
attributes:
  - {name: sex, kind: categorical, categories: [male, female], recode: {"1": male, "2": female}, missing: [-9, "NA"]}
  - {name: grade, kind: ordinal, categories: [1, 2, 3]}
  - {name: age, kind: integer, bounds: [18, 99], bins: 9, recode: {"990": 99, "refused": null}, missing: [-9, "NA", ""]}
  - {name: wage, kind: numeric, bounds: [0, 1000], bins: 4, missing: [-9.5, "NA"]}
  - {name: born, kind: date, bounds: [1980-01-01, 1999-12-31], bins: 5, missing: [1900-01-01]FORMAT}
"""
DAYS = [datetime.date(1980, 1, 1), datetime.date(1990, 6, 1), None, datetime.date(1999, 12, 31)]
MEANT = pd.DataFrame(
    {
        "sex": ["male", "female", None, "male"],
        "grade": ["1", "2", "3", "1"],
        "age": pd.array([18, 99, None, None], "Int64"),
        "wage": [0.5, 999.25, None, 250.0],
        "born": DAYS,
    }
)
FOUND = pd.DataFrame(
    {
        "note": ["a", "b", "c", "d"],
        "sex": [1, 2, -9, 1],
        "grade": [1, 2, 3, 1],
        "AGE_R": [18, 990, -9, -9],
        "wage": [0.5, 999.25, -9.5, 250.0],
        "born": [DAYS[0], DAYS[1], datetime.date(1900, 1, 1), DAYS[3]],
    }
)


def domain_of(text: str, form: str = "", **more: str) -> Domain:
    lines = "".join(f"{key}: {value}\n" for key, value in more.items())
    return yaml.validate(Domain, yaml.parse(text.replace("FORMAT", f", format: {form!r}" if form else "") + lines))


def cells(source: Path, domain: Domain, confidential: Path) -> dict[tuple[int, ...], int]:
    """Counted, after validation has passed."""
    release = make_release(source, domain)
    validate_records(release, confidential)
    found = count_cells(release, confidential)
    return dict(zip(map(tuple, found.codes.tolist()), found.count.tolist(), strict=True))


@pytest.fixture
def meant(tmp_path, confidential) -> dict[tuple[int, ...], int]:
    MEANT.to_parquet(tmp_path / "plain.parquet", index=False)
    return cells(tmp_path / "plain.parquet", domain_of(PLAIN), confidential)


def written(frame: pd.DataFrame, folder: Path, name: str) -> Path:
    """One of the ways in which the same table is found."""
    import pyreadstat

    path, days = folder / name, pd.to_datetime(frame["born"])
    if name == "parquet":
        frame.to_parquet(path, index=False)
    elif name == "floats and times":
        floats = frame.astype({"sex": float, "grade": np.float32, "AGE_R": float})
        floats.assign(born=days + pd.Timedelta(hours=23, minutes=59)).to_parquet(path, index=False)
    elif name == "moments in UTC":
        frame.assign(born=days.dt.tz_localize("UTC")).to_parquet(path, index=False)
    elif name == "plain.csv":
        frame.to_csv(path, index=False)
    elif name == "times.csv":
        frame.assign(born=[f"{day}T23:59:59.9" for day in frame["born"]]).to_csv(path, index=False)
    elif name == "german.csv":
        text = frame.assign(note="größer", born=days.dt.strftime("%d.%m.%Y"))
        text.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
    elif name == "words.csv":
        words = frame.astype(object).assign(AGE_R=[18, "990.0", "NA", "refused"], sex=["male", 2, "NA", 1])
        words.to_csv(path, index=False, sep="\t")
    elif name == "utf16.csv":
        frame.to_csv(path, index=False, encoding="utf-16")
    elif name.endswith(".sav"):
        pyreadstat.write_sav(frame.assign(wage=[0.5, 999.25, -9.5, 250.0]), path, missing_ranges={"AGE_R": [-9]})
    elif name.endswith(".dta"):
        pyreadstat.write_dta(frame.assign(born=days.astype("datetime64[ns]")), path)
    else:
        pyreadstat.write_xport(frame, path, file_format_version=8)
    return path


NAMES = ("parquet", "floats and times", "moments in UTC", "plain.csv", "times.csv", "german.csv", "words.csv", "utf16.csv")
PROGRAMS = ("survey.sav", "survey.dta", "survey.xpt")


@pytest.mark.parametrize("name", [*NAMES, *PROGRAMS])
@pytest.mark.whole
def test_every_form_of_a_file_is_counted_as_what_it_means(name, meant, tmp_path, confidential):
    if name in PROGRAMS:
        pytest.importorskip("pyreadstat")
    german = {"csv": '{separator: ";", decimal: ",", encoding: latin-1}'}
    domain = domain_of(AS_FOUND, "%d.%m.%Y", **german) if name == "german.csv" else domain_of(AS_FOUND)
    assert cells(written(FOUND, tmp_path, name), domain, confidential) == meant
    assert [path.name for path in confidential.iterdir()] == ["validation.html"]  # what was unpacked is gone


def test_a_frame_is_encoded_as_its_file_is_counted(meant, tmp_path):
    for frame in (FOUND, FOUND.astype({"sex": float}), FOUND.astype(object).assign(AGE_R=[18, 990, "NA", "refused"])):
        rows = map(tuple, encode(frame, domain_of(AS_FOUND)).tolist())
        assert dict.fromkeys(rows, 1) == meant
    rows = map(tuple, encode(MEANT, domain_of(AS_FOUND).as_published()).tolist())
    assert dict.fromkeys(rows, 1) == meant


@pytest.mark.parametrize("broken", [{"sex": [3, 2, -9, 1]}, {"grade": [1, 2, 9, 1]}, {"AGE_R": [18, 991, -9, -9]}])
@pytest.mark.whole
def test_a_value_that_nothing_is_said_about_is_refused_as_before(broken, tmp_path, confidential):
    release = make_release(written(FOUND.assign(**broken), tmp_path, "parquet"), domain_of(AS_FOUND))
    with pytest.raises(DataInvalid, match="fail validation"):
        validate_records(release, confidential)
    with pytest.raises(DataInvalid):
        count_cells(release, confidential)


def test_true_and_false_are_categories(tmp_path, confidential):
    domain = make_domain([{"name": "works", "kind": "categorical", "categories": (True, False)}])
    pq.write_table(pa.table({"works": [True, False, True]}), tmp_path / "a.parquet")
    assert cells(tmp_path / "a.parquet", domain, confidential) == {(0,): 2, (1,): 1}
    assert encode(pd.DataFrame({"works": [True, False]}), domain).tolist() == [[0], [1]]


def test_persons_whose_numbers_are_floats_are_bounded_too(tmp_path, confidential):
    domain = make_domain([{"name": "a", "kind": "integer", "bounds": (0, 9)}], column="id")
    for ids, fits in (([1.0, 2.0, 3.0], True), ([1.0, 1.0, 3.0], False), ([1.0, float("nan"), 3.0], False)):
        pq.write_table(pa.table({"a": [1, 2, 3], "id": pa.array(ids)}), tmp_path / "a.parquet")
        if fits:
            assert sum(cells(tmp_path / "a.parquet", domain, confidential).values()) == 3
            continue
        with pytest.raises(DataInvalid):
            count_cells(make_release(tmp_path / "a.parquet", domain), confidential)
        with pytest.raises(DataInvalid):
            validate_records(make_release(tmp_path / "a.parquet", domain), confidential)


def test_batches_of_a_program_s_file_add_up_to_all_of_it(tmp_path, confidential, monkeypatch):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(pd.DataFrame({"a": np.arange(1001) % 10}), tmp_path / "a.sav")
    domain = make_domain([{"name": "a", "kind": "integer", "bounds": (0, 9)}])
    monkeypatch.setattr("tasks.reading.statistical.VALUES_PER_BATCH", 143)  # 1001 = 7 · 143: the last batch is empty
    assert cells(tmp_path / "a.sav", domain, confidential) == {(i,): 100 + (i == 0) for i in range(10)}


@pytest.mark.parametrize("kind", ["xpt", "sas7bdat"])
def test_a_file_of_sas_is_read_as_pandas_reads_it(kind: str, tmp_path: Path):
    """pandas has a reader of its own."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = example("iris.sas7bdat") if kind == "sas7bdat" else tmp_path / "a.xpt"
    if kind == "xpt":
        pyreadstat.write_xport(pd.DataFrame({"AGE": [18.0, 20.5], "SEX": ["m", "f"]}), path, file_format_version=5)
    theirs, source = pd.read_sas(path, encoding="infer" if kind == "sas7bdat" else "ascii"), open_source(path)
    assert set(source.names) == set(theirs.columns)
    with connect(source, tmp_path) as connection:
        ours = query(connection, f"SELECT * FROM {source.relation()}").to_pandas().set_axis(list(source.names), axis=1)
    assert len(ours) == len(theirs) and ours.to_dict("list") == theirs.to_dict("list")


@pytest.mark.parametrize("kind", ["sas7bdat", "sav", "dta"])
def test_records_that_another_program_wrote_are_counted_exactly(kind: str, tmp_path: Path, confidential):
    """Fisher's irises as R has them: fifty of each. SAS keeps six letters of a name, SPSS numbers with labels."""
    labels = {"sas7bdat": ("setosa", "versic", "virgin"), "sav": ("1", "2", "3"), "dta": ("setosa", "versicolor", "virginica")}
    path = example(f"iris.{kind}")
    *lengths, name = open_source(path).names
    of = {"name": name, "kind": "categorical", "categories": labels[kind]}
    domain = make_domain([{"name": each, "kind": "numeric", "bounds": (0, 8), "bins": 1} for each in lengths] + [of])
    assert cells(path, domain, confidential) == {(0, 0, 0, 0, code): 50 for code in range(3)}


@pytest.mark.parametrize("name", ["a.sav", "a.dta", "a.sas7bdat", "a.xpt"])
def test_a_broken_file_of_a_program_is_refused_in_words(name, tmp_path):
    pytest.importorskip("pyreadstat")
    (tmp_path / name).write_bytes(b"$FL2 canary 7319" * 10)
    with pytest.raises(SpecError, match="cannot be read as a") as caught:
        open_source(tmp_path / name)
    assert "canary" not in str(caught.value) and caught.value.__context__ is None


def test_text_of_another_encoding_than_was_said_is_refused_without_a_word_of_it(tmp_path, confidential):
    domain = make_domain([{"name": "a", "kind": "categorical", "categories": ("x",)}]).model_copy(
        update={"csv": domain_of(PLAIN, csv="{encoding: utf-16}").csv}
    )
    (tmp_path / "a.csv").write_bytes("a\nx\n".encode("utf-16") + b"\x00\xd8\x00")
    with pytest.raises((DataInvalid, SpecError)) as caught:
        validate_records(make_release(tmp_path / "a.csv", domain), confidential)
    assert "d8" not in str(caught.value)


def test_a_look_at_the_door_names_the_domain_s_columns_and_none_that_was_found(tmp_path):
    path = written(FOUND, tmp_path, "parquet")
    assert look_at(str(path), domain_of(AS_FOUND)).problems == ()
    assert look_at(str(path), domain_of(AS_FOUND)).words == "one Parquet file, parquet"
    [lacking, others, *types] = look_at(str(path), domain_of(PLAIN)).problems
    assert lacking == "lacks the column age" and others.startswith("has 2 columns that the domain does not name")
    assert types == [] and "note" not in others and "AGE_R" not in others
    FOUND.assign(wage="much").to_parquet(path, index=False)
    assert "wage is stored as text" in "; ".join(look_at(str(path), domain_of(AS_FOUND)).problems)


def test_a_domain_that_reads_files_as_they_are_keeps_its_hash_and_its_document():
    plain, found = domain_of(PLAIN), domain_of(AS_FOUND)
    said = plain.model_dump(mode="json")
    assert not {"ignore", "rename", "csv"} & said.keys()
    assert all(not {"recode", "missing_values", "format"} & each.keys() for each in said["attributes"])
    assert spec_hash(make_release("x", plain)) == "a518f5e5ceb42740ff55c0c550a34b8b29058b84c130ac52c20aae4884e9a35c"
    assert spec_hash(make_release("x", found)) != spec_hash(make_release("x", plain))
    assert spec_hash(make_release("x", found.as_published())) == spec_hash(make_release("x", plain))
    assert bundle.read_domain(bundle.domain_bytes(found)) == found


BAD = {
    "a value that means two things": ("missing: [-9]", 'missing: [-9], recode: {"-9": female}', "keep one"),
    "a category that means missing": ("missing: [-9, ", "missing: [male, ", "is a category and means missing"),
    "a meaning that is no category": ('"1": male', '"1": man', "none of its categories"),
    "a meaning out of bounds": ('"990": 99', '"990": 100', "none within its bounds"),
    "missing where that is forbidden": ('missing: [-9.5, "NA"]', "missing_values: [-9]", "need missing: category"),
    "a form without a year": ("FORMAT", ', format: "%d.%m."', "no form of a date"),
    "a misspelt key": ("recode:", "recoed:", 'did you mean "recode"'),
    "an attribute that is ignored": ("[note]", "[note, sex]", "line 3.*cannot be ignored"),
    "a name for no attribute": ("AGE_R: age", "AGE_R: ag", "line 4.*did you mean 'age'"),
    "a column that has its name": ("AGE_R: age", "sex: age", "line 4.*already"),
}


@pytest.mark.parametrize("old, new, says", BAD.values(), ids=BAD)
def test_what_contradicts_itself_is_refused_with_its_line(old, new, says):
    old = 'missing: [-9, "NA"]' if old == "missing: [-9]" else old
    assert old in AS_FOUND
    with pytest.raises(SpecError, match=f"line [0-9]+.*{says}|{says}"):
        domain_of(AS_FOUND.replace(old, new, 1).replace("FORMAT", ""))
