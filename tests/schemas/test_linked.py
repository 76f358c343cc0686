"""Linked tables as they are written: what follows from them, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain
from steps_engine.studies.homes import dataset
from tasks.publishing.bundle import domain_bytes, read_domain
from tasks.specs import load_release

RELEASE = """name: homes
dataset: dataset.yaml
source: {household: h.csv, person: p.csv}
privacy: {epsilon: 1.0}
"""


def loaded(tmp_path: Path, text: str) -> Domain:
    (tmp_path / "dataset.yaml").write_text(text)
    return load_domain(tmp_path / "dataset.yaml")


@pytest.fixture
def homes(tmp_path) -> Domain:
    return loaded(tmp_path, dataset(4000))


def test_a_household_row_has_its_composition_and_its_reference_person(homes):
    assert homes.names == (
        *("tenure", "region", "n_person", "n_spouse", "n_child"),
        *("reference_sex", "reference_age", "reference_education"),
    )  # fmt: skip
    assert homes.counted.names[len(homes.names) :] == ("relation", "sex", "age", "education")
    assert homes.counted.attributes[-4].labels == ("spouse", "child", "other")  # nobody else is the reference person
    assert (homes.unit.who, homes.unit.rows_per_person, homes.counted.unit.rows_per_person) == ("household", 1, 7)


def test_what_follows_is_not_written(homes):
    written = homes.model_dump()
    assert {"attributes", "rules", "unit"}.isdisjoint(written) and "tables" in written
    again = read_domain(domain_bytes(homes))
    assert again == homes and again.counted.zeros == homes.counted.zeros


def test_a_dataset_of_one_table_says_nothing_of_others():
    plain = Domain.model_validate(
        {"name": "d", "population": "p", "attributes": ({"name": "a", "kind": "integer", "bounds": (0, 1)},)}
    )
    assert "tables" not in plain.model_dump() and plain.counted is plain


def test_a_comparison_within_a_household_holds_for_those_it_names(homes):
    said = [rule.words for rule in homes.counted.rules]
    assert "never relation = child with age from 20 and below 30 with reference_age from 0 and below 30" in said
    assert "never relation = spouse with age below 10" in said  # and of reference persons:
    assert "never reference_age below 10" in [rule.words for rule in homes.rules]


def test_a_rule_of_persons_says_whom_it_is_about(homes):
    assert homes.tables.person.rules[-1].words == "always age < reference_age where relation = child"


def test_numbers_of_members_add_up(homes):
    """With 1 spouse and 2 children there are at least 4 persons; the rest is `other`."""
    codes = {homes.index("n_person"): 2, homes.index("n_spouse"): 1, homes.index("n_child"): 2}
    assert any(all(code in zero.get(j, ()) for j, code in codes.items()) for zero in homes.forbidden)
    enough = codes | {homes.index("n_person"): 3}
    assert not any(all(enough.get(j) in allowed for j, allowed in zero.items()) for zero in homes.forbidden)


def test_what_files_say_of_persons_is_read(tmp_path):
    """How values lie within bins; the name of a place's file is read too, and then refused: a household lies in a place."""
    (tmp_path / "within.csv").write_text("value,weight\n" + "".join(f"{age},3\n" for age in range(0, 100, 5)))
    age = "bounds: [0, 99], bins: 10"
    text = dataset(4000)
    assert age in text
    found = loaded(tmp_path, text.replace(age, f"{age}, within: {{weights: within.csv}}"))
    assert found.tables.person.attribute("age").within == found.attributes[found.index("reference_age")].within is not None
    (tmp_path / "places.csv").write_text("land,sex\na,b\na,c\n")
    places = "geography: {levels: [land, sex], table: places.csv}"
    with pytest.raises(SpecError, match="line [0-9]+.*one attribute of households has one"):
        loaded(tmp_path, text.replace("kind: categorical, categories: [female, male]", f"kind: categorical, {places}"))


WRONG = {
    "no such category": ("{{relation: reference}}", "{{relation: boss}}", "has no category 'boss'"),
    "no such attribute": ("kinds: relation", "kinds: relatoin", "did you mean 'relation'"),
    "kinds by age": ("kinds: relation", "kinds: age", "it needs named categories"),
    "one person": ("at_most: 8", "at_most: 1", "at least 2; found 1"),
    "a kind that is none": ("{{spouse: 1, child: 5}}", "{{aunt: 1}}", "there is no kind 'aunt'"),
    "a name in both": ("{{name: sex,", "{{name: tenure,", "'tenure' stands in both tables"),
    "the composition's name": ("{{name: region,", "{{name: n_person,", "'n_person' stands in both tables"),
    "a rule of nobody": ("age < reference_age", "age < reference_size", "reference_size"),
    "a rule of other bins": ("age < reference_age", "age < reference_education", "what is compared is of one kind"),
    "a condition that is none": ("when: {{relation: child}}", "when: {{relation: aunt}}", "no category 'aunt'"),
    "the key released": ("key: hid", "key: tenure", "tells households apart"),
    "two tables of persons": ("parent: household", "parent: person", "household"),
    "attributes beside": (
        "expected_rows: {households}",
        "expected_rows: 5\nattributes: []\nignore: [x]",
        "ignore stands in each",
    ),
    "rules beside": ("expected_rows: {households}", "expected_rows: 5\nunit: {{who: dog}}", "the household is the unit"),
    "derived of nothing": (
        "    parent: household",
        "    derived: [{{name: band, from: agee, by: {{a: b}}}}]\n    parent: household",
        "there is no attribute 'agee'; did you mean 'age'?",
    ),
    "derived of half": (
        "    key: hid",
        "    derived: [{{name: owns, from: tenure, by: {{owned: x}}}}]\n    key: hid",
        "nothing is said of 'rented' of tenure",
    ),
    "derived twice": (
        "    key: hid",
        "    derived: [{{name: sex, from: tenure, by: {{owned: x, rented: y, other: z}}}}]\n    key: hid",
        "'sex' stands in both tables",
    ),
    "the key's name": ("{{name: region,", "{{name: person,", "'person' is what a key"),
    "the key's name, of persons": ("{{name: sex,", "{{name: Household,", "'Household' is what a key"),
    "the column of parts": ("{{name: region,", "{{name: rows_of,", "tell households from persons"),
    "as draws are named": ("{{name: region,", '{{name: "person: sex",', "as what is measured of persons"),
    "upper and lower case": ("{{name: region,", "{{name: Sex,", "upper and lower case count as the same"),
    "the reference person's name": ("{{name: region,", "{{name: Reference_sex,", "upper and lower case count as the same"),
    "two places of households": (
        "{{name: region, kind: categorical, categories: [north, south, east, west]}}",
        "{{name: region, kind: categorical, geography: {{levels: [land, region], table: [[a, b], [a, c]]}}}}\n"
        "      - {{name: home, kind: categorical, geography: {{levels: [part, home], table: [[a, b], [a, c]]}}}}",
        "home has a geography; of linked tables one attribute of households has one",
    ),
    "a level called as an attribute": (
        "{{name: region, kind: categorical, categories: [north, south, east, west]}}",
        "{{name: region, kind: categorical, geography: {{levels: [Sex, region], table: [[a, b], [a, c]]}}}}",
        "stands in both tables",
    ),
    "a level called as a key": (
        "{{name: region, kind: categorical, categories: [north, south, east, west]}}",
        "{{name: region, kind: categorical, geography: {{levels: [person, region], table: [[a, b], [a, c]]}}}}",
        "'person' is what a key",
    ),
    "places of persons": (
        "{{name: sex, kind: categorical, categories: [female, male]}}",
        "{{name: sex, kind: categorical, geography: {{levels: [land, sex], table: [[a, b], [a, c]]}}}}",
        "one attribute of households has one",
    ),
    "a kind that names nothing": ("spouse, child, other]", 'spouse, child, "it\'s", other]', "counted by kind"),
    "renamed to nothing": ("    key: hid", "    rename: {{ten: tenur}}\n    key: hid", "did you mean 'tenure'"),
    "ignored though wanted": ("    column: hid", "    ignore: [age]\n    column: hid", "'age' is an attribute"),
    "derived beside": (
        "expected_rows: {households}",
        "expected_rows: 5\nderived: [{{name: a, from: b, by: {{c: d}}}}]",
        "leave this out",
    ),
    "columns renamed": (
        "expected_rows: {households}",
        "expected_rows: 5\nderived: []\nrename: {{a: tenure}}",
        "rename stands in each",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_said_is_refused_with_its_line(name, tmp_path):
    from steps_engine.studies.homes import DATASET

    before, after, words = WRONG[name]
    assert before in DATASET
    with pytest.raises(SpecError, match="line [0-9]+") as refused:
        loaded(tmp_path, DATASET.replace(before, after, 1).format(households=4000, persons=10000))
    assert words in str(refused.value)


def test_too_many_kinds_are_refused(tmp_path):
    kinds = ", ".join(f"k{i}" for i in range(6))
    text = dataset(4000).replace("spouse, child, other", kinds).replace("most: {spouse: 1, child: 5}", "most: {k0: 6}")
    with pytest.raises(SpecError, match="combinations; at most"):
        loaded(tmp_path, text.split("    rules:")[0])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("method: {decomposition: pairs}\n", "decomposition: pairs releases one table"),
        ("analyses: [age ~ tenure]\n", "names 'age', of a person; of persons tables alone can be planned"),
        ("analyses: [agee ~ tenure]\n", "did you mean 'age'"),
        ("analyses: [[tenure, educatoin]]\n", "did you mean 'education'"),
        ("expectations: own.json\n", "one suite for two linked tables"),
        ("expectations: {}\n", "name a suite for household, for person or for both"),
    ],
)
def test_a_release_that_does_not_suit_linked_tables_is_refused_with_its_line(tmp_path, more, words):
    (tmp_path / "dataset.yaml").write_text(dataset(4000))
    (tmp_path / "release.yaml").write_text(RELEASE + more)
    with pytest.raises(SpecError, match="line [0-9]+") as refused:
        load_release(tmp_path / "release.yaml")
    assert words in str(refused.value)


def test_one_source_for_two_tables_is_refused(tmp_path):
    (tmp_path / "dataset.yaml").write_text(dataset(4000))
    (tmp_path / "release.yaml").write_text(RELEASE.replace("{household: h.csv, person: p.csv}", "h.csv"))
    with pytest.raises(SpecError, match="one source for two linked tables"):
        load_release(tmp_path / "release.yaml")


def test_sources_may_hold_a_period_and_auto_takes_the_only_method(tmp_path):
    from steps_engine.methods.planning import make_plan

    (tmp_path / "dataset.yaml").write_text(dataset(4000))
    (tmp_path / "release.yaml").write_text(RELEASE.replace("h.csv", '"h-{year}.csv"'))
    found = load_release(tmp_path / "release.yaml", "2026")
    assert [Path(str(source)).name for source in found.sources] == ["h-2026.csv", "p.csv"]
    plan = make_plan(found)
    assert plan.decomposition == "households" and (plan.at_most, plan.unit, plan.rows_per_person) == (8, "household", 1)
