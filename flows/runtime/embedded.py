"""`steps run` without a server: the same flow in this process, with Prefect's own state under the home."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from flows.runtime.interrupts import unheard_by_children
from flows.runtime.prefect_settings import quiet
from flows.runtime.progress import shown_in_terminal
from schemas.errors import InfrastructureFault, StepsError
from tasks.specs import load_release
from tasks.stores.files import must_have_room
from tasks.stores.home import Home

PATIENCE = 10.0  # seconds for Prefect to record what has run


def run_release(home: Home, path: Path, period: str | None) -> dict[str, Any]:
    """Runs the release flow and returns its outcome, or raises why there is none."""
    load_release(path, period)  # a bad spec dies at the door, before a server is started
    must_have_room(home.folder)
    if home.key_file is not None:
        os.environ["STEPS_KEY"] = str(home.key_file)  # the flow finds it there, as a worker's would
    quiet(home.folder)
    with stdout_kept_clean(), shown_in_terminal("starting Prefect") as stages:
        try:
            outcome = _run(home, path, period)
        except StepsError:
            _wait_for_records(stages)
            raise
        _wait_for_records(stages)
    return outcome


def _run(home: Home, path: Path, period: str | None) -> dict[str, Any]:
    # What the flow returned or raised, never the state's data: where a request to Prefect's server was sent twice, the
    # state comes back from its database, which holds no results.
    try:
        from flows.release import release

        start_server()
        return release(release=str(path), home=str(home.path), period=period)
    except StepsError:
        raise
    except Exception as error:
        reason = type(error).__name__
    raise InfrastructureFault(f"Prefect could not run the flow ({reason}). Is its server or disk out of reach? Run again.")


def start_server() -> None:
    """Starts Prefect's own server where no other is configured; it must live to hear how an interrupted run ended."""
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_EPHEMERAL_ENABLED

    def start() -> None:
        with unheard_by_children(), suppress(Exception):  # the flow tries again, and says what is wrong
            SubprocessASGIServer().start()

    if not PREFECT_API_URL.value() and PREFECT_SERVER_EPHEMERAL_ENABLED.value():
        starting = threading.Thread(target=start, daemon=True)  # so that this one hears Ctrl-C meanwhile
        starting.start()
        starting.join()


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
    """Wakes the suspended run of a deployment, if a Prefect server is configured and has one."""
    if not os.environ.get("PREFECT_API_URL"):
        return False
    quiet(home.folder)
    from flows.runtime.approval import resume_waiting

    return resume_waiting(name, approve, who, why)
