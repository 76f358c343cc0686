"""The study flow: every point of the grid that is not there yet is computed, then tables, pictures and a page are made.

A point's file, not Prefect, remembers that it is done: an interrupted study goes on where it was.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import flow, get_run_logger, task, unmapped
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff
from pydantic import Field

from flows.runtime.place import home_of_run, is_embedded
from flows.runtime.stages import NOTHING_KEPT, RETRIES, worth_a_retry
from flows.runtime.task_runners import as_finished, hand_out, on_workers, task_runner
from schemas.errors import NotOwned
from tasks.studies.points import Point, ask, compute, grid, path_of, prepare
from tasks.studies.process_pool import ProcessPool, cores
from tasks.studies.report import report

BATCH = 500  # points handed to Prefect at a time


@flow(name="study", flow_run_name="study {name}", task_runner=task_runner(), **NOTHING_KEPT)
def study(
    name: Literal["voter", "simulation"],
    repeats: Annotated[int, Field(ge=1)] | None = None,
    epsilon: list[str] | None = None,
    method: list[str] | None = None,
    out: str | None = None,
    data: str | None = None,
    domain: str | None = None,
    seed: Annotated[int, Field(ge=0)] = 1,
    delta: list[str] | None = None,
) -> dict[str, Any]:
    """Compares methods over a grid of ε and repeats on public data, side by side with the paper's figures.

    Args:
        name: which of the paper's studies
        repeats: as many as the paper's, unless given
        epsilon: the paper's, unless given
        method: all, unless given
        out: on the command line alone, since a worker writes no files that a run names
        data: on the command line alone, since a worker reads no files that a run names
        domain: of `data`
        seed: the same figures for the same seed
        delta: every method under zero-concentrated privacy too, at (ε, δ); such as 1e-9
    """
    begun = time.monotonic()
    if not is_embedded():
        out = _out_of_worker(name, out, data, domain)
    asked = ask(name, repeats, epsilon, method, data, domain, seed, delta)
    folder = Path(out or f"studies/{name}").absolute()
    points = list(grid(asked, prepare(asked, folder)))
    missing = [point for point in points if not path_of(point, folder).exists()]
    with _hands(len(missing)) as work, progress(len(points), len(points) - len(missing)) as advance:
        for _ in _computed(missing, folder, work):
            advance()
    answer = report(asked, points, folder)
    return {**answer, "points": len(points), "computed": len(missing), "seconds": round(time.monotonic() - begun, 1)}


def _out_of_worker(name: str, *files: str | None) -> str:
    """A study shows what it computes, without noise: a worker, which may read confidential files, takes the stand-in alone."""
    if any(file is not None for file in files):
        raise NotOwned("out, data and domain are for `steps study` on the command line; a worker's study takes the stand-in.")
    return str(home_of_run().folder / "studies" / name)


@contextmanager
def _hands(points: int) -> Iterator[Callable[[Point, Path], float]]:
    """What computes a point where its task runs: a process of ours next to this one; on a cluster, the worker itself."""
    if on_workers():
        yield compute
    else:
        with ProcessPool(min(cores(), max(1, points))) as pool:
            yield partial(pool.call, compute)


def _computed(points: list[Point], folder: Path, work: Callable[[Point, Path], float]) -> Iterator[float]:
    """Seconds of each point as it is finished. The first failure ends the study; what is done stays."""

    @task(
        name="grid point", task_run_name="{point.name}", retries=RETRIES, retry_delay_seconds=exponential_backoff(1),
        retry_condition_fn=worth_a_retry, cache_policy=NO_CACHE, **NOTHING_KEPT,
    )  # fmt: skip
    def compute_point(point: Point, folder: Path) -> float:
        return work(point, folder)

    for first in range(0, len(points), BATCH):
        yield from as_finished(hand_out(compute_point, points[first : first + BATCH], unmapped(folder)))


@contextmanager
def progress(total: int, done: int) -> Iterator[Any]:
    """A bar with the time left on a terminal's standard error; a line per tenth in the run's log elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console, log, begun, first = Console(file=sys.stderr), get_run_logger(), time.monotonic(), done
    columns = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task("points", total=total, completed=done)

        def advance() -> None:
            nonlocal done
            done += 1
            bar.advance(shown)
            if done * 10 // total > (done - 1) * 10 // total:
                left = (time.monotonic() - begun) / (done - first) * (total - done)
                log.info("%d of %d points, about %.0f s left", done, total, left)

        yield advance
