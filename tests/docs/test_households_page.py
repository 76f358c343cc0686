"""The page about households: its two files are what is loaded and planned."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from steps_engine.methods.planning import make_plan
from tasks.specs import load_release

PAGE = Path("docs/households.md")


def test_the_files_on_the_page_are_planned(tmp_path):
    dataset, release, _, analyses = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "dataset.yaml").write_text(dataset)
    (tmp_path / "release.yaml").write_text(release + analyses)
    plan = make_plan(load_release(tmp_path / "release.yaml"))
    assert (plan.unit, plan.at_most, plan.decomposition) == ("household", 8, "households")
    assert [each.rows_of for each in plan.analyses] == [None, None, "person", "person"]
    assert all(each.measured for each in plan.analyses)


def test_households_in_places_on_the_page_are_planned(tmp_path):
    dataset, release, placed, _ = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    before, _, behind = dataset.partition("tables:\n")
    (tmp_path / "dataset.yaml").write_text(before + placed + "  person:" + behind.partition("  person:")[2])
    (tmp_path / "release.yaml").write_text(release)
    (tmp_path / "places.csv").write_text("region,county,tract\nN,c0,t0\nN,c0,t1\nS,c3,t2\n")
    plan = make_plan(load_release(tmp_path / "release.yaml"))
    assert {"tract", "tract × n_person"} <= {draw.tree for draw in plan.draws} and plan.decomposition == "households"


def test_the_population_on_the_page_can_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", Path(__file__).parents[2].joinpath(PAGE).read_text(), re.DOTALL)[0]
    exec(code.replace("8000", "80"), {})
    assert len(pd.read_csv("households.csv")) == 80
    assert set(pd.read_parquet("persons.parquet").columns) == {"pid", "hid", "relation", "sex", "age", "education"}
