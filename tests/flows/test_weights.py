"""A release of a survey with weights, whole: counted, paid, published with weights, verified, and answered in people."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid
from tasks.answers import read_bundle
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small
from tests.flows.without_prefect import run_stages

DATASET = """
name: survey
population: small-people
expected_rows: 2000
unit: {column: person, rows_per_person: 1}
weight: {column: w, bounds: [2, 60], total: 40000}
attributes:
  - {name: region, kind: categorical, categories: [north, south, west]}
  - {name: working, kind: categorical, categories: ["no", "yes"]}
"""
RELEASE = """
name: survey-1
dataset: dataset.yaml
source: records.parquet
privacy: {epsilon: 8}
method: {decomposition: pairs, sets: {count: 3, budget: shared}}
formats: [parquet, csv]
analyses: [[region, working]]
"""


def surveyed(rows: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    region = rng.choice(["north", "south", "west"], rows, p=[0.6, 0.3, 0.1])
    weight = np.clip(np.where(region == "west", 8, 24) * rng.lognormal(0, 0.4, rows), 2, 60)
    return pd.DataFrame(
        {"region": region, "working": rng.choice(["no", "yes"], rows), "w": weight, "person": np.arange(rows) + 7}
    )


def plain(said: str) -> str:
    return " ".join(said.split("\n"))


@pytest.fixture
def survey(small: Small) -> Small:
    (small.folder / "dataset.yaml").write_text(DATASET)
    small.write(release=RELEASE)
    open_ledger(Home(small.home)).grant("small-people", 16 * 10**9, "a test")
    return small


@pytest.mark.slow
def test_a_weighted_release_counts_people_and_verifies(survey: Small, steps):
    records = surveyed()
    records.to_parquet(survey.folder / "records.parquet", index=False)
    assert "weights   a unit, and a synthetic row, stands for 10 people; one person counts as up to 6 units" in plain(
        steps("plan", survey.release).out
    )
    home = Home(survey.home)
    assert run_stages(home, survey.release)
    folder = home.public / "survey-1"
    assert steps("verify", folder, "--recompute").code == 0
    rows = pq.read_table(folder / "synthetic-1.parquet").to_pandas()
    assert list(rows.columns) == ["region", "working", "w"] and (rows["w"] == 10).all()
    truth = records.groupby("region")["w"].sum()
    table = read_bundle(folder).table("region")
    counts = table.set_index("region")
    assert "people of the population" in table.title
    assert (
        (counts["count"] - truth).abs() <= 8 * counts["standard_error"]
    ).all()  # noise by Laplace is further off once in 80,000 times
    assert counts.loc["west", "high"] < 0.8 * records["w"].sum() * (records["region"] == "west").mean()  # not so many records
    answered = steps("table", folder, "region", "--json").json
    assert answered["of"] == "people of the population" and abs(answered["rows"] / records["w"].sum() - 1) < 0.05
    with open(folder / "margins.csv", encoding="utf-8", newline="") as file:
        margins = {row["category"]: float(row["estimate"]) for row in csv.DictReader(file) if row["attribute"] == "region"}
    assert margins["north"] == pytest.approx(counts.loc["north", "count"], rel=0.05)
    codebook = pd.read_csv(folder / "codebook.csv").set_index(["attribute", "category"])
    assert codebook.loc[("region", "north"), ["estimate", "counted"]].tolist() == [margins["north"], "people of the population"]
    assert codebook.loc[("w", "10"), "kind"] == "weight" and codebook.loc["w", "estimate"].isna().all()
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "People of the population, estimated" in page and "every synthetic row stands for 10 people" in page
    assert "w = 7 * w" in page and "each times 7" in page  # whoever follows the page has these intervals too
    evaluated = (home.confidential / "survey-1" / "evaluation.html").read_text(encoding="utf-8")
    assert (
        "rows that original records stand for, one for 10 people; " in evaluated
    )  # there are 2,000 records, and 4,000 such rows
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["guarantee"]["weight"] == {"highest": "60", "step": "10", "units_per_row": 6, "inflation": "7"}
    assert "7 times what the rows say" in manifest["analyses"][0]["combining"]
    sampled = read_bundle(folder).sample(50, sets=1)[0]
    assert list(sampled.columns) == ["region", "working"]


@pytest.mark.slow
def test_a_weight_out_of_bounds_is_refused_and_nothing_is_charged(survey: Small):
    records = surveyed(200)
    records.loc[17, "w"] = 60.5
    records.to_parquet(survey.folder / "records.parquet", index=False)
    with pytest.raises(DataInvalid) as caught:
        run_stages(Home(survey.home), survey.release)
    assert "60.5" not in str(caught.value)
    assert "charge" not in {entry.kind for entry in open_ledger(Home(survey.home)).entries(release="survey-1")}


COUNTRY = """
name: survey
population: placed-people
expected_rows: 2000
unit: {column: person, rows_per_person: 1}
weight: {column: w, bounds: [2, 60], total: 40000}
attributes:
  - name: tract
    geography: {levels: [region, county, tract], table: places.csv}
  - {name: working, kind: categorical, categories: ["no", "yes"]}
  - {name: age, kind: categorical, categories: [young, middle, old]}
"""
BY_PLACE = (
    RELEASE.replace("epsilon: 8", "rho: 1, delta: 1e-9")
    .replace("decomposition: pairs, ", "")
    .replace("[[region, working]]", "[[county], [region, working]]")
)
PLACES = [(f"{'north' if t < 8 else 'south'}", f"c{t // 4}", f"t{t}") for t in range(16)]


def placed(rows: int = 2000) -> pd.DataFrame:
    """In c0 a record stands for few people, in the last tract nobody lives."""
    rng = np.random.default_rng(5)
    tract = rng.integers(0, 15, rows)
    weight = np.clip(np.where(tract < 4, 8, 24) * rng.lognormal(0, 0.4, rows), 2, 60)
    working = np.where(rng.random(rows) < np.where(tract < 8, 0.3, 0.6), "yes", "no")
    age = rng.choice(["young", "middle", "old"], rows)
    named = [f"t{t}" for t in tract]
    return pd.DataFrame({"tract": named, "working": working, "age": age, "w": weight, "person": np.arange(rows) + 7})


def held(found: pd.DataFrame, truth: pd.Series) -> bool:
    """Within six standard errors, which Gaussian noise leaves once in a billion times."""
    return bool(((found["estimate"] - truth.reindex(found.index, fill_value=0.0)).abs() <= 6 * found["standard_error"]).all())


@pytest.mark.slow
def test_a_weighted_country_counts_people_at_every_level_and_verifies(survey: Small, steps):
    (survey.folder / "dataset.yaml").write_text(COUNTRY)
    (survey.folder / "places.csv").write_text("region,county,tract\n" + "".join(",".join(each) + "\n" for each in PLACES))
    survey.write(release=BY_PLACE)
    open_ledger(Home(survey.home)).grant("placed-people", 4 * 10**9, "a test", measure="zcdp")
    records, lies = placed(), {tract: (region, county) for region, county, tract in PLACES}
    records.to_parquet(survey.folder / "records.parquet", index=False)
    planned = plain(steps("plan", survey.release).out)
    assert "working × county" in planned and "a unit, and a synthetic row, stands for 10 people" in planned
    home = Home(survey.home)
    assert run_stages(home, survey.release)
    folder = home.public / "survey-1"
    assert steps("verify", folder, "--recompute").code == 0
    records = records.assign(region=[lies[t][0] for t in records["tract"]], county=[lies[t][1] for t in records["tract"]])
    listed = pd.read_csv(folder / "places.csv").set_index(["level", "place"])
    codebook = pd.read_csv(folder / "codebook.csv").set_index(["attribute", "category"])
    for level in ("region", "county", "tract"):
        truth, found = records.groupby(level)["w"].sum(), listed.loc[level]
        assert held(found, truth) and not held(found, truth / 10)  # in units it would be other numbers
        assert found["synthetic_mean"].sum() == pytest.approx(records["w"].sum(), rel=0.05)
        answered = steps("table", folder, level, "--json").json
        assert answered["of"] == "people of the population" and answered["source"] == "measured"
        for cell in answered["cells"]:
            said = (cell["count"], cell["low"], cell["high"], cell["standard_error"])
            shown = found.loc[cell[level], ["estimate", "low", "high", "standard_error"]]
            assert said == pytest.approx(tuple(shown), abs=1e-3)
            assert codebook.loc[(level, cell[level]), "estimate"] == shown["estimate"]
        assert codebook.loc[level, "counted"].unique().tolist() == ["people of the population"]
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "People of the middle one" in page and "Rows of the middle one" not in page
    rows = pq.read_table(folder / "synthetic-1.parquet").to_pandas()
    assert set(rows.columns) == {"tract", "working", "age", "region", "county", "w"} and (rows["w"] == 10).all()
    working = steps("table", folder, "region", "working", "--json").json
    truth = records.groupby(["region", "working"])["w"].sum()
    assert all(
        abs(cell["count"] - truth[cell["region"], cell["working"]]) <= 6 * cell["standard_error"] for cell in working["cells"]
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["guarantee"]["weight"]["units_per_row"] == 6
    assert all("7 times what the rows say" in each["combining"] for each in manifest["analyses"])
    assert steps("fit", folder, "working ~ region", "--json").code == 0
    sampled = read_bundle(folder).sample(50, sets=1)[0]
    assert "w" not in sampled.columns and len(sampled) == 50
