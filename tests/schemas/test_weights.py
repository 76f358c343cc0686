"""What weights are refused with, and what they go together with."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import load_domain
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


def test_linked_tables_have_no_weights(tmp_path: Path):
    plain = dataset(4000)
    (tmp_path / "dataset.yaml").write_text(plain)
    assert load_domain(tmp_path / "dataset.yaml").weight is None
    (tmp_path / "dataset.yaml").write_text(plain.replace("tables:", WEIGHT + "tables:", 1))
    with pytest.raises(SpecError, match=r"weight.*linked tables cannot be weighted yet; leave one of both out"):
        load_domain(tmp_path / "dataset.yaml")


@pytest.mark.parametrize(
    "privacy", ["{epsilon: 1.0, total: invariant}", "{epsilon: 1.0, neighbours: substitute, total: public}"]
)
def test_an_exact_number_of_rows_is_refused_where_they_have_weights(placed: Path, privacy: str):
    (placed / "release.yaml").write_text(RELEASE.replace("{epsilon: 1.0}", privacy))
    with pytest.raises(SpecError, match="total: estimated"):
        load_release(placed / "release.yaml")
