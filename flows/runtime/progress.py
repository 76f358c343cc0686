"""Which stage is running, for whoever watches: the terminal listens here, a worker does not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


def announce(stage: str) -> None:
    """Says that a stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def shown_in_terminal(first: str) -> Iterator[dict[str, str]]:
    """A line with the time of each stage, on standard error; yields the stages begun, with Prefect's id of their run."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        running = [progress.add_task(first, total=1)]
        begun: dict[str, str] = {}

        def next_stage(stage: str) -> None:
            from prefect import runtime

            begun[stage] = runtime.flow_run.id
            progress.update(running[-1], completed=1)
            running.append(progress.add_task(stage, total=1))

        with listening(next_stage):
            yield begun
        progress.update(running[-1], completed=1)
