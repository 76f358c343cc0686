"""The forecast as a command makes it: by the schedules of the configured server, or of a prefect.yaml."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.runtime.prefect_settings import log_in, quiet
from tasks.stores.home import Home

if TYPE_CHECKING:
    from flows.runtime.timetable import Timetable


def timetable(home: Home, deployments: Path | None, now: datetime.datetime) -> Timetable:
    """A file that is named wins over the server."""
    quiet(home.folder)
    log_in(home)
    from flows.runtime.timetable import by_file, by_server

    if deployments is None and os.environ.get("PREFECT_API_URL"):
        return by_server(home, now)
    return by_file(home, deployments or Path("prefect.yaml"), now)


def foresee(home: Home, deployments: Path | None) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC)
    table = timetable(home, deployments, now)
    from flows.output.forecast import describe
    from tasks.stages.foresee import forecast, lifetimes

    return describe(forecast(home, table.due), table.source, table.unread, now, lifetimes(home, table.due))
