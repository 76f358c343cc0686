"""What happens at night without a person: schedules that cannot go on are paused, and what needs somebody is told.

Each automation listens to Prefect's own events or to ours (`flows.output.events`). Installed again, they are updated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ActionTypes, ChangeFlowRunState, DoNothing, PauseDeployment, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from schemas.errors import SpecError

BLOCK = "steps"
BLOCK_TYPE = "custom-webhook"
RUN = "prefect.flow-run."
ENDED = {f"{RUN}{state}" for state in ("Completed", "Failed", "Crashed", "Cancelled")}
ALIVE = {f"{RUN}heartbeat", f"{RUN}Suspended", f"{RUN}Paused", f"{RUN}Cancelling", f"{RUN}AwaitingRetry"}
WOKEN = {f"{RUN}{state}" for state in ("Resuming", "Scheduled", "Pending", "Running", "Late", "Cancelling")}
FLOW_RUN = "{{ flow_run.name }}: {{ flow_run.state.message }} {{ flow_run|ui_url or '' }}"
LATE = "{{ deployment.name }} was due ({{ flow_run.name }}), and no worker took it. Is one running? steps server work"
OURS = "{{ event.payload.text }}"


@dataclass(frozen=True)
class Watch:
    """One automation: after some event (or at once) the presence, or for so long the absence, of others."""

    name: str
    why: str
    expect: frozenset[str]
    text: str
    after: frozenset[str] = frozenset()
    absent_for: timedelta | None = None
    does: tuple[ActionTypes, ...] = ()

    def automation(self, told: tuple[ActionTypes, ...]) -> AutomationCore:
        """As Prefect has it; `told`: how people are."""
        trigger = EventTrigger(
            after=set(self.after),
            expect=set(self.expect),
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive if self.absent_for is None else Posture.Proactive,
            threshold=1,
            within=self.absent_for or timedelta(0),
        )
        actions = [*self.does, *told] or [DoNothing()]
        return AutomationCore(name=f"steps: {self.name}", description=self.why, trigger=trigger, actions=actions)


def watches() -> tuple[Watch, ...]:
    return (
        Watch("refused", "A release that would be refused again is not tried again: its deployment is paused.",
              frozenset({"steps.release.refused"}), OURS, does=(PauseDeployment(source="inferred"),)),
        Watch("failed", "A release failed for a reason that may pass; it can be run again.",
              frozenset({"steps.release.failed"}), OURS),
        Watch("not owned", "Somebody asked the worker for what it does not own.", frozenset({"steps.worker.refused"}), OURS),
        Watch("late", "A run was due and no worker took it.", frozenset({f"{RUN}Late"}), LATE),
        Watch("crashed", "A run's process died. Running it again resumes.", frozenset({f"{RUN}Crashed"}), FLOW_RUN),
        Watch("zombie", "A run that was heard of and fell silent is called crashed.", frozenset(ALIVE | ENDED), "",
              after=frozenset({f"{RUN}heartbeat"}), absent_for=timedelta(seconds=90),
              does=(ChangeFlowRunState(state=StateType.CRASHED, message="Nothing was heard of it for 90 seconds."),)),
        Watch("waiting", "A release has waited for a decision for a day.", frozenset(WOKEN | ENDED), FLOW_RUN,
              after=frozenset({f"{RUN}Suspended"}), absent_for=timedelta(days=1)),
        Watch("audit failed", "The ledger or something published does not hold.", frozenset({"steps.audit.failed"}), OURS),
        Watch("low balance", "A budget does not cover what is scheduled.", frozenset({"steps.budget.low"}), OURS),
        Watch("burnt", "A charge is void: what it paid for is lost.", frozenset({"steps.release.burnt"}), OURS),
    )  # fmt: skip


def install_automations(client: Any, notify: str | None) -> tuple[list[str], bool]:
    """Their names, and whether anybody is told."""
    block, made = _webhook(client, notify), watches()
    for watch in made:
        _put(client, watch.automation(_told(watch, block)))
    return [watch.name for watch in made], block is not None


def _told(watch: Watch, block: Any) -> tuple[ActionTypes, ...]:
    if block is None or not watch.text:
        return ()
    return (SendNotification(block_document_id=block, subject=f"steps-release: {watch.name}", body=watch.text),)


def _webhook(client: Any, url: str | None) -> Any:
    """The block that notifications go through: made or changed for a URL, otherwise the one that is there, if any."""
    if url is not None:
        if not url.startswith(("https://", "http://")):
            raise SpecError("--notify is the https:// address of a webhook.")
        # What chats take; the address may hold a token, so that it is kept as a secret.
        hook = CustomWebhookNotificationBlock(
            name=BLOCK, url="{{address}}", json_data={"text": "{{subject}}\n{{body}}"}, secrets={"address": url}
        )
        return hook.save(BLOCK, overwrite=True)
    try:
        return client.read_block_document_by_name(BLOCK, BLOCK_TYPE).id
    except ObjectNotFound:
        return None


def _put(client: Any, automation: AutomationCore) -> None:
    found: Iterable[Any] = client.read_automations_by_name(automation.name)
    if same := next(iter(found), None):
        client.update_automation(same.id, automation)
    else:
        client.create_automation(automation)
