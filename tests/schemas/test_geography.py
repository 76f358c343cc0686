"""Places within places in dataset.yaml: a tree from a public table; what is no tree is met at the door, with its line."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain
from steps_engine.domain.places import places_of
from tasks.publishing.bundle import domain_bytes, read_domain
from tasks.publishing.said import rule_rows

PLACES = "region,county,tract\nN,n1,t1\nS,s1,t2\nN,n1,t3\nN,n2,t4\n"
GEOGRAPHY = "{levels: [region, county, tract], table: places.csv}"


def dataset(folder: Path, places: str = PLACES, geography: str = GEOGRAPHY, more: str = "", attribute: str = "") -> Path:
    (folder / "places.csv").write_text(places)
    file = folder / "dataset.yaml"
    file.write_text(
        f"name: d\npopulation: p\nattributes:\n  - name: tract\n    geography: {geography}\n{attribute}"
        f"  - {{name: sex, kind: categorical, categories: [m, f]}}\n{more}"
    )
    return file


def test_places_stand_in_the_order_of_their_tree_and_levels_follow_from_them(tmp_path):
    of = load_domain(dataset(tmp_path))
    assert of.attributes[0].labels == ("t1", "t3", "t4", "t2") and of.sizes == (4, 2)
    geography = of.attributes[0].geography
    assert geography.labels == (("N", "S"), ("n1", "n2", "s1"), ("t1", "t3", "t4", "t2"))
    assert geography.ancestors == ((0, 0, 0, 1), (0, 0, 1, 2), (0, 1, 2, 3))
    assert [(each.derived.name, each.derived.from_, each.codes) for each in of.followings] == [
        ("region", "tract", (0, 0, 0, 1)),
        ("county", "tract", (0, 0, 1, 2)),
    ]


def test_columns_of_the_table_may_stand_in_any_order(tmp_path):
    other = "tract;region;county\nt1;N;n1\nt2;S;s1\nt3;N;n1\nt4;N;n2\n"
    assert load_domain(dataset(tmp_path, other)) == load_domain(dataset(tmp_path))


def test_a_bundle_holds_the_table_and_reads_it_back(tmp_path):
    of = load_domain(dataset(tmp_path, geography=GEOGRAPHY.replace("}", ", shares: {region: 1/4, county: 25%, tract: 0.5}}")))
    assert of.attributes[0].geography.shares == {"region": Fraction(1, 4), "county": Fraction(1, 4), "tract": Fraction(1, 2)}
    assert read_domain(domain_bytes(of)) == of


def test_a_domain_without_places_is_written_as_before(tmp_path):
    plain = {"name": "tract", "kind": "categorical", "categories": ("a", "b")}
    of = Domain.model_validate({"name": "d", "population": "p", "attributes": (plain,)})
    assert b"geography" not in domain_bytes(of)


def test_a_place_that_is_not_known_lies_in_no_place_of_any_level(tmp_path):
    of = load_domain(dataset(tmp_path, attribute="    missing: category\n"))
    assert of.sizes == (5, 2) and [each.codes[-1] for each in of.followings] == [None, None]
    assert [each.attribute.labels for each in of.followings] == [("N", "S", "(missing)"), ("n1", "n2", "s1", "(missing)")]
    assert read_domain(domain_bytes(of)) == of
    places = places_of(of)
    assert places.sizes == (1, 3, 4, 5) and [places.within(level, level - 1)[-1] for level in (1, 2, 3)] == [0, 2, 3]


def test_a_rule_may_name_places_by_any_level(tmp_path):
    rules = "rules:\n  - never: {tract: t3, sex: m}\n  - never: {county: [n2, s1], sex: f}\n  - never: {sex: f, region: [S, null]}\n"
    of = load_domain(dataset(tmp_path, attribute="    missing: category\n", more=rules))
    assert of.forbidden == ({0: (1,), 1: (0,)}, {0: (2, 3), 1: (1,)}, {0: (3, 4), 1: (1,)})
    assert [row["words"] for row in rule_rows(of)][1:] == [
        "never county = n2 or s1 with sex = f",
        "never region = S or (missing) with sex = f",
    ]


BAD_TABLES = {
    "two parents": (PLACES + "S,n2,t5\n", "line 6: county 'n2' lies in region 'N' and in 'S'"),
    "a tract in two counties": (PLACES + "N,n2,t1\n", "line 6: tract 't1' lies in county 'n1' and in 'n2'"),
    "a tract twice": (PLACES + "N,n1,t1\n", "line 6: tract 't1' stands twice"),
    "an empty cell": (PLACES + "N,,t5\n", "line 6: 2 of 3 values; a line has one for each level"),
    "a line too short": (PLACES + "N,t5\n", "line 6: 2 of 3 values"),
    "another column": ("region,town,tract\nN,n1,t1\n", "its columns are region, town, tract; write one for each level"),
    "no line": ("region,county,tract\n", "0 lines behind its header"),
    "an open quote": ('region,county,tract\n"N,n1,t1\n', "not readable as CSV"),
}


@pytest.mark.parametrize(("places", "told"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_what_is_no_tree_is_refused_with_its_line(tmp_path, places, told):
    with pytest.raises(SpecError) as refused:
        load_domain(dataset(tmp_path, places))
    assert "places.csv" in str(refused.value) and told in str(refused.value)


BAD_SPECS = {
    "no file": ({"geography": GEOGRAPHY.replace("places.csv", "none.csv")}, "line 5"),
    "one level": ({"geography": "{levels: [tract], table: places.csv}"}, "line 5: name at least two levels"),
    "another name": (
        {"geography": "{levels: [region, county, place], table: places.csv}", "places": PLACES.replace("tract", "place")},
        "the last level is the attribute itself: 'tract'",
    ),
    "a level like an attribute": (
        {"geography": "{levels: [sex, county, tract], table: places.csv}", "places": PLACES.replace("region", "sex")},
        "'sex' stands twice",
    ),
    "a level like a derived attribute": (
        {"more": "derived:\n  - {name: County, from: sex, by: {m: a, f: b}}\n"},
        "'county' stands twice",
    ),
    "a level that says whose row it is": ({"more": "unit: {column: county}\n"}, "it cannot be a level of places"),
    "a level twice": ({"geography": "{levels: [region, region, tract], table: places.csv}"}, "places.csv: its columns are"),
    "shares of other levels": ({"geography": GEOGRAPHY.replace("}", ", shares: {region: 1}}")}, "give every level a share"),
    "shares that do not sum to 1": (
        {"geography": GEOGRAPHY.replace("}", ", shares: {region: 1/2, county: 1/2, tract: 1/2}}")},
        "give every level a share above 0, which sum to 1",
    ),
    "categories beside": ({"attribute": "    categories: [t1]\n"}, "the places of tract are those of its geography's table"),
    "a place called as one that is not known": (
        {"attribute": "    missing: category\n", "places": PLACES + "N,(missing),t5\n"},
        "a place is called '(missing)', as one not known",
    ),
    "two levels in a rule": (
        {"more": "rules:\n  - never: {county: n1, region: N, sex: m}\n"},
        "county and region are levels of one place; name one of them",
    ),
    "a rule of a place that is none": (
        {"more": "rules:\n  - never: {county: n9, sex: m}\n"},
        "county has no category 'n9'; it has n1, n2, s1",
    ),
    "a rule of a place not known, where all are": (
        {"more": "rules:\n  - never: {county: null, sex: m}\n"},
        "county has no missing category",
    ),
    "two geographies": (
        {"attribute": "  - name: place\n    geography: {levels: [province, district, place], table: others.csv}\n"},
        "two attributes have a geography",
    ),
}


@pytest.mark.parametrize(("asked", "told"), BAD_SPECS.values(), ids=BAD_SPECS)
def test_what_a_geography_cannot_say_is_refused(tmp_path, asked, told):
    (tmp_path / "others.csv").write_text("province,district,place\nA,a,p1\n")
    with pytest.raises(SpecError) as refused:
        load_domain(dataset(tmp_path, **asked))
    assert told in str(refused.value) and "dataset.yaml, line" in str(refused.value) or "places.csv" in str(refused.value)
