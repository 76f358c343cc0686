"""Every format gives what it says of a table, and nothing that was computed from records."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from schemas.errors import SpecError
from schemas.spec.attributes import Ordinal
from schemas.spec.domain import Domain, load_domain
from tasks.describing.formats import FORMATS, describe
from tasks.describing.start import choose, start
from tests.haven import example
from tests.tasks.describing import codebooks
from tests.tasks.describing.codebooks import COMPLETE, SECRET, write


def started(folder: Path, source: Path, **asked) -> Path:
    found = describe(source, asked.pop("table", None))
    out = folder / "out"
    start(out, found, choose(found, out, **asked))
    return out


def domain_of(folder: Path, name: str, **asked) -> Domain:
    return load_domain(started(folder, write(folder, name), **asked) / "dataset.yaml")


@pytest.mark.parametrize("name", COMPLETE)
def test_nothing_that_was_computed_from_records_is_taken(name: str, tmp_path: Path):
    out = started(tmp_path, write(tmp_path, name))
    text = (out / "dataset.yaml").read_text() + (out / "release.yaml").read_text()
    assert str(SECRET) not in text and str(SECRET) not in text.replace(".", "").replace("_", "")
    assert "TODO" not in text


def test_a_table_schema_says_categories_labels_order_bounds_missing_and_whose_row(tmp_path: Path):
    domain = domain_of(tmp_path, "schema.json")
    sector, grade, age, pay, hired, member, starts = domain.attributes
    assert sector.categories == ("1", "2") and sector.label_texts == {"1": "public", "2": "private"}
    assert sector.title == "Sector of the employer" and sector.missing == "forbid", "what is required is never missing"
    assert isinstance(grade, Ordinal) and grade.missing_values == ("-9",)
    assert age.bounds == (15, 74) and pay.bounds == (0, 20000) and pay.description == "Gross pay a month."
    assert hired.bounds == (datetime.date(1980, 1, 1), datetime.date(2026, 12, 31))
    assert member.categories == ("N", "Y") and starts.kind == "time" and starts.size == 24
    assert domain.unit.column == "id" and domain.source == "Frictionless table schema schema.json"


def test_a_data_package_says_who_publishes_and_how_the_file_is_written(tmp_path: Path):
    domain = domain_of(tmp_path, "datapackage.json")
    assert (domain.name, domain.title, domain.publisher, domain.licence) == (
        "wages",
        "Wages in small firms",
        "Office of Examples",
        "CC-BY-4.0",
    )
    assert domain.csv.separator == ";" and domain.csv.encoding == "iso8859-1"
    assert "source: wages.csv" in (tmp_path / "out" / "release.yaml").read_text()


def test_paths_in_a_package_are_from_its_own_folder_and_several_files_are_told(tmp_path: Path):
    below = tmp_path / "below"
    (below / "data").mkdir(parents=True)
    (below / "data" / "w.csv").touch()
    files = ["data/w.csv", "data/x.csv"]
    licence = {"name": "other-open", "path": "https://example.org/terms"}
    fields = [{"name": "a", "type": "integer", "constraints": {"exclusiveMinimum": 14, "maximum": 99}, "groupChar": "'"}]
    resource = {"name": "w", "path": files, "schema": {"fields": fields}, "licenses": [licence]}
    (below / "datapackage.json").write_text(json.dumps({"resources": [resource]}))
    out = started(tmp_path, below / "datapackage.json")
    assert "source: ../below/data/w.csv" in (out / "release.yaml").read_text()
    text = (out / "dataset.yaml").read_text()
    assert "its records are 2 files" in text and "not taken from the schema: groupChar" in text
    assert "licence: https://example.org/terms" in text and "bounds: [15, 99]" in text


def test_headers_of_csvw_are_titles_in_the_language_of_the_document(tmp_path: Path):
    """As in W3C's own examples: a publisher is an organisation with a name."""
    age = {"name": "age", "datatype": {"base": "integer", "minExclusive": 14, "maxExclusive": 100}}
    line = {"name": "line", "titles": {"en": "Line", "fr": ["Ligne", "L"]}, "datatype": {"format": "A|B"}}
    publisher = [{"schema:name": {"@value": "Office"}, "schema:url": {"@id": "https://example.org"}}]
    context = ["http://www.w3.org/ns/csvw", {"@language": "fr"}]
    document = {"@context": context, "dc:publisher": publisher, "tableSchema": {"columns": [line, age]}}
    (tmp_path / "bus.json").write_text(json.dumps(document))
    found = describe(tmp_path / "bus.json")
    assert found.publisher == "Office" and [each.column for each in found.variables] == ["Ligne", "age"]
    assert (found.variables[1].low, found.variables[1].high) == (15, 99)


def test_csvw_says_names_beside_headers_alternatives_and_forms_of_dates(tmp_path: Path):
    domain = domain_of(tmp_path, "wages.csv-metadata.json")
    assert domain.names == ("sector", "age", "pay", "hired", "member") and domain.rename == {"Sector": "sector"}
    assert domain.attributes[0].categories == ("public", "private")
    assert domain.attributes[2].missing_values == ("NA",) and domain.attributes[3].format == "%d.%m.%Y"


def test_csvw_eo_says_whose_privacy_how_many_rows_of_one_and_public_keys(tmp_path: Path):
    domain = domain_of(tmp_path, "wages-eo.json")
    assert domain.unit.column == "person" and domain.unit.rows_per_person == 3
    assert domain.expected_rows == 45_000, "to two digits"
    assert "make sure that the bounds and keys taken here are publicly known" in (tmp_path / "out" / "dataset.yaml").read_text()
    sector, pay, visits = domain.attributes
    assert sector.categories == ("public", "private") and pay.edges == (0, 1500, 4000, 20000) and visits.bounds == (0, 5)


def test_csvw_eo_is_read_with_the_prefixes_of_its_vocabulary_too(tmp_path: Path):
    prefixed = codebooks.CSVW_EO | {"csvw-eo:public.privacyUnit": "person", "csvw-eo:bounds.maxContributions": 4}
    path = tmp_path / "eo.json"
    path.write_text(
        json.dumps({key: value for key, value in prefixed.items() if key not in ("privacyUnit", "maxContributions")})
    )
    found = describe(path)
    assert found.person == "person" and found.rows_per_person == 4


def test_keys_that_are_not_all_there_are_leave_a_gap(tmp_path: Path):
    document = json.loads(json.dumps(codebooks.CSVW_EO))
    document["tableSchema"]["columns"][1]["exhaustiveKeys"] = False
    (tmp_path / "eo.json").write_text(json.dumps(document))
    text = (started(tmp_path, tmp_path / "eo.json") / "dataset.yaml").read_text()
    assert "categories: TODO  # besides public, private, which are not all" in text


def test_a_ddi_codebook_says_questions_categories_valid_ranges_and_what_means_missing(tmp_path: Path):
    domain = domain_of(tmp_path, "wages.xml")
    sector, grade, age, pay = domain.attributes
    assert sector.description == "For whom do you work?" and sector.label_texts == {"1": "public", "2": "private"}
    assert sector.missing_values == ("-8",) and pay.missing_values == ("-9",)
    assert isinstance(grade, Ordinal) and grade.label_texts == {"a": "junior", "b": "senior"}
    assert age.kind == "integer" and age.bounds == (15, 74) and pay.kind == "numeric" and pay.bounds == (0, 20000)
    assert domain.publisher == "Office of Examples" and domain.expected_rows == 45_000


def test_an_abstract_in_html_and_a_number_with_commas_are_read(tmp_path: Path):
    edited = codebooks.DDI.replace("What people in small firms earn.", "<![CDATA[<p>Pay &amp; hours</p>]]>")
    (tmp_path / "wages.xml").write_text(edited.replace(">45123<", ">45,123<"))
    found = describe(tmp_path / "wages.xml")
    assert found.expected_rows == 45_000 and "<" not in found.description and "hours" in found.description


def test_a_choice_between_something_and_null_is_that_which_may_be_missing(tmp_path: Path):
    """As programs write what may be absent; limits that are excluded themselves are taken too, as numbers or as a flag."""
    grade = {"anyOf": [{"$ref": "#/$defs/grade"}, {"type": "null"}], "title": "Grade"}
    properties = {
        "grade": grade,
        "score": {"allOf": [{"$ref": "#/$defs/score"}]},
        "rate": {"exclusiveMinimum": 0, "maximum": 2},
    }
    properties["old"] = {"type": "integer", "minimum": 0, "maximum": 11, "exclusiveMaximum": True}
    properties["rate"]["type"] = "number"
    parts = {
        "grade": {"enum": ["a", "b"], "type": "string"},
        "score": {"type": "integer", "minimum": 0, "exclusiveMaximum": 11},
    }
    document = {"properties": properties, "required": list(properties), "$defs": parts}
    (tmp_path / "a.schema.json").write_text(json.dumps(document))
    grade, score, rate, old = describe(tmp_path / "a.schema.json").variables
    assert grade.may_be_missing and [each.value for each in grade.categories] == ["a", "b"] and grade.title == "Grade"
    assert not score.may_be_missing and (score.low, score.high) == (0, 10)
    assert (rate.low, rate.high) == (0, 2) and (old.low, old.high) == (0, 10)


def test_a_json_schema_says_constants_with_titles_and_follows_references_within_it(tmp_path: Path):
    sector, grade, age, pay, member = domain_of(tmp_path, "wages.schema.json").attributes
    assert sector.label_texts == {"1": "public", "2": "private"} and sector.missing == "forbid"
    assert grade.categories == ("junior", "senior") and grade.title == "Grade" and grade.missing == "category"
    assert age.bounds == (15, 74) and pay.bounds == (0, 20000.5) and member.categories == ("false", "true")


def test_labels_of_spss_say_categories_order_and_what_means_missing(tmp_path: Path):
    sector, grade = domain_of(tmp_path, "wages.sav").attributes
    assert sector.categories == ("1", "2") and sector.missing_values == ("-9",) and sector.title == "Sector of the employer"
    assert isinstance(grade, Ordinal) and grade.label_texts == {"1": "junior", "2": "senior", "3": "head"}


def test_labels_of_stata_say_categories_and_the_records_are_the_source(tmp_path: Path):
    sector, grade = domain_of(tmp_path, "wages.dta").attributes
    assert sector.label_texts == {"1": "public", "2": "private"} and grade.size == 3
    assert "source: ../wages.dta" in (tmp_path / "out" / "release.yaml").read_text()


def test_labels_of_words_are_kept_and_formats_say_what_is_whole(tmp_path: Path):
    frame = pd.DataFrame({"age": [20.0, 30.0], "sex": ["m", "f"], "pay": [1.5, 2.5], "code": [1.0, 2.0]})
    labels = {"sex": {"m": "male", "f": "female"}, "age": {99.0: "99 and older"}, "code": {1.0: "no", 2.0: "yes"}}
    pyreadstat.write_sav(
        frame,
        str(tmp_path / "a.sav"),
        variable_value_labels=labels,
        variable_measure={"age": "scale", "sex": "nominal", "code": "nominal"},
        missing_ranges={"age": [{"lo": -9, "hi": -7}]},
        variable_format={"age": "F3.0", "pay": "F8.2"},
    )
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"), variable_value_labels={"code": labels["code"]})
    age, sex, pay, code = describe(tmp_path / "a.sav").variables
    assert [(each.value, each.label) for each in sex.categories] == [("f", "female"), ("m", "male")]
    assert (age.holds, pay.holds) == ("whole numbers", "numbers") and age.missing_values == ("-9", "-8", "-7")
    assert age.categories == () and "99 and older" in age.remarks[0], "a label of one value does not make categories"
    age, sex, pay, code = describe(tmp_path / "a.dta").variables
    assert pay.holds == "numbers" and sex.categories == () and len(code.categories) == 2


def test_a_file_of_sas_says_names_and_types_and_what_is_left_is_a_gap(tmp_path: Path):
    *lengths, species = describe(example("iris.sas7bdat")).variables
    assert {each.holds for each in lengths} == {"numbers"} and (species.column, species.holds) == ("Species", "text")
    text = (started(tmp_path, example("iris.sas7bdat")) / "dataset.yaml").read_text()
    assert text.count("bounds: TODO") == 4 and text.count("categories: TODO") == 1 and "setosa" not in text
    labelled = describe(example("iris.sav")).variables[-1]
    assert [each.label for each in labelled.categories] == ["setosa", "versicolor", "virginica"]


READERS = [("wages.sav", "read_sav"), ("wages.dta", "read_dta"), ("iris.sas7bdat", "read_sas7bdat")]


@pytest.mark.parametrize(("name", "reader"), READERS)
def test_of_a_labelled_file_no_value_is_read(name: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = example(name) if name.startswith("iris") else write(tmp_path, name)
    asked, real = [], getattr(pyreadstat, reader)

    def watched(*words, **options):
        asked.append(options.get("metadataonly"))
        return real(*words, **options)

    monkeypatch.setattr(pyreadstat, reader, watched)
    describe(path)
    assert asked and all(asked)


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """The same records as CSV and as Parquet, with statistics in the footer."""
    table = pa.table(
        {
            "region": pa.array(["north", "quetzalcoatlus"]).dictionary_encode(),
            "age": [18, SECRET],
            "pay": [0.5, float(SECRET)],
            "born": pa.array([datetime.date(2001, 2, 3)] * 2),
            "works": [True, False],
        }
    )
    pq.write_table(table, tmp_path / "wages.parquet", write_statistics=True)
    table.to_pandas().to_csv(tmp_path / "wages.csv", index=False, sep=";")
    return [tmp_path / "wages.parquet", tmp_path / "wages.csv"]


def test_of_a_plain_table_names_and_types_are_taken_and_the_rest_is_left_open(tables: list[Path], tmp_path: Path):
    for number, path in enumerate(tables):
        found = describe(path)
        out = tmp_path / str(number)
        made = start(out, found, choose(found, out))
        text = (out / "dataset.yaml").read_text() + repr(made)
        assert not any(secret in text for secret in ("quetzalcoatlus", "north", str(SECRET), "2001", "rows: 2"))
        assert made.attributes == 5 and all(gap["key"].startswith("attributes.") for gap in made.gaps)
        wanted = {"attributes.region.categories", "attributes.age.bounds", "attributes.pay.bounds", "attributes.born.bounds"}
        named = {gap["key"] for gap in made.gaps}
        assert named == wanted if number == 0 else len(named) == 5, "a CSV file does not even say kinds"
    assert "csv: {separator: ;}" in text or 'csv: {separator: ";"}' in text


def test_adding_a_format_is_adding_a_file():
    assert [each.name for each in FORMATS.entries()] == ["frictionless", "csvw", "json schema", "ddi", "labels", "table"]


BAD = {
    "no-schema.json": ('{"a": 1}', "nothing that describes a table. Known are: Frictionless"),
    "list.json": ("[1, 2]", "nothing that describes a table"),
    "broken.json": ('{"fields": [', "not readable as JSON"),
    "twice.json": ('{"properties": {"a": {}, "a": {}}}', "'a' stands twice in one object"),
    "duplicate.json": ('{"fields": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}', "'a' stands twice, as variable 1 and 3"),
    "nameless.json": ('{"fields": [{"type": "string"}]}', "variable 1 of this Frictionless table schema has no name"),
    "empty.json": ('{"fields": []}', "describes no variable"),
    "fields.json": ('{"fields": ["a"]}', "has a list of fields"),
    "nan.json": ('{"fields": [{"name": "a", "constraints": {"minimum": NaN}}]}', "NaN is no number"),
    "deep.json": ("[" * 100_000, "nested too deeply"),
    "nothing.schema.json": ('{"type": "object"}', "a JSON Schema without properties"),
    "far.json": ('{"properties": {"a": {"$ref": "https://example.org/x"}}}', "only references within the file"),
    "loop.json": ('{"properties": {"a": {"$ref": "#/properties/a"}}}', "leads to itself"),
    "out.json": ('{"resources": [{"name": "a", "schema": "../../etc/passwd"}]}', "only files beside or below it are opened"),
    "web.json": ('{"resources": [{"name": "a", "schema": "https://example.org/s.json"}]}', "only files beside or below it"),
    "two.json": (
        '{"resources": [{"name": "a", "schema": "a.json"}, {"name": "b", "schema": "b.json"}]}',
        "describes a, b. Say which",
    ),
    "csvw.json": ('{"tableSchema": {"columns": 1}}', "a tableSchema with a list of columns"),
    "text.json": ("a,b", "called .json without being it, and nothing that describes a table"),
    "page.xml": ("<html/>", "XML that begins with <html>"),
    "none.xml": ("<codeBook/>", "a DDI codebook that describes no variable"),
    "cut.xml": ("<codeBook><dataDscr>", "not readable as XML"),
    "entity.xml": ('<!DOCTYPE codeBook [<!ENTITY a "b">]><codeBook>&a;</codeBook>', "a document type"),
    "outside.xml": ('<!DOCTYPE codeBook SYSTEM "file:///etc/passwd"><codeBook/>', "a document type"),
    "deep.xml": ("<a>" * 101 + "</a>" * 101, "nested more than 100 levels deep"),
    "note.txt": ("hello", "a .txt, and nothing that describes a table"),
    "broken.sav": ("no such thing", "cannot be read as a SPSS file"),
    "empty.csv": ("", "the file is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_description_is_refused_with_what_to_do(name: str, tmp_path: Path):
    content, told = BAD[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(SpecError) as refused:
        describe(tmp_path / name)
    assert told in str(refused.value) and name in str(refused.value)


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "absent.json", tmp_path / "nul\0.json"):
        with pytest.raises(SpecError, match="regular file|No such file|not a path"):
            describe(path)


def test_of_several_tables_the_one_that_is_named_is_taken(tmp_path: Path):
    schemas = [{"name": name, "schema": {"fields": [{"name": f"{name}1", "type": "boolean"}]}} for name in "ab"]
    (tmp_path / "two.json").write_text(json.dumps({"resources": schemas}))
    assert describe(tmp_path / "two.json", "b").variables[0].column == "b1"
