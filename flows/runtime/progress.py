"""Which stage is running, for whoever watches: the terminal listens here, a worker does not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tasks.progress import listening as stages_listening

LONG = 120.0  # seconds: of a run that takes longer, the whole estimate is told
_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)
_expecting: ContextVar[Callable[[float], None] | None] = ContextVar("expecting", default=None)


def announce(stage: str) -> None:
    """Says that a stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)


def expect(seconds: float) -> None:
    """Says how long the whole run is expected to take, by its plan."""
    listener = _expecting.get()
    if listener is not None and seconds > LONG:
        listener(seconds)


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
        name = [first]

        def next_stage(stage: str) -> None:
            from prefect import runtime

            begun[stage] = runtime.flow_run.id
            progress.update(running[-1], description=name[0], completed=1)
            running.append(progress.add_task(stage, total=1))
            name[0] = stage

        def how_far(share: float) -> None:
            if share < 1:
                spent = progress.tasks[-1].elapsed or 0.0
                left = in_words(spent / share - spent)
                progress.update(running[-1], description=f"{name[0]} {share:.0%}, about {left} left", refresh=True)

        def how_long(seconds: float) -> None:
            if console.is_terminal:
                progress.console.print(f"about {in_words(seconds)} in all on a quiet core, by the plan", highlight=False)

        token = _expecting.set(how_long)
        try:
            with listening(next_stage), stages_listening(how_far):
                yield begun
        finally:
            _expecting.reset(token)
        progress.update(running[-1], description=name[0], completed=1)


def in_words(seconds: float) -> str:
    """
    >>> in_words(40), in_words(130), in_words(9000)
    ('40 s', '2 min', '2.5 h')
    """
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
