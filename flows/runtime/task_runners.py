"""Who does the work that can be shared out: this process, or the workers of a Dask cluster. STEPS_DASK decides.

Whatever is handed out, and what comes back, is pickled and travels to other processes: references and public values only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from prefect import Task, get_client
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture, as_completed
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from pydantic_core import PydanticSerializationError

from schemas.errors import InfrastructureFault, SpecError
from tasks.studies.process_pool import cores

R = TypeVar("R")

SETTING = "STEPS_DASK"


def task_runner() -> TaskRunner[Any]:
    """Unset: this process. `local:N`: N worker processes of our own. An address: the workers of the scheduler there."""
    asked = os.environ.get(SETTING, "")
    if not asked:
        return ThreadPoolTaskRunner(max_workers=cores())
    local = re.fullmatch(r"local:([1-9][0-9]{0,3})", asked)
    if not local and not re.fullmatch(r"(tcp|tls)://[^/\s]+:[0-9]+", asked):
        raise SpecError(f"{SETTING} is {asked!r}; leave it unset, or write local:2, tcp://host:port or tls://host:port.")
    try:
        from prefect_dask.task_runners import DaskTaskRunner

        from flows.runtime.dask_cluster import local_cluster
    except ImportError:
        raise SpecError(f'{SETTING} is set and prefect-dask is missing; pip install "steps-release[dask]".') from None
    if not local:
        return DaskTaskRunner(address=asked)
    workers = {"workers": int(local[1])}
    return DaskTaskRunner(cluster_class=local_cluster, cluster_kwargs=workers)  # type: ignore[arg-type]  # it is called with these


def on_workers() -> bool:
    """Whether the running flow's tasks go to other processes, perhaps on other hosts."""
    running = FlowRunContext.get()
    return running is not None and not isinstance(running.task_runner, ThreadPoolTaskRunner)


def hand_out(task: Task[..., R], *arguments: Any) -> list[PrefectFuture[R]]:
    """The task mapped over its arguments. Workers report to the server that this flow reports to, even if it is our own."""
    if not on_workers():
        return task.map(*arguments)
    with temporary_settings({PREFECT_API_URL: str(get_client(sync_client=True).api_url)}):
        try:
            return task.map(*arguments)
        except OSError as error:
            kind = type(error).__name__
        except PydanticSerializationError as error:  # what is raised while pydantic serializes, Ctrl-C too, comes out as this
            if "KeyboardInterrupt" in str(error):
                raise KeyboardInterrupt from None
            raise
    raise InfrastructureFault(f"the Dask cluster of {SETTING} cannot be reached ({kind}). Start it, then run again.")


def as_finished(futures: Iterable[PrefectFuture[R]]) -> Iterator[R]:
    """Results in the order in which they come; the first failure is raised."""
    return (_result(future) for future in as_completed(list(futures)))


def all_of(futures: list[PrefectFuture[R]]) -> list[R]:
    """Results in the order of the tasks, or the first failure once no task is running any more."""
    for future in futures:
        future.wait()
    return [_result(future) for future in futures]


def _result(future: PrefectFuture[R]) -> R:
    try:
        return future.result()
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        kind = type(error).__name__
    raise InfrastructureFault(
        f"workers of the Dask cluster died or lost touch ({kind}). What is stored is kept; see that they have memory and "
        "reach the home, then run again."
    )
