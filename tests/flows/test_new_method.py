"""A method that is one folder, brought by an installed package: planned, run, shown, verified, in a notebook and in a study."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.conftest import Said
from tests.flows.small import Small
from tests.prefect_server import PrefectServer

ROOT = Path(__file__).parents[2]
RELEASE = """
name: NAME
dataset: dataset.yaml
source: records.parquet
privacy: {epsilon: EPSILON}
method: {decomposition: margins, first: 3, sets: {count: 2, budget: shared}}
"""
NOTEBOOK = """
import pandas as pd
from schemas.spec.domain import load_domain
from schemas.spec.method import method_spec
from steps_engine.methods.run_in_memory import synthesize_frame

frame = pd.read_parquet("records.parquet")
made = synthesize_frame(frame, load_domain("dataset.yaml"), 1, method_spec("margins"))
print(made.plan.decomposition, list(made.frames[0].columns), len(made.counts(1)))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """What `pip install` of a package with the toy method leaves behind: its metadata, and the folder on the path."""
    metadata = tmp_path / "site" / "toy_margins-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-margins\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[steps_release.methods]\nmargins = tests.toys.margins_method:MARGINS\n")
    return metadata.parent


@pytest.fixture
def steps(small: Small, site: Path, prefect_server: PrefectServer) -> Callable[..., Said]:
    """`steps` (or python) in a process of its own, in which the package is installed."""
    ours = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "PREFECT_API_URL": prefect_server.url}

    def run(*words: object, program: tuple[str, ...] = ("-m", "tests.flows.program", "--home", str(small.home))) -> Said:
        command = [sys.executable, *program, *map(str, words)]
        environment = {**os.environ, **ours}
        done = subprocess.run(command, cwd=small.folder, env=environment, capture_output=True, text=True, timeout=300)
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.slow
@pytest.mark.server
def test_a_method_in_one_folder_goes_through_plan_run_page_and_verify(small: Small, steps: Callable[..., Said]):
    small.write("toy-1", "0.5", release=RELEASE)
    planned = steps("plan", small.release)
    assert planned.code == 0 and "margin" in planned.out and "working" in planned.out, planned.err
    assert steps("budget", "grant", "small-people", "2", "--why", "a test").code == 0
    ran = steps("run", small.release, "--json")
    assert ran.code == 0, ran.err
    folder = Path(ran.json["folder"])
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "The margins" in page and "Every attribute was counted by itself." in page and "margin of region" in page
    verified = steps("verify", folder, "--key", small.home / "keys" / "signing-key.pub", "--json")
    assert verified.code == 0 and {name: verified.json[name] for name in ("ok", "problems", "notes")} == {
        "ok": True,
        "problems": [],
        "notes": [],
    }

    _is_verified_by_the_verifiers_arithmetic(folder, steps)


def _is_verified_by_the_verifiers_arithmetic(folder: Path, steps: Callable[..., Said]) -> None:
    plan = json.loads((folder / "plan.json").read_bytes())
    plan["draws"][0]["scale"] = "1"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert steps("verify", folder).code == 5


@pytest.mark.slow
@pytest.mark.server
def test_it_is_there_in_a_notebook_and_in_a_study(small: Small, steps: Callable[..., Said]):
    said = steps(NOTEBOOK, program=("-c",))
    assert said.code == 0 and said.out.startswith("margins ['region', 'working', 'age'] 3"), said.err
    out = small.folder / "study"
    study = steps("study", "voter", "--method", "margins", "--epsilon", "1", "--repeats", "1", "--out", out, "--json")
    assert study.code == 0, study.err
    assert {row["method"] for row in study.json["figures"]} == {"margins"}


@pytest.mark.slow
@pytest.mark.server
def test_a_package_that_cannot_be_loaded_takes_nothing_else_along(small: Small, steps: Callable[..., Said], site: Path):
    (site / "toy_margins-1.dist-info" / "entry_points.txt").write_text("[steps_release.methods]\nmargins = tests.no_such:M\n")
    planned = steps("plan", small.release)
    assert planned.code == 0 and "the method 'margins' cannot be loaded (ModuleNotFoundError)" in planned.err


@pytest.mark.slow
@pytest.mark.server
def test_without_the_package_it_is_not_known(small: Small, steps: Callable[..., Said], site: Path):
    small.write("toy-3", "0.5", release=RELEASE)
    (site / "toy_margins-1.dist-info" / "entry_points.txt").unlink()
    refused = steps("plan", small.release)
    assert refused.code == 2 and "there is no decomposition 'margins'; known are auto, cascade" in refused.err
