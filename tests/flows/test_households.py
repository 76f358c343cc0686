"""Linked tables through the real stages: what is charged, what comes out, what a bundle's user and an outsider see of it."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes
from tasks.answers.bundle import read_bundle
from tests.flows.conftest import steps_in
from tests.flows.small import Small

RELEASE = """name: homes-1
dataset: dataset.yaml
source: {household: households.csv, person: persons.parquet}
privacy: {epsilon: 8.0}
formats: [parquet, csv]
analyses: [[n_spouse], [relation, sex], "n_person ~ tenure"]
method: {decomposition: households, sets: {count: 3, budget: shared}}
"""
DERIVED = "    derived: [{name: schooled, from: education, by: {low: 'no', middle: 'yes', high: 'yes'}}]\n"
GRANT = ("budget", "grant", "homes-2026", "10", "--why", "test", "--unit", "household")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("homes")
    household, person = homes(600, SeededRandomness(6))
    household.to_csv(folder / "households.csv", index=False)
    person.to_parquet(folder / "persons.parquet", index=False)
    (folder / "dataset.yaml").write_text(dataset(600) + DERIVED)
    (folder / "release.yaml").write_text(RELEASE)
    return folder


def asked(place: Path, *words: str, code: int = 0) -> dict:
    said = steps_in(Small(place))(*words, "--json")
    assert said.code == code, said.err
    return said.json


@pytest.mark.whole
def test_without_a_key_of_persons_it_is_said_that_two_households_of_one_cannot_be_seen(place, tmp_path):
    """With the key somebody in two households is refused; without it nobody can know, and nothing is refused."""
    person, household = pd.read_parquet(place / "persons.parquet"), pd.read_csv(place / "households.csv")
    twice = person[(person["relation"] == "other") & (person["hid"] != household["hid"][0])].head(1)
    elsewhere = pd.concat([person, twice.assign(hid=household["hid"][0])])
    household.to_csv(tmp_path / "households.csv", index=False)
    said, path = {}, str(tmp_path / "release.yaml")
    (tmp_path / "release.yaml").write_text(RELEASE)
    for key in ("    key: pid\n", "    ignore: [pid]\n"):
        (tmp_path / "dataset.yaml").write_text(dataset(600).replace("    key: pid\n", key))
        person.to_parquet(tmp_path / "persons.parquet", index=False)
        told = [asked(tmp_path, command, path).get("remarks", []) for command in ("plan", "validate")]
        elsewhere.to_parquet(tmp_path / "persons.parquet", index=False)
        said[key.split(":")[0].strip()] = (*told, steps_in(Small(tmp_path))("validate", path))
    assert said["key"][:2] == ([], []) and said["key"][2].code == 4
    planned, validated, found = said["ignore"]
    assert planned == validated and "stands in two households, or twice in one, cannot be seen" in planned[0]
    assert found.code == 0 and "note      persons have no key" in found.out
    assert "note" in steps_in(Small(tmp_path))("plan", path).out


@pytest.mark.slow
def test_linked_tables_are_released_verified_and_asked(place):
    asked(place, *GRANT)
    person = pd.read_parquet(place / "persons.parquet")
    with_one_more = pd.concat([person, *(person[:1].assign(pid=90_000 + i, relation="other") for i in range(8))])
    with_one_more.to_parquet(place / "persons.parquet", index=False)
    asked(place, "run", str(place / "release.yaml"), code=4)  # one person too many: met at the door
    assert asked(place, "budget", "show", "homes-2026")["charged"] == "0"
    person.to_parquet(place / "persons.parquet", index=False)

    released = asked(place, "run", str(place / "release.yaml"))
    assert released["charged"] and released["epsilon"] == "8"
    folder = Path(released["folder"])
    verified = asked(place, "verify", str(folder), "--recompute")
    follows = verified["recomputed"]["files"]
    assert verified["ok"] and follows["person-2.parquet"] and follows["household-1.parquet"]

    for number in (1, 2):
        household, found = (pq.read_table(folder / f"{kind}-{number}.parquet").to_pandas() for kind in ("household", "person"))
        assert set(found.household) == set(household.household)
        assert (found[found.relation == "reference"].groupby("household").size() == 1).all()
        assert len(pd.read_csv(folder / f"person-{number}.csv")) == len(found)
    page = (folder / "index.html").read_text()
    assert "those of all of its at most 8 persons" in page and "Households decide how many members there are" in page
    assert "Every set is three tables." in page and "<dt>Households, estimated</dt>" in page and "of other members" in page
    codebook = pd.read_csv(folder / "codebook.csv").set_index(["attribute", "category"])
    assert pd.isna(codebook.loc[("relation", "reference"), "code"]) and codebook.loc[("relation", "spouse"), "code"] == 0
    assert codebook.loc[("relation", "spouse"), "counted"] == "members other than the reference person"
    assert codebook.loc[("tenure", "owned"), "counted"] == "households"
    rules = ["never relation = reference or spouse with age below 10", "always age < reference_age where relation = child",
             "always 1 + n_spouse + n_child <= n_person"]  # fmt: skip
    assert codebook[codebook["kind"] == "rule"].index.get_level_values("category").tolist() == rules
    assert all(html.escape(rule) in (folder / "codebook.html").read_text() for rule in rules)
    assert "their persons stand in linked tables, with 5 attributes" in (folder / "README.txt").read_text()
    asked(place, "catalogue", str(place / "catalogue"))
    [listed] = json.loads((place / "catalogue" / "catalogue.json").read_bytes())["releases"]
    assert {"tenure", "n_child", "relation", "education"} <= set(listed["attributes"])
    households, persons, model = json.loads((folder / "manifest.json").read_bytes())["analyses"]
    assert (
        "not known to cover" in page
        and "of all persons" in page
        and not any(each["honest"] for each in (households, persons, model))
    )
    assert all(each["measured"] and each["expected_width"] for each in (households, persons, model))
    shares = [((each.relation == "child") & (each.sex == "male")).mean() for each in read_bundle(folder).persons]
    told = next(each for each in persons["estimates"] if each["name"] == "relation = child, sex = male")
    assert told["estimate"] == pytest.approx(sum(shares) / 3, rel=1e-4)
    evaluated = sorted(path.name for path in (place / "home" / "confidential" / "homes-1").glob("*.html"))
    assert evaluated == ["evaluation-members.html", "evaluation.html", "validation.html"]
    said = [(place / "home" / "confidential" / "homes-1" / name).read_text(encoding="utf-8") for name in evaluated[:2]]
    assert "original members of households beside the reference person; " in said[0] and "original households; " in said[1]

    bundle = read_bundle(folder)
    assert len(bundle.persons) == len(bundle.households) == 3 and "n_child" in bundle.frames[0]
    assert len(bundle.fit("age ~ relation + tenure")) == 6 and len(bundle.table("schooled", "relation")) == 8
    for answer in (bundle.fit("age ~ relation + tenure"), bundle.table("schooled", "relation")):
        assert "alike" in " ".join(answer.document["warnings"]) and "W is 8 times" in " ".join(answer.notes)
    assert "it fits household rows" in (folder / "analysis.R").read_text()
    assert (found.schooled == found.education.map({"low": "no", "middle": "yes", "high": "yes"})).all()
    assert len((by_sex := asked(place, "table", str(folder), "relation", "sex"))["cells"]) == 8 and by_sex["of"] == "persons"
    assert asked(place, "table", str(folder), "tenure", "n_child")["of"] == "households"
    package = json.loads((folder / "datapackage.json").read_bytes())
    columns = {each["path"]: [field["name"] for field in each["schema"]["fields"]] for each in package["resources"]}
    assert columns["person-1.csv"][-2:] == ["education", "schooled"]
    [made] = bundle.sample_linked(rows=20, sets=1)
    assert len(made["household"]) == 20 == made["person"].household.max()
    more = ("sample", str(folder), "--rows", "300", "--sets", "1", "--where", "tenure=owned", "--out", str(place / "more"))
    assert asked(place, *more)["of"] == "households"
    household, person = (pq.read_table(place / f"more/{kind}-1.parquet").to_pandas() for kind in ("household", "person"))
    assert set(household.tenure) == {"owned"} and set(person.household) == set(household.household) == set(range(1, 301))
    for condition in ("age=20..29", "schooled=yes"):
        assert "whole households are made" in asked(place, "sample", str(folder), "--where", condition, code=2)["error"]
    again = asked(place, "run", str(place / "release.yaml"))
    assert not again["charged"] and again["folder"] == released["folder"]

    tampered = found.assign(household=found.household.iloc[::-1].to_numpy())
    tampered.to_parquet(folder / "person-1.parquet", index=False)
    assert not asked(place, "verify", str(folder), code=5)["ok"]
