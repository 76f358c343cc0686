"""What is written can be read again, whatever was described; what cannot be said is a gap, each with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.spec import yaml
from schemas.spec.domain import Domain, load_domain
from tasks.describing.description import TEXT, WHOLE, Category, Description, Variable
from tasks.describing.start import choose, must_be_free, start
from tasks.describing.writing import Choices, dataset_text, release_text
from tasks.specs import load_release

CHOICES = Choices("small", "people", "records.csv")


def described(*variables: Variable, **more) -> Description:
    return Description("codebook", "book.xml", variables, **more)


def domain_of(*variables: Variable, folder: Path = Path(), **more) -> Domain:
    return yaml.validate(Domain, yaml.parse(dataset_text(described(*variables, **more), CHOICES, folder)))


TEXTS = st.text(min_size=1, max_size=20)


@given(st.lists(TEXTS, min_size=1, max_size=5), st.lists(TEXTS, min_size=5, max_size=5), TEXTS)
@pytest.mark.whole
def test_whatever_a_codebook_says_the_file_says_it_or_leaves_a_gap(values: list[str], labels: list[str], words: str):
    categories = tuple(Category(value, label) for value, label in zip(values, labels, strict=False))
    text = dataset_text(described(Variable("x", TEXT, title=words, description=words, categories=categories)), CHOICES, Path())
    document = yaml.parse(text)
    [attribute] = document.data["attributes"]
    if not document.gaps:
        domain = yaml.validate(Domain, document)
        assert domain.attributes[0].categories == tuple(dict.fromkeys(value.strip() for value in values))
    else:
        assert document.gaps == (("attributes", 0, "categories"),) and attribute["categories"] == "TODO"


@pytest.mark.parametrize(
    "value",
    [
        "TODO",
        "no",
        "null",
        "true",
        "1e5",
        "0x1",
        "~",
        ".nan",
        "a: b",
        "a #b",
        "- a",
        "&a",
        "*a",
        "!a",
        "[",
        "2000-01-01",
        "1_000",
        "=x",
        "é",
        "’",
        "%d",
    ],
)
def test_a_category_that_yaml_could_take_for_something_else_stays_what_it_is(value: str):
    domain = domain_of(Variable("x", TEXT, categories=(Category(value), Category("other"))))
    assert domain.attributes[0].categories == (value, "other")


def test_no_text_of_a_codebook_becomes_a_line_of_yaml():
    hostile = "x\npopulation: mine\r\u2028rules: []\x85evil: 1"
    variable = Variable("x", TEXT, remarks=(hostile,), title=hostile, categories=(Category("a", hostile), Category("b")))
    document = yaml.parse(dataset_text(described(variable, title=hostile, remarks=(hostile,)), CHOICES, Path()))
    assert document.data["population"] == "people" and "rules" not in document.data and "evil" not in document.data
    assert yaml.parse(dataset_text(Description("k", hostile, (variable,)), CHOICES, Path())).data["population"] == "people"


def test_names_that_an_attribute_cannot_have_are_renamed_and_the_mapping_is_written():
    columns = ["1st job", "a;b", 'say "x"', "AGE", "age", " blank ", "Straße", "STRASSE"]
    domain = domain_of(*(Variable(column, TEXT, categories=(Category("a"), Category("b"))) for column in columns))
    found = [{new: old for old, new in domain.rename.items()}.get(name, name) for name in domain.names]
    assert found == columns and domain.rename["1st job"] == "v1st job" and domain.rename["age"] == "age_2"


@pytest.mark.whole
def test_thousands_of_categories_are_written_and_too_many_are_a_gap(tmp_path: Path):
    many = tuple(Category(f"{code:05d}", f"municipality {code}") for code in range(2_000))
    domain = domain_of(Variable("place", TEXT, categories=many))
    assert domain.attributes[0].size == 2_000 and domain.attributes[0].label_texts["00007"] == "municipality 7"
    too_many = tuple(Category(str(code)) for code in range(100_001))
    text = dataset_text(described(Variable("place", TEXT, categories=too_many)), CHOICES, tmp_path)
    assert "100,001 categories are described, and at most 100,000 fit" in text and len(text) < 2_000


@pytest.mark.whole
def test_a_spec_that_would_be_too_large_is_refused_before_anything_is_written(tmp_path: Path):
    many = tuple(Category(f"{code:05d}") for code in range(60_000))
    found = described(*(Variable(f"place{n}", TEXT, categories=many) for n in range(4)))
    with pytest.raises(SpecError, match="--only NAME"):
        start(tmp_path / "out", found, CHOICES)
    assert not (tmp_path / "out").exists()


def test_more_variables_than_a_domain_holds_are_refused_with_how_to_choose(tmp_path: Path):
    with pytest.raises(SpecError, match="1,001 variables are described; at most 1,000 fit. Choose: --only"):
        start(tmp_path / "out", described(*(Variable(f"x{n}", TEXT) for n in range(1_001))), CHOICES)


def test_one_sided_bounds_and_bounds_the_wrong_way_round_are_gaps():
    from decimal import Decimal

    text = dataset_text(
        described(Variable("a", WHOLE, low=Decimal(0)), Variable("b", WHOLE, low=Decimal(3), high=Decimal(1))), CHOICES, Path()
    )
    assert len(yaml.parse(text).gaps) == 2 and "# at least 0: " in text


def test_variables_are_chosen_by_name_and_the_others_ignored(tmp_path: Path):
    found = described(
        *(Variable(name, TEXT, categories=(Category("a"), Category("b"))) for name in ("x", "y", "z")), person="z"
    )
    start(tmp_path, found, choose(found, tmp_path, only=("y",), population="folk", epsilon="0.25"))
    domain, release = load_domain(tmp_path / "dataset.yaml"), load_release(tmp_path / "release.yaml")
    assert domain.names == ("y",) and domain.ignore == ("x",) and domain.unit.column == "z" and domain.population == "folk"
    assert release.spec.privacy.epsilon == 250_000_000, "billionths"
    with pytest.raises(SpecError, match="--only names 'w'; book.xml describes x, y, z"):
        start(tmp_path / "other", found, choose(found, tmp_path, only=("w",)))


def test_gaps_of_both_files_are_refused_at_once_each_with_its_line(tmp_path: Path):
    found = described(Variable("x", TEXT), Variable("n", WHOLE), Variable("u"))
    made = start(tmp_path, found, choose(found, tmp_path))
    release = tmp_path / "release.yaml"
    release.write_text(release.read_text().replace("epsilon: 1.0", "epsilon: TODO"))
    with pytest.raises(SpecError) as refused:
        load_release(release)
    told = str(refused.value).split("\n")
    assert len(told) == 1 + len(made.gaps) + 1 and "release.yaml, line 7: privacy.epsilon: still TODO" in told[0]
    lines = (tmp_path / "dataset.yaml").read_text().split("\n")
    for gap, line in zip(made.gaps, told[1:], strict=False):
        assert f"dataset.yaml, line {gap['line']}: {gap['key']}: still TODO; write " in line
        assert lines[gap["line"] - 1].strip().removeprefix("- ").startswith(f"{gap['key'].split('.')[-1]}: TODO")


def test_the_word_in_quotes_is_no_gap():
    assert yaml.parse('a: "TODO"\nb: [TODO]').gaps == () and yaml.parse("a: {b: TODO}").gaps == (("a", "b"),)


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path):
    for name in ("dataset.yaml", "release.yaml"):
        folder = tmp_path / name.split(".")[0]
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / "nowhere")
        with pytest.raises(SpecError, match="is never overwritten"):
            must_be_free(folder)
    with pytest.raises(SpecError, match="is a file"):
        (tmp_path / "plain").write_text("")
        must_be_free(tmp_path / "plain")


def test_both_files_satisfy_the_schemas_that_editors_use(tmp_path: Path):
    import jsonschema
    from ruamel.yaml import YAML

    found = described(Variable("x", TEXT, title="X", categories=(Category("a", "A"), Category("b"))), title="T")
    schemas = Path(__file__).parents[3] / "docs" / "schemas"
    for kind, text in (("dataset", dataset_text(found, CHOICES, tmp_path)), ("release", release_text(CHOICES, tmp_path))):
        jsonschema.validate(YAML(typ="safe").load(text), json.loads((schemas / f"{kind}.schema.json").read_text()))
        assert text.startswith("# yaml-language-server: $schema=")
        assert (tmp_path / text.split("=")[1].split("\n")[0]).resolve() == schemas / f"{kind}.schema.json"
