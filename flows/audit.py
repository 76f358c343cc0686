"""The audit flow: verifies the ledger and every published bundle again, deletes exact counts that no run uses, fails when
anything does not hold, brings the catalogue up to date, and tells which budgets do not cover what is scheduled.
"""

from __future__ import annotations

import datetime

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows.output import events, ui_artifacts
from flows.output.forecast import describe
from flows.runtime.boundary import fit_for_public
from flows.runtime.place import home_of_run, is_embedded, place_of_run
from flows.runtime.scheduled import releases_due
from flows.runtime.stages import NOTHING_KEPT, stage
from flows.runtime.timetable import by_server
from schemas.counted import counted
from schemas.errors import EvidenceBroken
from tasks.stages.audit import bundles, check_bundle, check_ledger
from tasks.stages.catalogue import catalogue
from tasks.stages.foresee import Outlook, forecast, lifetimes, needs
from tasks.stages.forget import forget_leftovers
from tasks.stores.home import Home, must_be_there

verify_ledger = stage("verify ledger", check_ledger)
verify_bundle = stage("verify bundle", check_bundle)
forget = stage("forget exact counts", forget_leftovers)
refresh = stage("refresh catalogue", catalogue)


@flow(name="audit", flow_run_name="audit", **NOTHING_KEPT)
def audit() -> dict[str, object]:
    """Re-checks everything that was published, and the ledger behind it."""
    with events.told_of_audit():
        found = fit_for_public("audit", _audit)(home_of_run())
    return found


def _audit(home: Home) -> dict[str, object]:
    must_be_there(home)  # a disk that is not mounted holds no problem either
    outlooks = _foresee(home) if not is_embedded() else []
    problems = verify_ledger(home)
    folders = bundles(home)
    found = {folder.name: verify_bundle.with_options(task_run_name=f"verify {folder.name}")(home, folder) for folder in folders}
    if not problems:  # of the ledger; the catalogue stays as it is until that holds again
        _refresh(home, outlooks, found)
    problems += [problem for each in found.values() for problem in each]
    forgotten = forget(home)["forgotten"]
    checked = f"the ledger and {counted(len(folders), 'published bundle')}"
    lines = [f"- **{problem}**" for problem in problems or ["everything holds"]]
    lines += [f"- deleted exact counts of {name}, which no run was using" for name in forgotten]
    text = "\n".join([f"Checked {checked}.", "", *lines])
    create_markdown_artifact(text, key="audit", description="what the audit found")
    if problems:
        raise EvidenceBroken(f"{counted(len(problems), 'problem')} in {checked}: {'; '.join(problems[:5])}")
    return {"ok": True, "problems": [], "bundles": [folder.name for folder in folders], "forgotten": forgotten}


def _refresh(home: Home, outlooks: list[Outlook], found: dict[str, list[str]]) -> None:
    """The catalogue, where worker.yaml names a folder for it."""
    owned = place_of_run().owned
    if owned is not None and owned.catalogue is not None:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        refresh(home, owned.catalogue, outlooks, today, owned.address, found)


def _foresee(home: Home) -> list[Outlook]:
    """Tells of every budget that does not cover what the server has scheduled, and shows when each runs dry."""
    for need in needs(home, releases_due(place_of_run())):
        if need.is_short:
            events.tell_low_balance(need)
    now = datetime.datetime.now(datetime.UTC)
    table = by_server(home, now)
    outlooks = forecast(home, table.due)
    ui_artifacts.show_forecast(describe(outlooks, table.source, table.unread, now, lifetimes(home, table.due)))
    return outlooks
