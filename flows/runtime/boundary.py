"""The boundary that no confidential value passes: whatever a stage raises, what leaves it is fit for the public."""

from __future__ import annotations

import functools
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from schemas.errors import InfrastructureFault, StepsError
from tasks.stores.files import private_folder
from tasks.stores.home import Home

P = ParamSpec("P")
R = TypeVar("R")


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
