"""A census: households with their people, in tracts, counties and regions, through the real stages in one accounted plan."""

from __future__ import annotations

import csv
import html
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes
from tasks.answers.bundle import read_bundle
from tests.flows.conftest import steps_in
from tests.flows.small import Small

HOMES = 3_000
PLACES = [("NNNS"[t // 2], f"c{t // 2}", f"t{t}") for t in range(8)]
RELEASE = """name: census
dataset: dataset.yaml
source: {household: households.csv, person: persons.parquet}
privacy: {epsilon: 9.0}
formats: [parquet, csv]
analyses: [[region, n_spouse], [region, relation], [county, tenure]]
method: {sets: {count: 2, budget: shared}}
"""
GRANT = ("budget", "grant", "homes-2026", "20", "--why", "test", "--unit", "household")
REGION = "      - {name: region, kind: categorical, categories: [north, south, east, west]}\n"
TRACT = (
    "      - {name: tract, missing: category, geography: {levels: [region, county, tract], table: places.csv}}\n"
    "    ignore: [county]\n"
    "    rules:\n      - never: {county: c3, tenure: other}\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Nobody lives in t7; some households are in no known tract; in c3 tenure is never `other`."""
    household, person = homes(HOMES, SeededRandomness(6))
    rng = np.random.default_rng(0)
    tract = rng.choice(7, HOMES)
    household = household.drop(columns="region").assign(tract=[PLACES[t][2] for t in tract])
    household = household.assign(county=[PLACES[t][1] for t in tract])
    household.loc[(tract > 5) & (household["tenure"] == "other"), "tenure"] = "rented"
    household.loc[::30, "tract"] = None
    household.to_csv(tmp_path / "households.csv", index=False)
    person.to_parquet(tmp_path / "persons.parquet", index=False)
    text = dataset(HOMES)
    assert REGION in text
    (tmp_path / "dataset.yaml").write_text(text.replace(REGION, TRACT))
    (tmp_path / "places.csv").write_text("region,county,tract\n" + "".join(",".join(each) + "\n" for each in PLACES))
    (tmp_path / "release.yaml").write_text(RELEASE)
    return tmp_path


def asked(place: Path, *words: object, code: int = 0) -> dict:
    said = steps_in(Small(place))(*words, "--json")
    assert said.code == code, said.err + said.out
    return said.json


def charged(place: Path) -> str:
    return asked(place, "budget", "show", "homes-2026")["charged"]


@pytest.mark.whole
def test_a_place_that_is_not_in_its_table_is_met_at_the_door(place):
    asked(place, *GRANT)
    path = place / "households.csv"
    good = path.read_text()
    path.write_text(good.replace(",t5,", ",t9,", 1))
    refused = steps_in(Small(place))("validate", place / "release.yaml")
    assert refused.code == 4 and "t9" not in refused.out + refused.err
    asked(place, "run", place / "release.yaml", code=4)
    path.write_text(good)
    frame = pd.read_csv(path)
    frame.loc[frame["tract"] == "t6", "tenure"] = "other"  # t6 lies in c3
    frame.to_csv(path, index=False)
    broken = steps_in(Small(place))("validate", place / "release.yaml")
    assert broken.code == 4 and "never county = c3" in html.unescape(Path(broken.err.rpartition("see ")[2].strip()).read_text())
    assert charged(place) == "0"


@pytest.mark.slow
def test_a_census_is_released_verified_and_asked_at_every_level(place):
    asked(place, *GRANT)
    plan = steps_in(Small(place))("plan", place / "release.yaml").out
    for said in ("n_person × county", "person: 3 pairs", "analysis  region × relation"):
        assert said in plan, plan
    released = asked(place, "run", place / "release.yaml")
    assert released["charged"] and charged(place) == "9"
    folder = Path(released["folder"])
    verified = asked(place, "verify", folder, "--recompute")
    follows = verified["recomputed"]["files"]
    assert verified["ok"] and follows["person-2.parquet"] and follows["household-1.parquet"] and follows["places.csv"]

    bundle = read_bundle(folder)
    above = {tract: (region, county) for region, county, tract in PLACES}
    for rows, household, person in zip(bundle.frames, bundle.households, bundle.persons, strict=True):
        assert [*household] == ["household", "tenure", "tract", "region", "county"]
        known = household[household["tract"].notna()]
        assert all(above[row.tract] == (row.region, row.county) for row in known.itertuples())
        assert household["region"].isna().equals(household["tract"].isna()) and household["tract"].isna().any()
        assert not ((household["county"] == "c3") & (household["tenure"] == "other")).any()
        persons = household.merge(person, on="household").groupby(["region", "county", "tract"], observed=True).size()
        wanted = rows.groupby(["region", "county", "tract"], observed=True)["n_person"].sum()
        assert persons.equals(wanted.astype(persons.dtype).rename(None))
        children = person.merge(household, on="household").query("relation == 'child'").groupby("tract", observed=True).size()
        assert children.to_dict() == {k: v for k, v in rows.groupby("tract", observed=True)["n_child"].sum().items() if v}

    with (folder / "places.csv").open(newline="") as file:
        listed = {(row["level"], row["place"]): row for row in csv.DictReader(file)}
    assert len(listed) == 3 + 5 + 9 and listed["tract", "t7"]["within"] == "c3"
    for level, number in (("region", 3), ("county", 5), ("tract", 9)):
        told = asked(place, "table", folder, level)
        assert told["source"] == "measured" and len(told["cells"]) == number and told["of"] == "households", level
        assert all(abs(cell["count"] - float(listed[level, cell[level]]["estimate"])) < 1e-3 for cell in told["cells"])
    assert asked(place, "table", folder, "region", "n_person")["source"] == "measured"
    by_kind = asked(place, "table", folder, "region", "relation")
    assert by_kind["of"] == "persons" and len(by_kind["cells"]) == 12
    page = (folder / "index.html").read_text()
    assert (
        "places.csv" in page
        and "Households decide how many members there are" in page
        and "by region and no finer place" in page
    )
    results = json.loads((folder / "manifest.json").read_bytes())["analyses"]
    assert [each["measured"] for each in results] == [True] * 3 and not any(each["honest"] for each in results)
    confidential = place / "home" / "confidential" / "census"
    assert "lie in another tract" in (confidential / "evaluation.html").read_text()
    assert len(bundle.fit("age ~ region + tenure")) == 4  # of persons beside their household's places
    package = json.loads((folder / "datapackage.json").read_bytes())
    columns = {each["path"]: [field["name"] for field in each["schema"]["fields"]] for each in package["resources"]}
    assert columns["household-1.csv"] == ["household", "tenure", "tract", "region", "county"]
    more = ("sample", folder, "--rows", "200", "--sets", "1", "--where", "region=S", "--out", place / "more")
    assert asked(place, *more)["of"] == "households"
    sampled = pd.read_parquet(place / "more" / "household-1.parquet")
    assert set(sampled["region"]) == {"S"} and len(sampled) == 200
    again = asked(place, "run", place / "release.yaml")
    assert not again["charged"] and again["folder"] == released["folder"] and charged(place) == "9"
