"""`steps fit`, `steps table`, `steps sample`: for people, as JSON, CSV and pictures; and what is said of what cannot be."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.output import answered
from tests.flows.conftest import Said, steps_in
from tests.flows.small import Small
from tests.tasks.answers.conftest import by_pairs, made_by_pairs  # noqa: F401  fixtures
from tests.tasks.publishing.making import POLL

Steps = Callable[..., Said]


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return steps_in(Small(tmp_path))  # whose home is not needed, and not made


@pytest.fixture
def folder(by_pairs: Path) -> Path:  # noqa: F811
    return by_pairs


@pytest.mark.whole
def test_a_table_is_shown_with_intervals(steps: Steps, folder: Path, tmp_path: Path):
    said = steps("table", folder, "voted", "age")
    assert said.code == 0 and "voted × age" in said.out and "95% interval" in said.out and "18–27" in said.out
    assert "95% intervals are about what the records hold" in said.out
    assert not (tmp_path / "home").exists(), "asking leaves nothing behind"


def test_the_same_as_json_csv_and_a_picture(steps: Steps, folder: Path, tmp_path: Path):
    files = {"--csv": tmp_path / "a.csv", "--picture": tmp_path / "a.svg"}
    words = [word for pair in files.items() for word in pair]
    answer = steps("table", folder, "voted", "age", *words, "--json").json
    assert answer["source"] == "measured" and answer["table"] == ["voted", "age"] and len(answer["cells"]) == 8
    with files["--csv"].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["count"]) for row in rows] == [cell["count"] for cell in answer["cells"]]
    assert rows[0]["age"] == "18–27" and "<svg" in files["--picture"].read_text(encoding="utf-8")
    again = tmp_path / "b.svg"
    steps("table", folder, "voted", "age", "--picture", again)
    assert again.read_bytes() == files["--picture"].read_bytes(), "the same answer is the same picture"


def test_a_fit_is_shown_with_what_to_know(steps: Steps, folder: Path, tmp_path: Path):
    said = steps("fit", folder, "voted ~ age * wage", "--picture", tmp_path / "a.png")
    assert "voted ~ age * wage   (logistic; 3 sets; 95% intervals)" in said.out
    assert "WARNING: Not measured: voted × age × wage" in said.out and "Combined by T = W + (1 + 1/m)·B" in said.out
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    answer = steps("fit", folder, "wage ~ age", "--where", "voted=yes", "--json").json
    assert answer["kind"] == "linear" and answer["where"] == {"voted": ["yes"]}
    assert {"name", "estimate", "standard_error", "low", "high", "freedom"} == set(answer["coefficients"][0])


@pytest.mark.whole
def test_a_sample_is_labelled_and_the_same_again(steps: Steps, folder: Path, tmp_path: Path):
    words = ("--rows", 200, "--sets", 2, "--where", "voted=yes", "--seed", 7)
    answer = steps("sample", folder, *words, "--out", tmp_path / "a", "--json").json
    label = json.loads((tmp_path / "a/sample.json").read_bytes())
    assert "not among its signed files" in label["sentence"] and label["files"] == answer["files"] and label["seed"] == 7
    table = pq.read_table(tmp_path / "a/sample-2.parquet")
    assert len(table) == 200 and set(table["voted"].to_pylist()) == {"yes"}
    assert json.loads(table.schema.metadata[b"steps-sample"])["release"] == "poll-2026", "the label travels with the file"
    assert steps("sample", folder, *words, "--out", tmp_path / "b", "--json").json["files"] == answer["files"]
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"sample-1.parquet", "sample-2.parquet", "sample.json"}


def test_a_sample_may_be_csv(steps: Steps, folder: Path, tmp_path: Path):
    said = steps("sample", folder, "--rows", 30, "--sets", 1, "--format", "csv", "--out", tmp_path / "a")
    assert "1 set of 30 rows from poll-2026, seed 0" in said.out
    with (tmp_path / "a/sample-1.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30 and list(rows[0]) == list(POLL.names)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("table", "FOLDER", "votde"), 2, "there is no attribute 'votde'; did you mean 'voted'?"),
        (
            ("table", "FOLDER", "age", "--where", "voted=yes", "--where", "registered=no"),
            2,
            "nothing fulfils voted=yes, registered=no",
        ),
        (("table", "FOLDER", "age", "--where", "voted"), 2, "write name=value"),
        (("table", "FOLDER", "age", "--picture", "a.gif"), 2, "give a name that ends in .svg, .png, .pdf"),
        (("table", "FOLDER", "age", "--csv", "nowhere/a.csv"), 2, "cannot be written"),
        (("table", "nowhere", "age"), 2, "nowhere is no published release: it is not there"),
        (("fit", "FOLDER", "voted ~ aeg"), 2, "there is no attribute 'aeg'; did you mean 'age'?"),
        (("fit", "FOLDER", "age ~ voted", "--kind", "logistic"), 2, "cannot be the outcome of a logistic model"),
        (("fit", "FOLDER", "wage ~ age", "--where", "age=18–27"), 2, "where fixes 'age', which the model names too"),
        (("sample", "FOLDER", "--out", "FOLDER"), 2, "lies in a published bundle"),
        (("sample", "FOLDER", "--out", "."), 2, "is not empty; give a new folder"),
        (("sample", "FOLDER", "--sets", "100000", "--out", "new"), 2, "sets can be made"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else None,
)
def test_what_cannot_be_is_told_with_what_to_do(
    steps: Steps, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words, code, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "something").touch()
    answer = steps(*(folder if word == "FOLDER" else word for word in words))
    assert answer.code == code and said in answer.err, answer.err
    assert "Traceback" not in answer.err


def test_a_table_too_large_to_look_at_is_refused_unless_it_is_written(
    steps: Steps, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tasks.answers.frames.MOST_CELLS", 10)
    refused = steps("table", folder, "age", "wage", "since")
    assert refused.code == 2
    for way in ("Name fewer attributes", "--where", "--csv FILE", "--all"):
        assert way in refused.err
    written = steps("table", folder, "age", "wage", "since", "--csv", tmp_path / "a.csv")
    assert written.code == 0 and "16 cells" in written.out and len((tmp_path / "a.csv").read_text().splitlines()) == 17
    assert len(steps("table", folder, "age", "wage", "since", "--all", "--json").json["cells"]) == 16
    monkeypatch.setattr("tasks.answers.frames.MOST_AT_ALL", 10)
    assert "at most 10 are made" in steps("table", folder, "age", "wage", "since", "--all").err


def test_a_spoilt_bundle_ends_with_5(steps: Steps, folder: Path, tmp_path: Path):
    import shutil

    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / "noisy-counts.parquet").write_bytes(b"something else")
    answer = steps("table", copy, "voted", "--json")
    assert answer.code == 5 and "is not the file that was signed" in answer.json["error"]


def test_the_publishers_key_may_be_asked_for(steps: Steps, folder: Path, made_by_pairs):  # noqa: F811
    assert steps("table", folder, "voted", "--key", made_by_pairs.home.keys / "signing-key.pub").code == 0
    assert steps("table", folder, "voted", "--key", folder / "plan.json").code == 2


def test_an_interval_never_begins_at_minus_nought(capsys: pytest.CaptureFixture[str]):
    cell = {"voted": "no", "count": 93.3, "standard_error": 44, "low": -0.3, "high": 187, "share": 0.03, "trust": "rough"}
    answer = {"table": ["voted"], "rows": 3001, "where": {}, "warnings": [], "notes": []}
    answered.table(answer | {"cells": [cell | {"share_low": 0.0, "share_high": 0.06}]})
    assert "  0 to 187  " in capsys.readouterr().out
