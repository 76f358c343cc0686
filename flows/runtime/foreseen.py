"""The forecast as a command makes it: by the schedules of the configured server, or of a prefect.yaml."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from flows.runtime.prefect_settings import log_in, quiet
from tasks.stores.home import Home


def foresee(home: Home, deployments: Path | None) -> dict[str, Any]:
    """A file that is named wins over the server."""
    quiet(home.folder)
    log_in(home)
    from flows.output.forecast import describe
    from flows.runtime.timetable import by_file, by_server
    from tasks.stages.foresee import forecast, lifetimes

    now = datetime.datetime.now(datetime.UTC)
    if deployments is None and os.environ.get("PREFECT_API_URL"):
        table = by_server(home, now)
    else:
        table = by_file(home, deployments or Path("prefect.yaml"), now)
    return describe(forecast(home, table.due), table.source, table.unread, now, lifetimes(home, table.due))
