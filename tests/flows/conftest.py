from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .small import Small, make_small

PREFECT_HOME = Path(tempfile.mkdtemp(prefix="prefect-"))
os.environ.update(  # before anything imports Prefect
    PREFECT_HOME=str(PREFECT_HOME),
    DO_NOT_TRACK="1",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    PREFECT_LOGGING_LEVEL="INFO",
    PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL="CRITICAL",
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="180",
)
os.environ.pop("PREFECT_API_URL", None)
for variable in ("STEPS_HOME", "STEPS_LEDGER", "STEPS_ANCHOR", "STEPS_DASK"):
    os.environ.pop(variable, None)


@dataclass(frozen=True)
class PrefectServer:
    """The server that this session's flows talk to."""

    database: Path
    url: str


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[PrefectServer]:
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_DATABASE_CONNECTION_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        url = PREFECT_SERVER_DATABASE_CONNECTION_URL.value()
        url = url.get_secret_value() if hasattr(url, "get_secret_value") else str(url)
        yield PrefectServer(Path(url.removeprefix("sqlite+aiosqlite:///")), PREFECT_API_URL.value())


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
def steps_process(small: Small, prefect_server: PrefectServer) -> Callable[..., Said]:
    """Runs a command in a process of its own, against this session's Prefect server."""

    def run(*words: object, program: tuple[str, ...] = ("-m", "tests.flows.program")) -> Said:
        command = [sys.executable, *program, "--home", str(small.home), *map(str, words)]
        environment = {**os.environ, "PREFECT_API_URL": prefect_server.url, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        return Said(done.returncode, done.stdout, done.stderr)

    return run
