"""The stages of the flow keep the signatures of their functions: what is passed wrongly is found before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GIVEN = """
from pathlib import Path

from flows.release import build, charge, correct, evaluate, publish, sanitize
from flows.runtime.distributed import synthesize
from schemas.plan import Plan
from schemas.spec.release import Release
from tasks.stages.charge import ChargedPlan
from tasks.stages.references import CellsReference, NoisyReference, PlanReference, StructureReference
from tasks.stores.home import Home


def flow(home: Home, asked: Release, planned: PlanReference, cells: CellsReference, plan: Plan, folder: Path) -> Path:
    charged: ChargedPlan = charge(home, asked, planned, cells, {})
    tree: StructureReference = build(home, asked, planned, cells, charged)
    noisy: NoisyReference = sanitize(home, asked, planned, cells, tree, charged)
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
"""
RIGHT = "    return publish(home, asked, planned, sets)\n"
WRONG = {
    "sanitizing without a charge": "sanitize(home, asked, planned, cells, tree)",
    "sanitizing with a plan that is not charged": "sanitize(home, asked, planned, cells, tree, plan)",
    "sanitizing with a reference in place of the charge": "sanitize(home, asked, planned, cells, tree, planned)",
    "building without a charge": "build(home, asked, planned, cells)",
    "a path in place of a reference": "correct(home, asked, planned, folder, noisy)",
    "one reference in place of another": "correct(home, asked, planned, noisy, tree)",
    "exact counts in place of noisy ones": "correct(home, asked, planned, tree, cells)",
    "what was charged in place of a reference": "synthesize(home, asked, planned, tree, noisy, charged)",
    "one set in place of all": "evaluate(home, asked, cells, consistent)",
    "a path in place of the home": "publish(folder, asked, planned, sets)",
    "a result taken for another": "charged = sanitize(home, asked, planned, cells, tree, charged)",
}
OF_A_CALL = ("[call-overload]", "[call-arg]", "[arg-type]", "[assignment]")


def complaints(snippet: Path) -> dict[int, str]:
    """What mypy, configured as for the project, says about a file, by the line it is about."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-pretty", str(snippet)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = (line.split(":", 2) for line in done.stdout.splitlines() if ": error: " in line)
    return {int(line): text for path, line, text in found if path.endswith(snippet.name)}


@pytest.mark.slow
def test_a_stage_called_wrongly_is_an_error_of_types_and_the_flow_as_it_should_be_is_none(tmp_path: Path):
    snippet, first = tmp_path / "some_flow.py", len(GIVEN.splitlines()) + 1
    snippet.write_text(GIVEN + "".join(f"    {call}\n" for call in WRONG.values()) + RIGHT, encoding="utf-8")
    found = complaints(snippet)
    assert [what for line, what in enumerate(WRONG, first) if not found.get(line, "").endswith(OF_A_CALL)] == []
    assert {line: text for line, text in found.items() if not first <= line < first + len(WRONG)} == {}
