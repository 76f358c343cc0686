"""Prefect's settings for a run without a server. Prefect reads them when it is first imported, so they come before."""

from __future__ import annotations

import os
from pathlib import Path

_NO_TELEMETRY = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
}
_UNLESS_SET = {
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_LOGGING_LEVEL": "INFO",  # full logs in the UI …
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",  # … and a terminal that shows what `steps` says
}


def quiet(home: Path) -> None:
    """No telemetry, Prefect's own state under `home`, nothing on the console."""
    state = home / "prefect"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.update(_NO_TELEMETRY)
    for name, value in {"PREFECT_HOME": str(state), **_UNLESS_SET}.items():
        os.environ.setdefault(name, value)
