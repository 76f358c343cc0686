"""Events that automations listen to: what was done to a release, how a run ended, how budgets stand. All of it public.

| event | when | payload |
|---|---|---|
| steps.release.charged | the budget was charged | measure, amount, left |
| steps.release.published | the bundle is public | |
| steps.release.burnt | a charge is void, its draws being lost | |
| steps.release.withdrawn | what was public is withdrawn or superseded | |
| steps.release.waiting | a person has to decide | |
| steps.release.refused | running again gives the same answer | kind |
| steps.release.failed | running again may help | kind |
| steps.worker.refused | a run named what its worker does not own | |
| steps.budget.low | the balance does not cover what is scheduled | measure, needed, left |
| steps.audit.passed, steps.audit.failed | the nightly audit | |

Each has a `text` for people: what happened, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from prefect import get_client, runtime
from prefect.events import Event, emit_event

from schemas.budget import show_nanos
from schemas.errors import (
    BudgetRefused,
    DataInvalid,
    EvidenceBroken,
    NotOwned,
    Rejected,
    SpecError,
    StepsError,
    WaitingForApproval,
)
from schemas.spec.release import Release
from tasks.stages.foresee import Need
from tasks.stores.entries import Entry
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger

LONGEST = 2_000  # characters of a text
PATIENCE = 5.0  # seconds for a server to take an event
SAME_AGAIN = (SpecError, BudgetRefused, DataInvalid, EvidenceBroken)
DONE = {
    "charge": ("charged", "{release} was charged to {population}."),
    "publish": ("published", "{release} is published."),
    "burn": ("burnt", "{release}: its draws are lost and its charge is void. See: steps show {release}"),
    "withdraw": ("withdrawn", "{release} is withdrawn. See: steps show {release}"),
    "supersede": ("withdrawn", "{release} is superseded: another takes its place. See: steps show {release}"),
}


def tell(event: str, about: str, name: str, text: str, **payload: str) -> None:
    """Emits `steps.EVENT` about a release, a population or a worker; the run that tells it is added by Prefect."""
    emit_event(**_saying(event, about, name, text, payload))


def post(event: str, about: str, name: str, text: str, **payload: str) -> None:
    """The same outside a run: the server has the event when this returns, and fails if it cannot be reached."""
    said = Event(**_saying(event, about, name, text, payload)).model_dump(mode="json")
    with get_client(sync_client=True, httpx_settings={"timeout": PATIENCE}) as client:
        client.request("POST", "/events", json=[said])


def _saying(event: str, about: str, name: str, text: str, payload: dict[str, str]) -> dict[str, Any]:
    resource = {"prefect.resource.id": f"steps.{about}.{name}", "prefect.resource.name": name}
    return {"event": f"steps.{event}", "resource": resource, "payload": {**payload, "text": text[:LONGEST]}}


@contextmanager
def told_from_ledger(home: Home, release: Release) -> Iterator[None]:
    """Tells what the block did to the release: the entries that the ledger has gained, however the block ends."""
    seen = len(open_ledger(home).entries(release=release.name))
    try:
        yield
    finally:
        with suppress(StepsError):  # a ledger that cannot be read has made the block fail, and that is what is told
            for entry in open_ledger(home).entries(release=release.name)[seen:]:
                tell_entry(entry, release.domain.population)


def tell_entry(entry: Entry, population: str, by: Callable[..., None] = tell) -> None:
    """What an entry of a release says, where others may want to know."""
    if entry.kind not in DONE:
        return
    event, text = DONE[entry.kind]
    release = entry.release or ""
    paid = {}
    if entry.kind == "charge":
        left = show_nanos(entry.granted_after - entry.charged_after)
        paid = {"measure": entry.measure or "pure", "amount": show_nanos(entry.amount), "left": left}
    by(f"release.{event}", "release", release, text.format(release=release, population=population), **paid)


def tell_waiting(release: str, what_to_do: str) -> None:
    tell("release.waiting", "release", release, what_to_do)


@contextmanager
def told_how_it_ends() -> Iterator[None]:
    """Tells why a run of a release came to nothing. Its errors are fit for the public by now."""
    try:
        yield
    except (WaitingForApproval, Rejected):
        raise
    except NotOwned as error:
        tell("worker.refused", "worker", "worker", str(error))
        raise
    except StepsError as error:
        ending = "refused" if isinstance(error, SAME_AGAIN) else "failed"
        paused = " Its deployment is paused; resume it once this is mended." if runtime.deployment.id else ""
        again = paused if ending == "refused" else " Run it again to resume."
        name = (runtime.flow_run.name or "release").removeprefix("release ")
        tell(f"release.{ending}", "release", name, f"{error}{again}", kind=type(error).__name__)
        raise


@contextmanager
def told_of_audit() -> Iterator[None]:
    """Tells whether an audit came to its end and everything held; one that could not look has not passed."""
    try:
        yield
    except StepsError as error:
        tell("audit.failed", "audit", "audit", str(error))
        raise
    tell("audit.passed", "audit", "audit", "The ledger and everything published hold.")


def tell_low_balance(need: Need) -> None:
    amounts = {"measure": need.measure, "needed": show_nanos(need.needed), "left": show_nanos(need.left)}
    tell("budget.low", "population", need.population, need.text, **amounts)
