"""Turns plain functions into Prefect tasks, in one place: names, retries, and a boundary that no confidential value passes.

Prefect stores exceptions, parameters, prints and results in clear. So results are never kept, prints are not logged,
between tasks travel references, and an exception leaves a stage only as text that is fit for the public.
"""

from __future__ import annotations

import functools
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypedDict, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from flows.runtime.progress import announce
from schemas.errors import InfrastructureFault, StepsError
from tasks.stores.files import private_folder
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


def fit_for_public(name: str, function: Callable[Concatenate[Home, P], R]) -> Callable[Concatenate[Home, P], R]:
    """The function, with every exception replaced by one whose text, cause and context hold no confidential value."""

    @functools.wraps(function)
    def guarded(home: Home, /, *arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(home, *arguments, **named)
        except Exception as error:
            public = publishable(error, home, name)
        raise public  # outside the handler: Python attaches no context here

    return guarded


def publishable(error: Exception, home: Home, stage_name: str) -> StepsError:
    """Our own errors without what led to them; of any other, the kind and where its text lies."""
    if isinstance(error, StepsError):
        return type(error)(*error.args)
    kind = type(error).__name__
    path = _keep_details(error, home)
    details = f"details in {path}" if path else "its details could not be written down"
    if isinstance(error, OSError):
        reason = os.strerror(error.errno) if error.errno else kind
        return InfrastructureFault(f'stage "{stage_name}" failed ({kind}: {reason}); {details}. Run again to resume.')
    return StepsError(f'stage "{stage_name}" failed ({kind}); {details}. Run again to resume once it is mended.')


def _keep_details(error: Exception, home: Home) -> Path | None:
    try:
        descriptor, path = tempfile.mkstemp(suffix=".txt", dir=private_folder(home.confidential / "errors"))
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("CONFIDENTIAL: this text may quote records.\n\n")
            file.writelines(traceback.format_exception(error))
        return Path(path)
    except (OSError, StepsError):
        return None
