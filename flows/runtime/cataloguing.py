"""The catalogue as a command makes it: with what is scheduled, where there is a schedule."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from schemas.errors import StepsError
from tasks.stages.catalogue import catalogue
from tasks.stages.foresee import Outlook
from tasks.stores.home import Home


def write_catalogue(home: Home, out: Path, address: str, deployments: Path | None) -> dict[str, Any]:
    """A schedule that is named must be readable; one that is merely there is left out with a note where it is not."""
    now = datetime.datetime.now(datetime.UTC)
    outlooks, notes = list[Outlook](), list[str]()
    if deployments is not None or os.environ.get("PREFECT_API_URL") or Path("prefect.yaml").is_file():
        try:
            outlooks, notes = _outlooks(home, deployments, now)
        except StepsError as error:
            if deployments is not None:
                raise
            notes = [f"without what is scheduled: {error}"]
    return catalogue(home, out, outlooks, now.date().isoformat(), address) | {"notes": notes}


def _outlooks(home: Home, deployments: Path | None, now: datetime.datetime) -> tuple[list[Outlook], list[str]]:
    from flows.runtime.foreseen import timetable
    from tasks.stages.foresee import forecast

    table = timetable(home, deployments, now)
    return forecast(home, table.due), [f"scheduled, and not to be read: {name}: {why}" for name, why in table.unread.items()]
