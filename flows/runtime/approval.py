"""Approval: before publication and before evaluation a person decides, who is shown only what would be published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefect import get_client, runtime
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import State
from prefect.exceptions import Pause
from prefect.flow_runs import resume_flow_run, suspend_flow_run
from prefect.input import RunInput

from flows.output import events, ui_artifacts
from schemas.errors import Rejected, WaitingForApproval
from schemas.spec.release import Release
from tasks.stages.decide import decide
from tasks.stages.forget import forget_exact_counts
from tasks.stages.publish import preview_release
from tasks.stages.references import PlanReference
from tasks.stores.approvals import lacking
from tasks.stores.artifacts import Reference
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger


class Decision(RunInput):
    """What the UI asks. Prefect has no users of its own: the name is what the person says it is."""

    approve: bool
    who: str
    why: str = ""


def wait_for_decision(home: Home, release: Release, plan: PlanReference, public: Sequence[Reference]) -> None:
    """Returns once the release may be published. Embedded, the run ends here; a deployment's run is suspended."""
    if release.spec.approval == "none":
        return
    ledger = open_ledger(home)
    while ledger.decision(release.name) is None:
        folder = preview_release(home, release, plan, public)
        signed = ledger.people().are_registered
        more = f" {lacking(ledger.entries(release=release.name))}, each signing with --as FILE." if signed else ""
        look = f'release "{release.name}" waits for approval; nothing is published. Look at {folder / "index.html"}, then say: '
        todo = f'{look}steps approve {release.name} --why "…" (or reject)'
        events.tell_waiting(release.name, f"{todo}.{more}")
        if runtime.deployment.id is None:
            raise WaitingForApproval(f"{todo}, and run it again.{more}")
        if signed:  # what a form says decides nothing: a signature does
            ui_artifacts.ask_for_signatures(release.name, folder, more)
            with _saying(f"{todo}; this run then goes on.{more}"):
                suspend_flow_run(timeout=None, key=f"approval-{len(ledger.entries())}-{runtime.flow_run.run_count}")
            continue
        answer = _suspended(f"{todo}, on the worker's machine; this run then goes on.")
        decide(home, release.name, "approve" if answer.approve else "reject", answer.who, answer.why)
    decision = ledger.decision(release.name)
    if decision is None or decision.kind == "reject":
        forget_exact_counts(home, release)
        raise Rejected(f'release "{release.name}" was rejected: it stays charged and is never published.')


def _suspended(todo: str) -> Decision:
    """Ends this run's process; when somebody has decided, a new one comes by here again and gets the answer."""
    with _saying(todo):
        asked = Decision.with_initial_data(description=todo)
        return suspend_flow_run(wait_for_input=asked, key="approval", timeout=None)


@contextmanager
def _saying(todo: str) -> Iterator[None]:
    """What the Suspended state says, in place of Prefect's own words."""
    try:
        yield
    except Pause as pause:
        if pause.state is not None:
            _say_in_state(pause.state, todo)
        raise


def _say_in_state(suspended: State[Any], todo: str) -> None:
    """Prefect's own Suspended state says nothing; ours says what to do, unless somebody was quick and has done it."""
    run = runtime.flow_run.id
    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
        if found is not None and found.id == suspended.id:
            client.set_flow_run_state(run, suspended.model_copy(update={"message": todo}), force=True)


def resume_waiting(name: str, approve: bool, who: str, why: str) -> bool:
    """Wakes the suspended runs of a release; False when there is none."""
    waiting = FlowRunFilter.model_validate({"tags": {"all_": [name]}, "state": {"type": {"any_": ["PAUSED"]}}})
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=waiting)
    for run in runs:
        asks = run.state is not None and run.state.state_details.run_input_keyset is not None
        resume_flow_run(run.id, run_input={"approve": approve, "who": who, "why": why} if asks else None)
    return bool(runs)
