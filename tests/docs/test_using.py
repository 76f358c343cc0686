"""The page for data users and the notebook: every command and every cell runs, on a release of the stand-in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.spec.domain import load_domain
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.noise import SeededRandomness
from steps_engine.studies.standin import youth_voter
from tasks.answers import frames
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import a_release, make

pytestmark = pytest.mark.whole  # every test begins with a release

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples/youth-voter/answers.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    domain = load_domain(ROOT / "examples/youth-voter/dataset.yaml")
    analyses = (["voted", "college"], {"model": "voted ~ age + college + white", "where": {"registered": "yes"}})
    method = {"decomposition": "pairs", "sets": {"count": 3, "budget": "shared"}}
    release = a_release(domain, method, name="youth-voter-2026q4", epsilon="4", formats=("parquet",), analyses=analyses)
    counts = count_codes(encode(youth_voter(4000, SeededRandomness(1)), domain))
    return publish(*make(tmp_path_factory.mktemp("voter") / "home", release, counts).arguments).folder


def test_the_notebook_runs_cell_by_cell(folder: Path, tmp_path: Path):
    cells = [cell for cell in json.loads(NOTEBOOK.read_bytes())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), (
        "a notebook is kept without outputs"
    )
    # As a notebook does: what the last line of a cell is, is shown.
    shown = "\n".join(show_last("".join(cell["source"])) for cell in cells)
    script = tmp_path / "cells.py"
    script.write_text(shown, encoding="utf-8")
    environment = {**os.environ, "BUNDLE": str(folder), "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "3 synthetic sets by pairs",
        "voted × college",
        "college where registered = yes",
        "Not from the noisy counts but from the synthetic sets",
        "Everything it depends on",
    ):
        assert words in done.stdout


def show_last(cell: str) -> str:
    *before, last = cell.splitlines()
    return "\n".join([*before, f"print({last})"])


def test_the_page_names_what_there_is(folder: Path):
    page = (ROOT / "docs/using.md").read_text(encoding="utf-8")
    columns = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    from tasks.answers import read_bundle

    table = read_bundle(folder).table("voted", "age")
    assert [name for name in columns if name not in table.columns] == [] and len(columns) == 9
    assert f"more than {frames.MOST_CELLS:,} cells" in page
