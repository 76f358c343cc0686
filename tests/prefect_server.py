"""One Prefect server for all tests of a process: a second one would take the first one's place in the settings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFECT_HOME = Path(tempfile.mkdtemp(prefix="prefect-"))
os.environ.update(  # before anything imports Prefect
    PREFECT_HOME=str(PREFECT_HOME),
    DO_NOT_TRACK="1",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    PREFECT_LOGGING_LEVEL="INFO",
    PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL="CRITICAL",
    PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="180",
)
for variable in ("PREFECT_API_URL", "STEPS_HOME", "STEPS_LEDGER", "STEPS_ANCHOR", "STEPS_DASK"):
    os.environ.pop(variable, None)


@dataclass(frozen=True)
class PrefectServer:
    """The server that this session's flows talk to."""

    database: Path
    url: str


@contextmanager
def serving() -> Iterator[PrefectServer]:
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_DATABASE_CONNECTION_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        url = PREFECT_SERVER_DATABASE_CONNECTION_URL.value()
        url = url.get_secret_value() if hasattr(url, "get_secret_value") else str(url)
        yield PrefectServer(Path(url.removeprefix("sqlite+aiosqlite:///")), PREFECT_API_URL.value())
