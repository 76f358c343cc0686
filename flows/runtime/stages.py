"""Turns plain functions into Prefect tasks, in one place: names, retries, and what Prefect may keep.

Prefect stores exceptions, parameters, prints and results in clear. So results are never kept, prints are not logged,
between tasks travel references, and an exception leaves a stage only as text that is fit for the public (boundary.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypedDict, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from flows.runtime.boundary import fit_for_public
from flows.runtime.progress import announce
from schemas.errors import InfrastructureFault
from tasks.stores.home import Home

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 3


class Kept(TypedDict):
    """What Prefect is told to keep of a run."""

    persist_result: bool
    log_prints: bool
    result_serializer: str


# Prefect writes a failed flow's exception to its storage whatever persist_result says: as text then, not as a pickle.
NOTHING_KEPT: Final[Kept] = {"persist_result": False, "log_prints": False, "result_serializer": "json"}


def stage(name: str, function: Callable[Concatenate[Home, P], R]) -> Task[Concatenate[Home, P], R]:
    """The function as a task of the same signature, home first; the store, not Prefect, remembers what it made."""
    return task(
        name=name,
        task_run_name=name,
        description=function.__doc__,
        retries=RETRIES,
        retry_delay_seconds=exponential_backoff(1),
        retry_condition_fn=worth_a_retry,
        cache_policy=NO_CACHE,
        **NOTHING_KEPT,
    )(_announced(name, fit_for_public(name, function)))


def _announced(name: str, function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        announce(name)
        return function(*arguments, **named)

    return run


def worth_a_retry(_task: Any, _run: Any, state: Any) -> bool:
    """Only faults of the infrastructure; a contract error gives the same answer again."""
    return isinstance(state.data, InfrastructureFault)
