"""kill -9 in every stage, then the same command again: one charge, nothing redrawn, nothing half-written left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.small import Small, leaks
from tests.prefect_server import PrefectServer

ROOT = Path(__file__).parents[2]
STAGES = "plan, validate, discretize, charge, build tree, sanitize, correct, synthesize, publish, evaluate, forget".split(", ")


@pytest.mark.slow
def test_a_kill_in_every_stage_is_resumed_under_one_charge(small: Small):
    command = [sys.executable, "-m", "tests.flows.without_prefect", str(small.folder / "homes"), str(small.release)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    homes = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["stage"] for *killed, _ in homes for each in killed} >= set(STAGES)
    for *killed, ended in homes:
        assert [each["stage"] for each in killed if each["killed"] is not True] == [], killed
        assert ended["resumed"] == "to the end" and ended["charges"] == 1, ended
        assert ended["problems"] == [] and ended["exact counts left"] == [] and ended["half files left"] == [], ended
        for each in (*killed, ended):
            assert each["redrawn"] == [] and each["leaks"] == [], each


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["noisy-counts", "synthetic-2"])
def test_a_kill_in_the_real_flow_is_resumed_under_one_charge(small: Small, steps, prefect_server: PrefectServer, stage: str):
    steps("budget", "grant", "small-people", "0.5", "--why", "exactly one release")
    command = [sys.executable, "-m", "tests.flows.program", "--home", str(small.home), "run", str(small.release)]
    environment = {**os.environ, "PREFECT_API_URL": prefect_server.url, "DIE_AT": stage}
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, env=environment, timeout=300)
    assert killed.returncode == -9
    assert leaks(small.home) == []
    said = steps("run", small.release, "--json").json
    assert not said["charged"] and said["balance"] == "0"
    assert steps("budget", "verify").code == 0 and steps("verify", said["folder"]).code == 0
    assert list((small.home / "confidential").rglob("cells/*.parquet")) == []
