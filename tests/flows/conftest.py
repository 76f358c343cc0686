from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flows.small import Small, make_small
from tests.prefect_server import PrefectServer


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A small release, not granted anything yet."""
    return make_small(tmp_path, rows=2_003)


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def steps(small: Small) -> Callable[..., Said]:
    return steps_in(small)


def steps_in(small: Small) -> Callable[..., Said]:
    """Runs a command in this process, in the small release's home."""
    from click.testing import CliRunner

    from flows.cli import main

    def run(*words: object) -> Said:
        done = CliRunner().invoke(main, ["--home", str(small.home), *map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def heard_by_the_server(prefect_server: PrefectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal at the door reaches Prefect where its server is configured, as a person would: by the environment."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_server.url)


@pytest.fixture
def steps_process(small: Small, prefect_server: PrefectServer) -> Callable[..., Said]:
    """Runs a command in a process of its own, against this session's Prefect server."""

    def run(*words: object, program: tuple[str, ...] = ("-m", "tests.flows.program")) -> Said:
        command = [sys.executable, *program, "--home", str(small.home), *map(str, words)]
        environment = {**os.environ, "PREFECT_API_URL": prefect_server.url, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        return Said(done.returncode, done.stdout, done.stderr)

    return run
