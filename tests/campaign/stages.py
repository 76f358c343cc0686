"""The stages as plain functions in forked processes, killed at every durable step: fsync, link, rename, unlink."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tasks.stages.validate import silent_gx
from tests.campaign.subject import Subject, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import Family, Found, Trial
from tests.campaign.ways import WAYS
from tests.flows.without_prefect import in_child, killed_at, run_stages


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    """Every durable step of every method, in an order that ends nowhere in particular when time is over."""
    modules, places = rehearsed(folder), []
    for method in WAYS:
        (folder / method).mkdir(parents=True)
        subject = make_subject(folder / method, method)
        steps = in_child(lambda writer, subject=subject: killed_at(None, subject.home, subject.release, writer))[1][0]
        places += [(method, step, stage) for step, stage in enumerate(steps, start=1)]
    random.Random(0).shuffle(places)
    yield {"places": places, "modules": modules}


def rehearsed(folder: Path) -> list[str]:
    """What a run imports on its way, imported here once: children of this process find it."""
    (folder / "rehearsal").mkdir(parents=True)
    subject = make_subject(folder / "rehearsal")

    def run(_: int) -> list[str]:
        run_stages(subject.home, subject.release)
        return list(sys.modules)

    status, (modules,) = in_child(run)
    assert status == 0, modules
    warm(modules)
    return modules


def warm(modules: list[str]) -> None:
    """Imports, and nothing else: a process that forks must have no threads."""
    for name in modules:
        if name not in sys.modules:
            with suppress(Exception):  # a module that only its package can import comes with the package
                importlib.import_module(name)
    silent_gx()


def attempt(trial: Trial, sabotage: Callable[[], None] = lambda: None) -> Found:
    """One kill at one step, and one resumption. `sabotage` breaks the child that resumes."""
    if trial.number >= len(trial.shared["places"]):
        return Found(tried=0)
    method, step, stage = trial.shared["places"][trial.number]
    warm(trial.shared["modules"])
    subject = make_subject(trial.folder, method)
    status, said = in_child(lambda writer: killed_at(step, subject.home, subject.release, writer))
    lost = [] if os.WIFSIGNALED(status) else [f"was not killed: {said}"]
    before = drawn(subject.home)
    seen = Found.in_one(stage, lost, overspending(subject.home, before), leaking(subject))
    return settled(subject, stage, before, seen, lambda: ended(subject, sabotage))


def ended(subject: Subject, sabotage: Callable[[], None] = lambda: None) -> int | str:
    """The stages to their end in a child: 0, or what it said."""

    def run(_: int) -> bool:
        sabotage()
        return run_stages(subject.home, subject.release)

    status, said = in_child(run)
    return 0 if status == 0 else f"{status} {said}"


FAMILY = Family(
    name="stages",
    does="The stages of a release, killed (kill -9) at every fsync, link, rename and unlink of each of six methods; then run to the end.",
    trials=1000,
    share=9,
    attempt=attempt,
    preparing=preparing,
)
