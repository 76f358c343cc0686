from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import STRANGER, Small, write_records

ROOT = Path(__file__).parents[2]
HEAVY = ("prefect", "great_expectations", "pandas", "pyarrow", "duckdb", "sqlalchemy", "sklearn", "matplotlib", "rich")


def test_help_imports_nothing_heavy():
    code = f"import sys, flows.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    control = code.replace("flows.cli", "flows.cli, pandas")
    assert "pandas" in subprocess.run([sys.executable, "-c", control], capture_output=True, text=True).stdout


def test_home_and_json_stand_before_or_after_the_command(small: Small, steps):
    steps("budget", "grant", "small-people", "2.5", "--why", "a test")
    asked = steps("budget", "show", "small-people", "--json").json
    assert asked == steps("--json", "budget", "show", "small-people").json
    assert asked["population"] == "small-people"
    assert (asked["granted"], asked["charged"], asked["balance"]) == ("2.5", "0", "2.5")


def test_plan_answers_what_scripts_rely_on_and_reads_no_data(small: Small, steps):
    (small.folder / "records.parquet").unlink()
    said = steps("plan", small.release, "--json")
    assert said.code == 0
    assert said.json["cells"] == 25 and said.json["epsilon"] == "0.5" and said.json["balance"] is None
    assert {draw["mechanism"] for draw in said.json["draws"]} == {"two_sided_geometric"}
    assert "region" in steps("plan", small.release).out


def test_a_plan_says_when_the_budget_does_not_cover_it(small: Small, steps):
    for granted, covered, why in (("0", False, "has no grant"), ("0.4", False, "0.4 of 0.4 is left"), ("0.1", True, "")):
        if granted != "0":
            steps("budget", "grant", "small-people", granted, "--why", "a test")
        told, shown = steps("plan", small.release, "--json"), steps("plan", small.release)
        assert told.code == shown.code == 0 and told.json["covered"] is covered
        assert (told.json["why_not_covered"] is None) == covered and why in shown.out
        assert ("budget    does not cover this: " in shown.out) != covered
    steps("budget", "cap", "small-people", "0.2", "--why", "a test")
    assert "where the cap is 0.2" in steps("plan", small.release).out
    assert steps("run", small.release).code == 3, "what the plan says, the run does"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("plan", "dataset.yaml"), "describes a dataset. Give the release.yaml, whose `dataset:` names it"),
        (("plan", "release.yaml", "--period", "2026x"), "period '2026x' is not one: write 2026, 2026q4 or 2026-11"),
        (("verify", ".", "--key", "no.pub"), "no.pub cannot be read: No such file or directory"),
        (("verify", ".", "--key", "release.yaml"), "release.yaml is not a public key"),
    ],
)
def test_mistakes_that_newcomers_make_are_told(small: Small, steps, monkeypatch: pytest.MonkeyPatch, words, told: str):
    monkeypatch.chdir(small.folder)
    said = steps(*words)
    assert said.code == 2 and told in said.err
    assert steps("plan", "release.yaml", "--period", "2026q1").code == 0, "the control"


def test_the_module_is_the_command():
    said = subprocess.run([sys.executable, "-m", "flows.cli", "nothing"], capture_output=True, text=True, cwd=ROOT)
    assert said.returncode == 2 and "No such command" in said.stderr and said.stderr.startswith("Usage: steps")


def test_a_plan_and_a_forecast_before_any_grant_make_no_ledger(small: Small, steps):
    told = steps("plan", small.release, "--json").json
    assert told["balance"] is None and told["covered"] is False and "no grant" in told["why_not_covered"]
    assert not small.home.exists()
    (small.folder / "prefect.yaml").write_text("deployments: []\n")
    assert steps("budget", "forecast", "--deployments", small.folder / "prefect.yaml").code == 0
    assert not (small.home / "ledger.db").exists()
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    assert (small.home / "ledger.db").exists(), "the control"


def test_an_empty_ledger_has_no_accounts_no_entries_and_verifies(small: Small, steps):
    open_ledger(Home(small.home))
    assert steps("budget", "show", "--json").json == {"accounts": []}
    assert steps("budget", "log", "--json").json == {"entries": []}
    assert steps("releases", "--json").json == {"releases": []}
    assert steps("budget", "verify", "--json").json == {"ok": True, "problems": [], "notes": []}


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "0.0000000001", "one", "true", "1e999", ""])
def test_a_grant_of_no_usable_epsilon_is_refused(small: Small, steps, epsilon: str):
    said = steps("budget", "grant", "--why", "a test", "--", "small-people", epsilon)
    assert said.code == 2 and "epsilon" in said.err and not small.home.exists()


@pytest.mark.parametrize(
    "words",
    [["run", "a", "b\x1b[2J"], ["\x1b[2J"], ["--\x1b[2J"], ["data", "\x1b[2J", "x"], ["verify", "x", "--key", "\x1b[2J"]],
)
def test_wrong_words_are_repeated_without_their_control_characters(steps, words: list[str]):
    said = steps(*words)
    assert said.code in (2, 5) and "\\x1b[2J" in said.err + said.out and "\x1b" not in said.err + said.out


@pytest.mark.parametrize("words", [["plan"], ["budget", "grant", "x", "1"], ["nothing"], ["show"], ["data", "other", "x"]])
def test_wrong_usage_ends_with_2(steps, words: list[str]):
    assert steps(*words).code == 2


def test_unknown_names_end_with_2_and_say_where_to_look(small: Small, steps):
    open_ledger(Home(small.home))
    for words in (["budget", "show", "nobody"], ["show", "nothing"], ["approve", "nothing"], ["abandon", "nothing"]):
        said = steps(*words)
        assert said.code == 2 and words[-1] in said.err


def test_a_ledger_of_a_newer_version_is_left_untouched(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    with sqlite3.connect(small.home / "ledger.db") as database:
        database.execute("UPDATE meta SET schema_version = 999")
    said = steps("budget", "show")
    assert said.code == 1 and "newer version" in said.err


def test_data_are_written_as_the_suffix_says(small: Small, steps):
    for name in ("voter.csv", "voter.parquet"):
        said = steps("data", "youth-voter", small.folder / name, "--rows", 50, "--seed", 7, "--json")
        assert said.json["rows"] == 50 and (small.folder / name).stat().st_size > 0
    assert steps("data", "youth-voter", small.folder / "voter.xlsx").code == 2


def test_files_are_compared_without_a_ledger(small: Small, steps):
    other = small.folder / "other.parquet"
    write_records(other, 2_000)
    plain = (small.folder / "dataset.yaml").read_text().replace("column: person, ", "")
    (small.folder / "plain.yaml").write_text(plain)
    said = steps("evaluate", other, other, "--domain", small.folder / "plain.yaml")
    assert said.code == 2 and "not expected person" in said.err
    pq.write_table(pq.read_table(other).drop_columns("person"), other)
    same = steps("evaluate", other, other, "--domain", small.folder / "plain.yaml", "--json").json
    assert same["specks"]["ks"] == 0 and set(same["tvd"]) == {"1", "2", "3"} and same["tvd"]["1"] == 0
    assert set(same["chi_square"]) == {"0.01", "0.05", "0.1"}
    write_records(other, 2_000, region=STRANGER)
    pq.write_table(pq.read_table(other).drop_columns("person"), other)
    assert steps("evaluate", other, other, "--domain", small.folder / "plain.yaml").code == 4


HOSTILE = {
    "code tag": "name: !!python/object/apply:os.system [id]\n",
    "duplicate key": "name: a\nname: b\n",
    "anchor": "name: &a x\ndataset: *a\n",
    "epsilon zero": "EPSILON=0",
    "epsilon negative": "EPSILON=-1",
    "epsilon nan": "EPSILON=.nan",
    "epsilon inf": "EPSILON=.inf",
    "epsilon true": "EPSILON=true",
    "epsilon text": 'EPSILON="1"',
    "epsilon with ten decimals": "EPSILON=0.1234567891",
    "name with a path": "NAME=../../etc/x",
    "name that is absolute": "NAME=/tmp/x",
    "name with a blank": 'NAME="a b"',
    "unknown key": "MORE=\nepsilonn: 1\n",
    "a seed": "MORE=\nseed: 1\n",
    "unknown attribute": "ORDER=[income]",
    "repeated attribute": "ORDER=[region, region]",
    "not a mapping": "- a\n- b\n",
    "empty": "",
    "not text": "\x00\x01\x02",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_spec_is_refused_with_a_clear_text_and_nothing_is_charged(small: Small, steps, case: str):
    text = HOSTILE[case]
    key, _, value = text.partition("=")
    if key == "ORDER":
        small.release.write_text(small.release.read_text().replace("[region]", value))
    elif key in ("EPSILON", "NAME", "MORE"):
        small.write(**{key.lower(): value})
    else:
        small.release.write_text(text)
    for command in ("plan", "run"):
        said = steps(command, small.release, "--json")
        assert said.code == 2 and str(small.release) in said.json["error"], said
    assert not (small.home / "ledger.db").exists()


def test_a_path_that_would_clear_the_screen_is_shown_as_text(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    small.write(release=small.release.read_text().replace("records.parquet", '"\\e[2J.parquet"'))
    for said in (steps("plan", small.release), steps("run", small.release), steps("plan", small.folder / "\x1b[2J.yaml")):
        assert "\\x1b[2J" in said.out + said.err and "\x1b" not in said.out + said.err


def test_a_spec_that_is_missing_or_unreadable_ends_with_2(small: Small, steps):
    for path in (small.folder / "nothing.yaml", small.folder):
        assert steps("run", path).code == 2
    (small.folder / "dataset.yaml").unlink()
    assert "dataset.yaml" in steps("run", small.release).err


def test_verify_needs_no_home_and_reports_what_is_not_a_bundle(small: Small, steps, tmp_path: Path):
    (tmp_path / "nothing").mkdir()
    said = steps("verify", tmp_path / "nothing", "--json")
    assert said.code == 5 and not said.json["ok"] and said.json["problems"]
    assert not small.home.exists()


@pytest.mark.slow
def test_json_is_all_there_is_on_standard_output_even_when_a_run_fails(small: Small, steps_process):
    said = steps_process("run", small.release, "--json")
    assert said.code == 3 and json.loads(said.out)["exit_code"] == 3
    assert said.out.count("\n") == 1 and "no grant" in said.err


def test_an_old_copy_of_the_ledger_is_refused(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "the first")
    old = {path: path.read_bytes() for path in small.home.glob("ledger.db*")}
    steps("budget", "grant", "small-people", "1", "--why", "the second")
    for path in small.home.glob("ledger.db*"):
        path.unlink()
    for path, content in old.items():
        path.write_bytes(content)
    said = steps("budget", "verify", "--json")
    assert said.code == 5 and "old copy" in said.json["problems"][0]


@pytest.mark.slow
def test_a_run_needs_no_server_and_leaves_all_its_records(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    command = [sys.executable, "-m", "tests.flows.program", "--home", str(small.home), "run", str(small.release), "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "DO_NOT_TRACK"))}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=400)
    assert done.returncode == 0 and json.loads(done.stdout)["charged"], done.stderr
    with sqlite3.connect(small.home / "prefect" / "prefect.db") as records:
        states = records.execute("SELECT state_type, COUNT(*) FROM task_run GROUP BY 1").fetchall()
        assert states == [("COMPLETED", 11)]
        assert records.execute("SELECT name, state_type FROM flow_run").fetchall() == [("release small-1", "COMPLETED")]


def test_a_plan_with_a_format_that_nobody_knows_is_refused_with_those_that_are_known(small: Small, steps):
    small.write(more="formats: [parquet, xlsx]\n")
    said = steps("plan", small.release)
    assert said.code == 2 and "formats names 'xlsx'; known are parquet, csv" in said.err and "release.yaml, line " in said.err
