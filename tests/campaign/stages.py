"""The stages as plain functions in forked processes, killed at every durable step: fsync, link, rename, unlink."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.stages.validate import silent_gx
from tests.campaign.subject import Subject, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import Family, Found, Trial
from tests.campaign.ways import WAYS
from tests.flows.without_prefect import in_child, killed_at, killed_in, run_stages

AFTER = ("evaluate", "forget")  # stages after publication


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    """Every durable step of every method, in an order that ends nowhere in particular when time is over."""
    modules, places = rehearsed(folder), []
    for method in WAYS:
        (folder / method).mkdir(parents=True)
        subject = make_subject(folder / method, method)
        steps = in_child(lambda writer, subject=subject: killed_at(None, subject.home, subject.release, writer))[1][0]
        places += [(method, kills) for kills in chains(steps)]
    random.Random(0).shuffle(places)
    yield {"places": places, "modules": modules, "trials": len(places)}


def chains(steps: Sequence[str]) -> list[list[tuple[str, int]]]:
    """Kills that one home suffers one after another: at the n-th step of every stage, each run getting as far as the next stage.
    What is published is not evaluated by a later run: kills after that have homes of their own. Every step is in one of them."""
    count = Counter(steps)
    before = [stage for stage in count if stage not in AFTER]
    together = [[(stage, nth) for stage in before if nth <= count[stage]] for nth in range(1, 1 + max(map(count.get, before)))]
    return together + [[(stage, nth)] for stage in AFTER for nth in range(1, 1 + count[stage])]


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
    """Kills of one home, each at its step of a stage; after each one looks, and at last the release is run to its end.
    `sabotage` breaks the child that does so."""
    method, kills = trial.shared["places"][trial.number]
    warm(trial.shared["modules"])
    subject, before = make_subject(trial.folder, method), {}
    lost, overspent, leaked = [], [], []
    for stage, nth in kills:
        status, said = in_child(lambda _, at=(stage, nth): killed_in(*at, subject.home, subject.release))
        lost += [] if os.WIFSIGNALED(status) else [f"was not killed at step {nth} of {stage}: {said}"]
        overspent += overspending(subject.home, before)
        leaked += leaking(subject)
        before = drawn(subject.home)
    seen = Found.in_one(method, lost, overspent, leaked)
    return replace(settled(subject, method, before, seen, lambda: ended(subject, sabotage)), tried=len(kills))


def ended(subject: Subject, sabotage: Callable[[], None] = lambda: None) -> int | str:
    """The stages to their end in a child: 0, or what it said."""

    def run(_: int) -> bool:
        sabotage()
        return run_stages(subject.home, subject.release)

    status, said = in_child(run)
    return 0 if status == 0 else f"{status} {said}"


FAMILY = Family(
    name="stages",
    does="The stages of a release, killed (kill -9) at every fsync, link, rename and unlink of each of six methods, a home suffering one kill in every stage; then run to the end.",
    share=790,
    attempt=attempt,
    preparing=preparing,
)
