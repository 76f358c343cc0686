"""A worker that takes from the server which of our flows to run, with which parameters, and nothing else.

Prefect's own worker runs what the server says: a command and an environment by a run's job variables or the pool's template,
code by a deployment's entrypoint and pull steps. Whoever may write to such a server runs code as its workers. Here the command,
the environment, the folder and the code are this installation's; what parameters may name is `tasks.ownership`'s.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import anyio.abc
from prefect.client.schemas.objects import FlowRun
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.runner._flow_run_executor import FlowRunExecutorContext
from prefect.runner._starter_engine import EngineCommandStarter
from prefect.utilities.processutils import command_to_string
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker, ProcessWorkerResult

from schemas.errors import NotOwned

POOL = TYPE = "steps"  # a type of its own: Prefect's own worker does not take this pool by mistake
FLOWS = {"release": "flows.release.release", "audit": "flows.audit.audit", "study": "flows.study.study"}
COMMAND = command_to_string([sys.executable, "-P", "-m", "prefect.engine"])  # -P: no module from the folder it runs in
# No variable, and none allowed: the server refuses a run that asks for a command, an environment or a folder.
TEMPLATE: dict[str, Any] = {
    "job_configuration": {"stream_output": False},
    "variables": {"type": "object", "properties": {}, "additionalProperties": False},
}


class PinnedConfiguration(ProcessJobConfiguration):
    """Whatever template and job variables say, a run is started in one way."""

    def prepare_for_flow_run(self, *arguments: Any, **named: Any) -> None:
        self.env, self.labels, self.name, self.working_dir, self.stream_output = {}, {}, None, None, False
        self.command = COMMAND
        super().prepare_for_flow_run(*arguments, **named)


class Worker(ProcessWorker):
    """Runs our flows as processes of this account. One that the worker outlives, and that outlives a killed worker."""

    type = TYPE
    job_configuration = PinnedConfiguration
    job_configuration_variables = None

    @classmethod
    def get_default_base_job_template(cls) -> dict[str, Any]:
        return TEMPLATE

    async def run(
        self,
        flow_run: FlowRun,
        configuration: ProcessJobConfiguration,
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> ProcessWorkerResult:
        entrypoint = await self._entrypoint(flow_run)

        async def ours(_: FlowRun) -> Flow[..., Any]:
            return load_flow_from_entrypoint(entrypoint)

        async with FlowRunExecutorContext() as running, anyio.create_task_group() as group:
            starter = EngineCommandStarter(
                command=configuration.command,
                entrypoint=entrypoint,
                env=configuration.env,
                stream_output=False,
                control_channel=running.control_channel,
            )
            executor = running.create_executor(flow_run, starter, resolve_flow=ours, propose_submitting=False)
            ended: list[int | None] = []

            async def execute(*, task_status: anyio.abc.TaskStatus[Any]) -> None:
                done = await executor.submit(task_status=task_status)
                ended.append(done.status_code if done else None)

            handle = await group.start(execute)
            if task_status is not None:
                task_status.started(handle.pid)
        return ProcessWorkerResult(status_code=1 if ended[0] is None else ended[0], identifier=str(handle.pid))

    async def _entrypoint(self, flow_run: FlowRun) -> str:
        name = (await self.client.read_flow(flow_run.flow_id)).name
        if name not in FLOWS:
            raise NotOwned(f'flow "{name[:200]}" is not one of this worker\'s ({", ".join(FLOWS)}). Nothing was run.')
        return FLOWS[name]
