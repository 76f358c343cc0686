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
        (counts["count"] - truth).abs() <= 8 * counts["error"]
    ).all()  # noise by Laplace is further off once in 80,000 times
    assert counts.loc["west", "high"] < 0.8 * records["w"].sum() * (records["region"] == "west").mean()  # not so many records
    answered = steps("table", folder, "region", "--json").json
    assert answered["of"] == "people of the population" and abs(answered["rows"] / records["w"].sum() - 1) < 0.05
    with open(folder / "margins.csv", encoding="utf-8", newline="") as file:
        margins = {row["category"]: float(row["estimate"]) for row in csv.DictReader(file) if row["attribute"] == "region"}
    assert margins["north"] == pytest.approx(counts.loc["north", "count"], rel=0.05)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "People of the population, estimated" in page and "every synthetic row stands for 10 people" in page
    assert "w = 7 * w" in page and "each times 7" in page  # whoever follows the page has these intervals too
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
