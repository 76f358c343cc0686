"""Analyses on the command line: told by the plan, refused before anything is read or charged, and what they would need."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from schemas.budget import parse_nanos
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import RELEASE, Small
from tests.flows.test_release_flow import artifacts, last_flow_run

PAIRS = RELEASE.replace(
    "{decomposition: tree, order: [region], sets: {count: 2}}",
    "{decomposition: pairs, pairs: all, sets: {count: 3, budget: shared}}",
)
ASKED = """analyses:
  - [working, age]
  - {table: [region, age], within: 50%}
  - working ~ age + region
"""
FEWER = ("working ~ age + region", "region × age", "working × age")


def ask(small: Small, more: str = ASKED, epsilon: str = "0.5", name: str = "small-1") -> Path:
    dataset = (small.folder / "dataset.yaml").read_text()
    (small.folder / "dataset.yaml").write_text(dataset.replace("expected_rows: 1000000", "expected_rows: 2000"))
    return small.write(name=name, epsilon=epsilon, more=more, release=PAIRS)


def test_the_plan_tells_of_every_analysis_and_reads_no_data(small: Small, steps):
    ask(small)
    (small.folder / "records.parquet").unlink()
    said = steps("plan", small.release, "--json").json
    assert sorted(each["name"] for each in said["analyses"]) == sorted(FEWER)
    for each in said["analyses"]:
        assert each["measured"] and each["expected_width"] > 0 and 0 < Fraction(each["share"]) <= 1
    assert said["format"] == 3 and said["analyses"][2]["coefficients"]["age"] > 0
    out = steps("plan", small.release).out
    assert "analysis  working × age: " in out and "% of all rows expected in an average cell" in out
    assert "expected in the widest coefficient (logistic) if categories are equally frequent" in out


def test_what_the_rules_make_infinite_is_noted_by_the_plan_and_where_it_is_wanted(small: Small, steps):
    ask(small)
    note = "note      working ~ age + region: by the rules working is always no where region = west"
    assert note in steps("plan", small.release).out
    assert len(steps("plan", small.release, "--json").json["remarks"]) == 1
    wanted = steps("plan", small.release, "--wanted", "working ~ age + region ±9")
    assert note in wanted.out and "is needed" in wanted.out


def test_a_plan_without_analyses_has_no_such_key(small: Small, steps):
    assert "analyses" not in steps("plan", small.release, "--json").json


def test_a_method_that_does_not_measure_it_says_so(small: Small, steps):
    small.write(more=ASKED.replace(", within: 50%", ""), release=PAIRS.replace("pairs, pairs: all", "cascade"))
    said = steps("plan", small.release)
    assert said.code == 0 and said.out.count("not measured") == 3


WRONG = {
    "a name that the domain lacks": ("  - [working, aeg]", "line 8: analyses.0: there is no attribute 'aeg'"),
    "a formula that is none": ("  - [age]\n  - working ~ ~ age", "line 9: analyses.1: formula"),
    "an analysis twice": ("  - [age]\n  - [age]", "line 9: analyses.1: analysis 'age' stands twice"),
    "an unknown key": ("  - {table: [age], withn: 1%}", 'line 8: analyses.0: unknown key "withn"; did you mean "within"?'),
    "no accuracy": ("  - {table: [age], within: much}", "line 8: analyses.0.within: within is a number"),
    "neither table nor model": ("  - {within: 1%}", "line 8: analyses.0: an analysis is a list of attributes, a formula"),
    "both": ("  - {table: [age], model: age ~ 1}", "line 8: analyses.0: an analysis is a list"),
    "a number": ("  - 5", "line 8: analyses.0: an analysis is a list"),
    "a table of numbers": ("  - [5]", "line 8: analyses.0"),
    "an unknown key of a model": ("  - {model: age ~ 1, knd: linear}", 'line 8: analyses.0: unknown key "knd"'),
    "where as a list": ("  - {model: age ~ 1, where: [x]}", "line 8: analyses.0.where"),
}


@pytest.mark.parametrize(("lines", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_at_the_door_with_its_line(small: Small, steps, lines, words):
    small.write(more=f"analyses:\n{lines}\n", release=PAIRS)
    said = steps("plan", small.release)
    assert said.code == 2 and words in said.err.replace("\n", " "), said.err


def test_what_cannot_be_had_is_refused_before_anything_is_read_or_charged(small: Small, steps, monkeypatch):
    """Without Prefect: the stage that plans refuses, and nothing has been sealed or charged."""
    from schemas.errors import SpecError
    from tasks.specs import load_release
    from tasks.stages.plan import plan

    ask(small, "analyses:\n  - {table: [working, age], within: 4%}\n", epsilon="0.05")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    (small.folder / "records.parquet").unlink()
    home = Home(small.home)
    with pytest.raises(SpecError, match=r"± 4% is asked and ± .*% is to be expected. ε = 0\.[0-9]+ would do"):
        plan(home, load_release(small.release))
    assert open_ledger(home).account("small-people").charged == 0
    assert [entry.kind for entry in open_ledger(home).entries()] == ["grant"]
    said = steps("plan", small.release)
    assert said.code == 2 and f"{small.release}, line 8: " in said.err and "would do" in said.err


def test_the_budget_that_would_do_does(small: Small, steps):
    ask(small, "analyses:\n  - {table: [working, age], within: 4%}\n", epsilon="0.05")
    needed = steps("plan", small.release).err.split("ε = ")[-1].split(" ")[0]
    ask(small, "analyses:\n  - {table: [working, age], within: 4%}\n", epsilon=needed)
    assert steps("plan", small.release).code == 0


def test_what_is_wanted_is_answered_in_one_line_and_as_json(small: Small, steps):
    ask(small, "")
    (small.folder / "records.parquet").unlink()
    said = steps("plan", small.release, "--wanted", "working by age ±4%")
    answer = steps("plan", small.release, "--wanted", "working by age ±4%", "--json").json
    assert said.code == 0 and len(said.out.splitlines()) == 1
    assert f"ε = {answer['epsilon_needed']} is needed" in said.out
    assert answer["rho_needed"] is None and 0.03 < answer["expected_width"] <= 0.04
    assert parse_nanos(answer["epsilon_needed"]) > 0
    ask(small, "analyses:\n  - {table: [working, age], within: 4%}\n", epsilon=answer["epsilon_needed"])
    assert steps("plan", small.release).code == 0


def test_what_is_wanted_in_rho_is_answered_in_rho(small: Small, steps):
    release = PAIRS.replace("{epsilon: EPSILON}", "{rho: 0.02, delta: 1e-9}")
    small.write(release=release)
    answer = steps("plan", small.release, "--wanted", "working ~ age ±0.1", "--json").json
    assert answer["measure"] == "zcdp" and answer["delta"] == "1e-9"
    assert float(answer["rho_needed"]) > 0 and float(answer["epsilon_needed"]) > float(answer["rho_needed"])
    assert "ρ = " in steps("plan", small.release, "--wanted", "working ~ age ±0.1").out


@pytest.mark.parametrize("wanted", ["working by aeg ±1%", "working by age", "working by age ±0.001%"])
def test_what_cannot_be_wanted_ends_with_2(small: Small, steps, wanted):
    ask(small, "")
    said = steps("plan", small.release, "--wanted", wanted)
    assert said.code == 2 and said.err.startswith("steps: ")


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.whole
def test_a_run_shows_them_in_the_ui_and_publishes_them(small: Small, steps):
    ask(small, name="asked-1")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    said = steps("run", small.release, "--json")
    assert said.code == 0, said.err
    assert artifacts(last_flow_run().id)["analyses-asked-1"] == "table"
    assert steps("verify", said.json["folder"]).code == 0
    again = steps("run", small.release, "--json").json
    assert not again["charged"] and again["folder"] == said.json["folder"]
