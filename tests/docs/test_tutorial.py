"""The tutorial, run as it stands: its files are written, its shell blocks run in order, and what it says comes true."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.prefect_server import PrefectServer

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"\n]+)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAME = "wages-2026q4"
pytestmark = [pytest.mark.slow, pytest.mark.server]


@dataclass(frozen=True)
class Folder:
    """A reader's folder, with `steps` of this tree on the path."""

    path: Path
    environment: dict[str, str]

    def run(self, script: str) -> str:
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def bundle(self, name: str) -> Path:
        return self.path / ".steps" / "public" / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, prefect_server: PrefectServer) -> Folder:
    path, programs = tmp_path_factory.mktemp("reader"), tmp_path_factory.mktemp("bin")
    (programs / "steps").write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.flows.program "$@"\n')
    (programs / "steps").chmod(0o755)
    ours = {"PREFECT_API_URL": prefect_server.url, "PYTHONPATH": str(ROOT), "PATH": f"{programs}:{os.environ['PATH']}"}
    return Folder(path, {**os.environ, **ours})


@pytest.fixture(scope="module")
def said(folder: Folder) -> str:
    """What the tutorial's commands printed, in order."""
    printed = []
    for language, title, text in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
        if title:
            (folder.path / title).write_text(text)
        elif language == "sh":
            printed.append(folder.run(text))
    return "".join(printed)


def test_the_tutorial_ends_with_a_verified_bundle(said: str, folder: Folder):
    assert said.count("everything holds") == 1
    assert "ε = 1 charged for each person; 3 left" in said and "nothing charged: this release existed already; 3 left" in said
    assert len(list(folder.bundle(NAME).glob("synthetic-*.csv"))) == 5


def test_the_mistakes_that_it_shows_are_found(said: str):
    assert 'unknown key "epsilom"; did you mean "epsilon"?' in said
    assert "synthetic-1.csv: is not the file that was signed" in said


def test_it_ends_with_answers_and_a_catalogue(said: str, folder: Folder):
    assert "sector × grade   (about " in said and "wage ~ age + grade   (linear; 5 sets; 95% intervals)" in said
    explained = ("grade and wage leave many of their combinations empty", "Everything it depends on was measured")
    assert any(each in said for each in explained), (
        "what the tutorial explains: of noise that nobody seeds, nearly always the first"
    )
    rows = pq.read_table(folder.path / "seniors" / "sample-2.parquet")
    assert rows.num_rows == 10_000 and rows["grade"].unique().to_pylist() == ["senior"]
    assert NAME in (folder.path / "site" / "index.html").read_text(encoding="utf-8")


def test_the_same_release_is_planned_in_rho_as_well(said: str):
    assert "cost      ρ = 0.014973057 for each person   (population payroll-2026: no grant yet)" in said
    assert "promises  ε = 1 at δ = 1e-9" in said


def test_what_it_prints_is_what_the_commands_print(said: str):
    document = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    printed = [text for language, _, text in BLOCK.findall(document) if language == "text"]
    assert len(printed) == 4, "a first spec, a plan, a validation, a verified bundle"
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert [line for text in printed for line in text.splitlines() if " ".join(line.split()) not in lines] == []


def test_a_delivery_is_checked_with_great_expectations_alone(said: str, folder: Folder):
    command = [sys.executable, "check_delivery.py"]

    def checked() -> str:
        plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"GX_ANALYTICS_ENABLED": "false"}
        return subprocess.run(command, cwd=folder.path, env=plain, capture_output=True, text=True, timeout=300).stdout

    assert checked() == "fits\n"
    good = (folder.path / "wages.csv").read_text()
    (folder.path / "wages.csv").write_text(good.replace("private", "state", 1))
    assert checked() == "does not fit\n"
    (folder.path / "wages.csv").write_text(good)


def test_the_first_spec_that_is_made_could_be_run_as_it_is(said: str, folder: Folder):
    folder.run(
        "steps init untouched --from wages.schema.json --source wages.csv --population payroll-2026 && steps validate untouched/release.yaml"
    )
    assert "bare/dataset.yaml, line 13: attributes.person.kind: still TODO" in said


@pytest.fixture(scope="module")
def cascade(said: str, folder: Folder) -> str:
    """A release with one tree per attribute, from the reader's data."""
    text = (
        (folder.path / "release.yaml")
        .read_text()
        .replace(NAME, "cascade")
        .replace("method:", "method:\n  decomposition: cascade")
    )
    (folder.path / "cascade.yaml").write_text(text)
    folder.run("steps run cascade.yaml")
    return "cascade"


def undocumented(bundle: Path, page: str) -> Iterator[str]:
    """Files, columns and keys of a bundle that the page about bundles does not name."""
    for path in sorted(bundle.iterdir()):
        names = {re.sub(r"-[0-9]+", "-1", path.name)}
        if path.suffix == ".parquet" and not path.name.startswith("synthetic"):
            names |= {re.sub(r"_[0-9]+$", "_1", name) for name in pq.read_schema(path).names}
        if path.name in ("manifest.json", "plan.json"):
            names |= set(keys(json.loads(path.read_bytes())))
        yield from (f"{path.name}: {name}" for name in sorted(names) if f"`{name}`" not in page and f"**{name}**" not in page)


def keys(value: Any) -> Iterator[str]:
    for key, part in value.items() if isinstance(value, dict) else ():
        yield key
        if key not in ("files", "dependencies"):  # whose keys are names of files and packages
            yield from keys(part)
        else:
            yield from (name for facts in part.values() for name in keys(facts))
    for part in value if isinstance(value, list) else ():
        yield from keys(part)


@pytest.mark.parametrize("release", [NAME, "cascade"])
def test_every_file_column_and_key_of_a_bundle_is_documented(release: str, cascade: str, folder: Folder):
    page = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")
    assert list(undocumented(folder.bundle(release), page)) == []
    assert list(undocumented(folder.bundle(release), page.replace("`standard_error`", ""))) == [
        "consistent-counts.parquet: standard_error"
    ]
