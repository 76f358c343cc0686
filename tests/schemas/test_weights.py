"""What weights are refused with, and what they go together with."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain
from steps_engine.studies.homes import dataset
from tasks.specs import load_release

WEIGHT = "weight: {column: w, bounds: [1, 12], total: 40000}\n"
PLACED = (
    "name: d\npopulation: p\nexpected_rows: 8000\n"
    + WEIGHT
    + "attributes:\n"
    + "  - {name: tract, geography: {levels: [region, tract], table: places.csv}}\n"
    + "  - {name: sex, kind: categorical, categories: [f, m]}\n"
)
RELEASE = "name: r\ndataset: dataset.yaml\nsource: r.csv\nprivacy: {epsilon: 1.0}\n"


@pytest.fixture
def placed(tmp_path: Path) -> Path:
    (tmp_path / "places.csv").write_text("region,tract\na,t0\na,t1\nb,t2\n")
    (tmp_path / "dataset.yaml").write_text(PLACED)
    (tmp_path / "release.yaml").write_text(RELEASE)
    return tmp_path


def test_places_within_places_have_weights(placed: Path):
    domain = load_domain(placed / "dataset.yaml")
    assert domain.coarser == ("region",) and domain.weighing.units_per_row == 5


@pytest.mark.parametrize("level", ["region", "tract"])
def test_the_column_of_weights_is_no_level_of_places(placed: Path, level: str):
    (placed / "dataset.yaml").write_text(PLACED.replace("column: w", f"column: {level}"))
    with pytest.raises(SpecError, match=f"'{level}' stands twice: weights are no attribute"):
        load_domain(placed / "dataset.yaml")


IN_TABLE = "    weight: {column: w, bounds: [1, 12], total: 40000}\n"


def linked(folder: Path, weight: str = IN_TABLE, more: str = "") -> Domain:
    plain = dataset(8000).replace("tables:", more + "tables:", 1)
    (folder / "dataset.yaml").write_text(plain.replace("    key: hid\n", "    key: hid\n" + weight, 1))
    return load_domain(folder / "dataset.yaml")


def test_the_weight_of_linked_tables_is_one_of_households_that_their_persons_inherit(tmp_path: Path):
    of = linked(tmp_path)
    assert of.weighing.step == Fraction(12, 5) and of.units_per_person == 5  # mean 5, half of it 2.5
    assert of.counted.weighing.step == of.weighing.step and of.counted.units_per_person == 7 * 5
    assert of.expected_units == round(40_000 / 2.4) and of.counted.expected_units == round(60_000 / 2.4)
    tables = of.tables
    assert of.of_table(tables.household).own_columns == ("hid", "w") and of.of_table(tables.person).own_columns == ("hid",)
    assert "weight" not in of.model_dump() and of.model_dump()["tables"]["household"]["weight"]["column"] == "w"
    assert linked(tmp_path, "").weight is None and "weight" not in linked(tmp_path, "").model_dump()["tables"]["household"]


REFUSED_IN_TABLES = {
    "column: tenure": "tables.household.weight.column: 'tenure' stands twice",
    "column: age": "'age' stands twice: weights are no attribute, nothing derived, in neither table, and no key",
    "column: N_Child": "'N_Child' stands twice",
    "column: hid": "'hid' stands twice",
    "column: pid": "'pid' stands twice",  # the key of persons, which is never released
    "column: w, total: 400": "tables.household.weight.total: 400 households over expected_rows: 8,000 make a mean weight of 0.05",
    "column: Person": "'Person' is what a key of the published tables is called; rename",
    "column: w, step: 0.0095": "tables.household.weight.step: 0.0095 would count a household of weight 12 as 1,264 units, and "
    "up to 8 persons in it as many each; together they may make 10,000. Write a step of at least 0.0096",
    "column: w, step: 13": "tables.household.weight.step: 13 does not fit the bounds",
}


@pytest.mark.parametrize("said", REFUSED_IN_TABLES)
def test_a_weight_of_households_that_does_not_fit_is_refused_with_its_line(tmp_path: Path, said: str):
    with pytest.raises(SpecError) as caught:
        linked(
            tmp_path,
            IN_TABLE.replace("column: w", said) if "total" not in said else f"    weight: {{{said}, bounds: [1, 12]}}\n",
        )
    assert REFUSED_IN_TABLES[said] in str(caught.value) and "dataset.yaml, line 7" in str(caught.value)


def test_a_weight_beside_linked_tables_is_refused_and_so_is_one_of_persons(tmp_path: Path):
    with pytest.raises(SpecError, match=r"line 4: weight: with tables, the weight is one of households: write it in tables"):
        linked(tmp_path, "", WEIGHT)
    text = (tmp_path / "dataset.yaml").read_text().replace(WEIGHT, "").replace("    key: pid\n", "    key: pid\n" + IN_TABLE)
    (tmp_path / "dataset.yaml").write_text(text)
    with pytest.raises(SpecError, match='unknown key "weight"'):
        load_domain(tmp_path / "dataset.yaml")


@pytest.mark.parametrize(
    "privacy", ["{epsilon: 1.0, total: invariant}", "{epsilon: 1.0, neighbours: substitute, total: public}"]
)
def test_an_exact_number_of_rows_is_refused_where_they_have_weights(placed: Path, privacy: str):
    (placed / "release.yaml").write_text(RELEASE.replace("{epsilon: 1.0}", privacy))
    with pytest.raises(SpecError, match="total: estimated"):
        load_release(placed / "release.yaml")


@pytest.mark.parametrize(
    "privacy", ["{epsilon: 1.0, total: invariant}", "{epsilon: 1.0, neighbours: substitute, total: public}"]
)
def test_nor_is_the_number_of_households_known_where_they_have_weights(tmp_path: Path, privacy: str):
    linked(tmp_path)
    source = "source: {household: h.csv, person: p.csv}\n"
    (tmp_path / "release.yaml").write_text(f"name: r\ndataset: dataset.yaml\n{source}privacy: {privacy}\n")
    with pytest.raises(SpecError, match="with weights in the dataset; their sum differs .* that differ in one household"):
        load_release(tmp_path / "release.yaml")
