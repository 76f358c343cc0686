"""A finished release is returned before Prefect is started: no stage is left to be run, retried or recorded.

Where a Prefect server is configured the flow runs and is recorded there as ever; it does the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flows.output import json_views
from flows.runtime.boundary import fit_for_public
from schemas.spec.release import Release
from tasks.specs import refusals_naming
from tasks.stages.audit import must_be_current
from tasks.stages.finished import find_finished
from tasks.stages.forget import forget_exact_counts
from tasks.stages.plan import plan
from tasks.stages.publish import publish_release
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.releases import FINISHED


def return_finished(home: Home, release: Release, path: Path) -> dict[str, Any] | None:
    """What a run answers, if this release was evaluated or taken back before and no server wants to hear of it."""
    if os.environ.get("PREFECT_API_URL") or open_ledger(home).state(release.name) not in FINISHED:
        return None
    return fit_for_public("release", _checked_again)(home, release, path)


def _checked_again(home: Home, release: Release, path: Path) -> dict[str, Any] | None:
    """The release as it was published, checked again; exact counts that a killed run left go."""
    must_be_current(home)
    with refusals_naming(str(path)):
        planned = plan(home, release)
    finished = find_finished(home, release, planned)
    if finished is None:
        return None
    folder = publish_release(home, release, planned, finished.public)
    forget_exact_counts(home, release)
    return json_views.outcome(home, release, folder, charged=False, charges=finished.charges)
