"""The stages as plain functions in forked processes: ended by SIGTERM, or stopped while another process takes up the release."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.campaign.stages import ended, preparing, warm
from tests.campaign.subject import Subject, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import Family, Found, Trial
from tests.flows.without_prefect import ended as report
from tests.flows.without_prefect import forked, in_child, killed_in, run_stages

TRIALS = 120
LONGEST = 3.0  # seconds for which one is stopped


class Ended(BaseException):
    """What SIGTERM raises wherever a process is, as a flow's process has it: whatever cleans up, cleans up."""


def _end(*_: object) -> None:
    raise Ended


@contextmanager
def of_some(folder: Path) -> Iterator[dict[str, Any]]:
    """As many of all homes and steps as there is time for, those of `stages` in another order."""
    with preparing(folder) as shared:
        places = list(shared["places"])
        random.Random(1).shuffle(places)
        yield {**shared, "places": (places * (1 + TRIALS // len(places)))[:TRIALS], "trials": TRIALS}


def attempt(trial: Trial, sabotage: Callable[[], None] = lambda: None) -> Found:
    """A home that meets SIGTERM in every stage, or one whose run is stopped somewhere; at last the release is run to its end."""
    method, steps = trial.shared["places"][trial.number]
    warm(trial.shared["modules"])
    subject = make_subject(trial.folder, method)
    return (_ended_in_each if trial.number % 2 else _stopped_in_one)(subject, method, steps, trial.chance, sabotage)


Steps = list[tuple[str, int]]


def _ended_in_each(subject: Subject, method: str, steps: Steps, _: random.Random, sabotage: Callable[[], None]) -> Found:
    lost, overspent, leaked, before = [], [], [], {}
    for stage, nth in steps:
        status, said = in_child(lambda _, at=(stage, nth): _until_ended(subject, *at, sabotage))
        lost += [] if said and str(said[0]).startswith("Ended") else [f"SIGTERM at {nth} of {stage}: {status} {said}"]
        overspent += overspending(subject.home, before)
        leaked += leaking(subject)
        before = drawn(subject.home)
    seen = Found.in_one(f"SIGTERM {method}", lost, overspent, leaked)
    return replace(settled(subject, seen.kind, before, seen, lambda: ended(subject)), tried=len(steps))


def _until_ended(subject: Subject, stage: str, nth: int, sabotage: Callable[[], None]) -> list[str]:
    signal.signal(signal.SIGTERM, _end)
    sabotage()
    return killed_in(stage, nth, subject.home, subject.release, signal.SIGTERM)


def _stopped_in_one(subject: Subject, method: str, steps: Steps, chance: random.Random, sabotage: Callable[[], None]) -> Found:
    """Both runs end well, or one says that the other was in its way; whoever was stopped draws nothing anew."""
    stage, nth = chance.choice(steps)
    first = forked(lambda _: killed_in(stage, nth, subject.home, subject.release, signal.SIGSTOP))
    if not os.WIFSTOPPED(os.waitpid(first[0], os.WUNTRACED)[1]):
        return Found.in_one(f"SIGSTOP {method}", [f"was not stopped at step {nth} of {stage}"])
    rival = forked(lambda _: (sabotage(), run_stages(subject.home, subject.release))[1])
    time.sleep(chance.uniform(0, LONGEST))
    before = drawn(subject.home)
    os.kill(first[0], signal.SIGCONT)
    answers = [report(*first), report(*rival)]
    lost = [f"stopped at {nth} of {stage}: {status} {said}" for status, said in answers if not _good(status, said)]
    seen = Found.in_one(f"SIGSTOP {method}", lost, overspending(subject.home, before), leaking(subject))
    return settled(subject, seen.kind, drawn(subject.home), seen, lambda: ended(subject))


def _good(status: int, said: list[Any]) -> bool:
    return status == 0 or bool(said) and str(said[0]).startswith("InfrastructureFault")


FAMILY = Family(
    name="signals",
    does="The stages of a release in a forked process meet SIGTERM in every stage, one after another, or SIGSTOP at a step and SIGCONT while another process has taken up the release.",
    share=240,
    attempt=attempt,
    preparing=of_some,
)
