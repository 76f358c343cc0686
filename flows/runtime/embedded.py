"""`steps run` without a server: the same flow in this process, with Prefect's own state under the home."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.runtime.prefect_settings import log_in, quiet
from flows.runtime.progress import shown_in_terminal
from flows.runtime.server import serving
from schemas.errors import InfrastructureFault, StepsError
from schemas.visible import visible
from tasks.stores.files import must_have_room
from tasks.stores.home import Home

if TYPE_CHECKING:
    from tasks.reading.fitting import Look

PATIENCE = 10.0  # seconds for Prefect to record what has run


def run_release(home: Home, path: Path, period: str | None) -> dict[str, Any]:
    """Runs the release flow and returns its outcome, or raises why there is none."""
    from flows.runtime.finished import return_finished
    from tasks.specs import load_release, refusals_naming
    from tasks.stages.charge import must_be_signable
    from tasks.stages.door import look_first

    asked = load_release(path, period)  # a bad spec dies at the door, before a server is started
    if found := return_finished(home, asked, path):
        return found
    if not os.environ.get("PREFECT_API_URL"):  # a server that is configured hears of refusals too: the flow looks
        with refusals_naming(path):
            seen = look_first(home, asked)
            if seen is not None:
                must_be_signable(home, asked)
        _say_what_is_read(seen)
    must_have_room(home.folder)
    quiet(home.folder)
    log_in(home)
    with stdout_kept_clean(), shown_in_terminal("starting Prefect") as stages:
        return _run(home, path, period, stages)


def _say_what_is_read(seen: Look | None) -> None:
    """On standard error, for the person who waits; a finished release reads nothing."""
    if seen is not None:
        print(f"reads {visible(seen.words)}", file=sys.stderr)


def _run(home: Home, path: Path, period: str | None, stages: dict[str, str]) -> dict[str, Any]:
    # What the flow returned or raised, never the state's data: where a request to Prefect's server was sent twice, the
    # state comes back from its database, which holds no results.
    try:
        from flows.release import release
        from flows.runtime.place import embedded_in

        with serving(), embedded_in(home):
            try:
                return release(release=str(path), period=period)
            finally:
                _wait_for_records(stages)
    except StepsError:
        raise
    except Exception as error:
        reason = type(error).__name__
    raise InfrastructureFault(f"Prefect could not run the flow ({reason}). Is its server or disk out of reach? Run again.")


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Whatever this process or a child prints goes to standard error; standard output is for the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _wait_for_records(stages: dict[str, Any]) -> None:
    """Prefect records task runs a moment after they ran: leaving at once would lose some. The release stands without them."""
    if not stages:
        return
    from prefect import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    ours = FlowRunFilter(id=FlowRunFilterId(any_=list(set(stages.values()))))
    deadline = time.monotonic() + PATIENCE
    with suppress(Exception), get_client(sync_client=True) as client:
        while time.monotonic() < deadline:
            runs = client.read_task_runs(flow_run_filter=ours)
            if sum(run.state is not None and run.state.is_final() for run in runs) >= len(stages):
                return
            time.sleep(0.2)


def decide(home: Home, name: str, verdict: str, why: str) -> dict[str, Any]:
    """Records a person's decision, and lets a run that waits for it go on."""
    from tasks.stages.decide import decide as record
    from tasks.stores.approvals import lacking
    from tasks.stores.ledger import open_ledger
    from tasks.stores.writing import account_name

    ledger = open_ledger(home)
    who = ledger.me() or account_name()
    state = record(home, name, verdict, who, why)
    answer: dict[str, Any] = {"release": name, "state": state, "who": who}
    if not ledger.people().are_registered:
        answer["note"] = "signed by nobody: no people are registered, and the name is the account's. See: steps people list"
    if verdict == "approve" and state == "waiting":
        return answer | {"next": f"{lacking(ledger.entries(release=name))} before it is published"}
    if verdict in ("approve", "reject") and _resume(home, name, verdict == "approve", who, why):
        return answer | {"next": "the run that waited for it goes on"}
    return answer | ({"next": "run it again to publish"} if state == "approved" else {})


def _resume(home: Home, name: str, approve: bool, who: str, why: str) -> bool:
    """Wakes the suspended run of a deployment, if a Prefect server is configured and has one. The decision stands without."""
    if not os.environ.get("PREFECT_API_URL"):
        return False
    try:
        quiet(home.folder)
        log_in(home)
        from flows.runtime.approval import resume_waiting

        return resume_waiting(name, approve, who, why)
    except Exception as error:
        reason = type(error).__name__
    again = "Is it out of reach? A run that waits there goes on when the same is said again."
    print(f"steps: this is decided; Prefect's server could not be told of it ({reason}). {again}", file=sys.stderr)
    return False
