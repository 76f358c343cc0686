"""A survey of households in places, with weights: counted, paid, published as linked tables with weights, verified, answered."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes
from tasks.answers.bundle import read_bundle
from tasks.stores.home import Home
from tests.flows.conftest import steps_in
from tests.flows.small import Small
from tests.flows.test_census import PLACES, REGION
from tests.flows.without_prefect import run_stages

HOMES, STEP = 2_000, 10
TRACT = "      - {name: tract, geography: {levels: [region, county, tract], table: places.csv}}\n"
WEIGHT = "    weight: {column: w, bounds: [2, 60], total: 40000}\n"
RELEASE = """name: survey
dataset: dataset.yaml
source: {household: households.csv, person: persons.parquet}
privacy: {epsilon: 30.0, why: a test}
formats: [parquet, csv]
analyses: [[region, n_spouse], [relation, sex]]
method: {sets: {count: 2, budget: shared}}
"""
GRANT = ("budget", "grant", "homes-2026", "100", "--why", "test", "--unit", "household")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Large households and those in N weigh less: nobody who leaves weights out is right."""
    household, person = homes(HOMES, SeededRandomness(6))
    rng, size = np.random.default_rng(0), person.groupby("hid").size().reindex(household["hid"]).to_numpy()
    tract = rng.choice(8, HOMES)
    weight = np.where(tract < 6, 14, 34) * np.where(size > 2, 0.6, 1.4) * rng.lognormal(0, 0.2, HOMES)
    household = household.drop(columns="region").assign(tract=[PLACES[t][2] for t in tract])
    household.assign(w=weight.clip(2, 60).round(3)).to_csv(tmp_path / "households.csv", index=False)
    person.to_parquet(tmp_path / "persons.parquet", index=False)
    text = dataset(HOMES).replace(REGION, TRACT).replace("    key: hid\n", "    key: hid\n" + WEIGHT, 1)
    (tmp_path / "dataset.yaml").write_text(text)
    (tmp_path / "places.csv").write_text("region,county,tract\n" + "".join(",".join(each) + "\n" for each in PLACES))
    (tmp_path / "release.yaml").write_text(RELEASE)
    assert steps_in(Small(tmp_path))(*GRANT).code == 0
    return tmp_path


def truths(place: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    household = pd.read_csv(place / "households.csv").merge(pd.read_csv(place / "places.csv"), on="tract")
    return household, pd.read_parquet(place / "persons.parquet").merge(household, on="hid")


@pytest.mark.slow
def test_a_weighted_survey_of_households_is_released_verified_and_asked(place: Path):
    steps = steps_in(Small(place))
    planned = " ".join(steps("plan", place / "release.yaml").out.split())
    assert (
        "a synthetic row, stands for 10 households; one household counts as up to 6 units, its other members together as up to 42; scales"
        in planned
    )
    home = Home(Small(place).home)
    assert run_stages(home, place / "release.yaml")
    folder = home.public / "survey"
    verified = steps("verify", folder, "--recompute", "--json").json
    assert verified["ok"] and verified["recomputed"]["files"]["person-2.parquet"]
    must_tell_of_the_population(place, folder)
    must_be_explained(folder)
    must_agree(folder)
    must_be_evaluated_with_weights(place, home)
    sampled = steps("sample", folder, "--rows", "50", "--out", place / "more")
    said = " ".join(sampled.out.split())
    assert sampled.code == 0 and "households of the population" in said and "people" not in said
    assert "w" not in pq.read_schema(place / "more" / "person-1.parquet").names


def must_tell_of_the_population(place: Path, folder: Path) -> None:
    household, person = truths(place)
    bundle = read_bundle(folder)
    for name in ("region", "county", "tenure"):
        table = bundle.table(name)
        counts = table.set_index(name)
        truth = household.groupby(name)["w"].sum().reindex(counts.index)
        assert "households of the population" in table.title
        assert ((counts["count"] - truth).abs() <= 6 * counts["standard_error"]).all()
    counts = bundle.table("region").set_index("region")
    unweighted = household["w"].mean() * household.groupby("region").size()
    assert (unweighted - counts["count"]).abs()["S"] > 6 * counts.loc["S", "standard_error"]
    table = bundle.table("relation", "region")
    assert "persons of the population" in table.title
    found, truth = table.set_index(["relation", "region"])["count"], person.groupby(["relation", "region"])["w"].sum()
    assert (found - truth).abs().sum() < 0.2 * truth.sum()
    assert bundle.frames[0]["w"].sum() == pytest.approx(household["w"].sum(), rel=0.1)
    assert bundle.persons[0]["w"].sum() == pytest.approx(person["w"].sum(), rel=0.15)


def must_be_evaluated_with_weights(place: Path, home: Home) -> None:
    """The original has a row for every ten households, or persons, that records stand for: not one for every record."""
    household, person = truths(place)
    others = person["w"].sum() - household["w"].sum()
    for name, of, total in (
        ("evaluation", "original households stand for, one for 10 households", household["w"].sum()),
        (
            "evaluation-members",
            "original members of households beside the reference person stand for, one for 10 people",
            others,
        ),
    ):
        page = " ".join((home.confidential / "survey" / f"{name}.html").read_text(encoding="utf-8").split())
        said = re.search(rf"([\d,]+) rows that {of}; 2 synthetic sets", page)
        assert said and int(said[1].replace(",", "")) == pytest.approx(total / 10, rel=0.03)


def must_be_explained(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["guarantee"]["weight"] == {"highest": "60", "step": "10", "units_per_row": 6, "inflation": "7"}
    assert "at most 8 persons, each of a weight of at most 60" in manifest["guarantee"]["sentence"]
    assert any("other households' weights" in each for each in manifest["guarantee"]["unprotected"])
    assert "7 times" in manifest["analyses"][0]["combining"] and "56 times" in manifest["analyses"][1]["combining"]
    page = html.unescape((folder / "index.html").read_text(encoding="utf-8"))
    assert "Households of the population, estimated" in page and "Households of the middle one" in page
    assert "stands for 10 households of the population" in page
    codebook = pd.read_csv(folder / "codebook.csv").set_index(["attribute", "category"])
    assert codebook.loc[("tenure", "owned"), "counted"] == "households of the population"
    assert codebook.loc[("sex", "female"), "counted"] == "members other than the reference person of the population"
    assert codebook.loc[("w", "10"), "kind"] == "weight"
    described = json.loads((folder / "datapackage.json").read_text())
    fields = {each["path"]: [field["name"] for field in each["schema"]["fields"]] for each in described["resources"]}
    for stem in ("synthetic-1", "household-1", "person-1"):
        assert fields[f"{stem}.csv"] == pq.read_schema(folder / f"{stem}.parquet").names and fields[f"{stem}.csv"][-1] == "w"


def must_agree(folder: Path) -> None:
    """Persons of a household weigh what it does, and are as many as its row says."""
    rows, households, persons = (
        pq.read_table(folder / f"{name}-1.parquet").to_pandas() for name in ("synthetic", "household", "person")
    )
    assert set(rows["w"]) == set(households["w"]) == set(persons["w"]) == {float(STEP)}
    assert (persons.groupby("household").size().to_numpy() == rows["n_person"].to_numpy()).all()


@pytest.mark.whole
def test_a_weight_out_of_bounds_is_met_at_the_door_and_nothing_is_charged(place: Path):
    household = pd.read_csv(place / "households.csv")
    household.loc[17, "w"] = 60.5
    household.to_csv(place / "households.csv", index=False)
    steps = steps_in(Small(place))
    refused = steps("run", place / "release.yaml")
    assert refused.code == 4 and "60.5" not in refused.out + refused.err
    assert steps("budget", "show", "homes-2026", "--json").json["charged"] == "0"
