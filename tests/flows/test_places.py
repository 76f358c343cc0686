"""A country from its files to answers: places within places, planned, run, verified, evaluated and asked at every level."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RELEASE = """name: country
dataset: dataset.yaml
source: people.parquet
privacy: {rho: 0.1, delta: 1e-9}
method: {sets: {count: 2, budget: shared}}
analyses: [[county], [age, region], [region, age, work]]
"""


@pytest.fixture
def country(tmp_path: Path) -> Path:
    """Three levels, one tract without people, some people in no known one, and in c3 nobody works full time; the source has the
    county too, which is ignored.
    """
    tmp_path = tmp_path / "country"
    tmp_path.mkdir()
    rng = np.random.default_rng(0)
    places = [("NNNS"[t // 2], f"c{t // 2}", f"t{t}") for t in range(8)]
    tract = rng.choice(7, 3_000)  # t7 is empty
    frame = pd.DataFrame({"tract": [places[t][2] for t in tract], "county": [places[t][1] for t in tract]})
    frame["age"] = np.array(["young", "old"])[(rng.random(3_000) < np.where(tract > 5, 0.8, 0.3)).astype(int)]
    frame["work"] = np.array(["no", "part", "full"])[rng.integers(0, 3, 3_000)]
    frame.loc[(tract > 5) & (frame["work"] == "full"), "work"] = "no"
    frame.loc[::20, "tract"] = None
    frame.to_parquet(tmp_path / "people.parquet")
    lines = "".join(",".join(place) + "\n" for place in places)
    (tmp_path / "places.csv").write_text("region,county,tract\n" + lines)
    (tmp_path / "dataset.yaml").write_text(
        "name: country\npopulation: people\nexpected_rows: 3000\nignore: [county]\nattributes:\n  - name: tract\n"
        "    missing: category\n    geography: {levels: [region, county, tract], table: places.csv, shares: least_error}\n"
        "  - {name: age, kind: categorical, categories: [young, old]}\n"
        "  - {name: work, kind: categorical, categories: ['no', part, full]}\n"
        "rules:\n  - never: {county: c3, work: full}\n"
    )
    (tmp_path / "release.yaml").write_text(RELEASE)
    return tmp_path


@pytest.mark.slow
def test_a_country_is_released_verified_and_asked_at_every_level(country: Path, steps):
    steps("budget", "grant", "people", "--rho", "1", "--why", "test")
    plan = steps("plan", country / "release.yaml").out
    assert "places" in plan and "age × county" in plan and "analysis  county" in plan
    folder = Path(steps("run", country / "release.yaml", "--json").json["folder"])
    checked = steps("verify", folder, "--recompute").out
    assert "everything holds" in checked
    with (folder / "places.csv").open(newline="") as file:
        listed = {(row["level"], row["place"]): row for row in csv.DictReader(file)}
    assert (
        len(listed) == 3 + 5 + 9
        and listed["county", "(missing)"]["within"] == "(missing)"
        and listed["tract", "t7"]["within"] == "c3"
    )
    empty = {key: float(listed["tract", "t7"][key]) for key in ("estimate", "low", "high")}
    assert abs(empty["estimate"]) < 3 * (empty["high"] - empty["low"]) / 2  # six standard deviations of Gaussian noise
    codebook = pd.read_csv(folder / "codebook.csv")
    of_places = codebook[codebook["attribute"].isin(["region", "county", "tract"])]
    assert all(row.estimate == float(listed[row.attribute, row.category]["estimate"]) for row in of_places.itertuples())
    page = (folder / "index.html").read_text()
    assert "places.csv" in page and "Rows of the middle one" in page
    records = pd.read_parquet(folder / "synthetic-1.parquet")
    assert list(records.columns) == ["tract", "age", "work", "region", "county"]
    assert not ((records["county"] == "c3") & (records["work"] == "full")).any()
    assert records["tract"].isna().any() and (records["tract"].isna() == records["region"].isna()).all()
    for level, number in (("region", 3), ("county", 5), ("tract", 9)):
        told = steps("table", folder, level, "--json").json
        assert told["source"] == "measured" and len(told["cells"]) == number, level
        assert all(abs(cell["count"] - float(listed[level, cell[level]]["estimate"])) < 1e-3 for cell in told["cells"])
    assert steps("table", folder, "age", "--where", "region=S", "--json").json["source"] == "measured"
    assert steps("table", folder, "age", "work", "--where", "region=S", "--json").json["source"] == "measured"
    working = steps("table", folder, "county", "work", "--json").json
    assert {cell["work"] for cell in working["cells"] if cell["county"] == "c3"} == {"no", "part"}
    assert "no category 'Z'" in steps("table", folder, "age", "--where", "region=Z").err


@pytest.mark.whole
def test_a_place_that_is_not_in_its_table_is_met_at_the_door(country: Path, steps):
    steps("budget", "grant", "people", "--rho", "1", "--why", "test")
    frame = pd.read_parquet(country / "people.parquet")
    frame.loc[0, "tract"] = "t9"
    frame.to_parquet(country / "people.parquet")
    refused = steps("validate", country / "release.yaml")
    assert refused.code != 0 and "t9" not in refused.out + refused.err
    page = Path(refused.err.rpartition("see ")[2].strip()).read_text()
    assert "<td>tract</td><td>is a place of its table: t0, " in page and "<code>t9 (1×)</code>" in page
    frame.loc[0, ["tract", "work"]] = ["t6", "full"]  # of c3
    frame.to_parquet(country / "people.parquet")
    broken = steps("validate", country / "release.yaml")
    assert broken.code == 4 and "rule 1" in Path(broken.err.rpartition("see ")[2].strip()).read_text()
    (country / "places.csv").write_text("region,county,tract\nN,c0,t0\nS,c0,t1\n")
    told = steps("plan", country / "release.yaml")
    assert told.code == 2 and "places.csv, line 3: county 'c0' lies in region 'N' and in 'S'" in told.err
    assert steps("budget", "show", "--json").json["accounts"][0]["charged"] == "0"
