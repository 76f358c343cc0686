"""Prefect's settings for a run without a server. Prefect reads them when it is first imported, so they come before."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from tasks.stores.files import open_folder, private_folder
from tasks.stores.home import Home
from tasks.stores.keys import server_login

LOOPBACK = ("127.0.0.1", "::1", "localhost")

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
    state = private_folder(open_folder(home) / "prefect")
    os.environ.update(_NO_TELEMETRY)
    for name, value in {"PREFECT_HOME": str(state), **_UNLESS_SET}.items():
        os.environ.setdefault(name, value)


def log_in(home: Home) -> None:
    """The home's login, for a server on this machine. One elsewhere gets what PREFECT_API_AUTH_STRING says; a run that serves
    itself has a secret of its own."""
    address = os.environ.get("PREFECT_API_URL")
    if address is not None and urlsplit(address).hostname in LOOPBACK:
        os.environ.setdefault("PREFECT_API_AUTH_STRING", server_login(home))
