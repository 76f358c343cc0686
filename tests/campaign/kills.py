"""Real `steps run` processes that are killed, ended or stopped at random moments, and run again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.campaign.subject import PATIENCE, STEPS, Subject, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import Family, Found, Trial
from tests.campaign.ways import WAYS

SIGNALS = ("SIGKILL", "SIGTERM", "SIGSTOP")
AT_ONCE = 3  # trials: those whose runs are stopped leave a core to the others
LONGEST = 25.0  # seconds of a run where nobody has measured it
GRACE = 30.0  # seconds in which SIGTERM must end a run


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    """How long a run takes here, beside as many as there will be: signals are to meet it, not its end."""
    subjects = [_subject(folder / str(number)) for number in range(AT_ONCE)]
    began = time.monotonic()
    codes = [run.wait(PATIENCE) for run in [each.start("run", each.release, "--json") for each in subjects]]
    assert codes == [0] * AT_ONCE, subjects[0].said()
    yield {"seconds": time.monotonic() - began}


def _subject(folder: Path) -> Subject:
    folder.mkdir(parents=True)
    return make_subject(folder)


def attempt(trial: Trial, program: Sequence[str] = STEPS) -> Found:
    """Up to three interruptions of one release; after each one looks, and at last it runs to its end."""
    chance, before, longest = trial.chance, {}, trial.shared.get("seconds", LONGEST)
    kind = SIGNALS[trial.number % len(SIGNALS)]
    subject = make_subject(trial.folder, chance.choice(list(WAYS)), program=program)
    lost: list[str] = []
    leaked: list[str] = []
    for _ in range(chance.choice((1, 1, 2, 3))):
        lost += interrupted(subject, kind, chance, longest)
        before = drawn(subject.home) | before
        leaked += leaking(subject)
    seen = Found.in_one(kind, lost, overspending(subject.home, before), leaked)
    return settled(subject, kind, before, seen)


def interrupted(subject: Subject, kind: str, chance: random.Random, longest: float) -> list[str]:
    """A run that meets the signal somewhere; says what of that is no good end."""
    process = subject.start("run", subject.release, "--json")
    _wait_for_a_moment(subject, process, chance, longest)
    if process.poll() is not None:
        return [] if process.returncode == 0 else [f"ended by itself with {process.returncode}: {subject.said()}"]
    if kind == "SIGSTOP":
        return _stopped(subject, process, chance)
    with suppress(ProcessLookupError):
        process.send_signal(getattr(signal, kind))
    try:
        process.wait(GRACE)
        return _left_behind(subject)
    except subprocess.TimeoutExpired:
        subject.end()
        process.wait()
        return [f"did not end within {GRACE:.0f} s of {kind}"]


def _wait_for_a_moment(subject: Subject, process: subprocess.Popen[bytes], chance: random.Random, longest: float) -> None:
    """Anywhere in a run; in two of three cases after it began to write, where there is something to lose."""
    deadline = time.monotonic() + 2 * longest
    if chance.random() < 2 / 3:
        while process.poll() is None and time.monotonic() < deadline and not (subject.home.path / "staging").exists():
            time.sleep(0.01)
        wait = chance.uniform(0, longest / 2)
    else:
        wait = chance.uniform(0, longest)
    with suppress(subprocess.TimeoutExpired):
        process.wait(wait)


def _left_behind(subject: Subject) -> list[str]:
    """A killed run takes everything with it that it started, within moments."""
    deadline = time.monotonic() + 5
    while (living := subject.living()) and time.monotonic() < deadline:
        time.sleep(0.1)
    subject.end()
    return [f"left {len(living)} processes behind"] if living else []


def _stopped(subject: Subject, process: subprocess.Popen[bytes], chance: random.Random) -> list[str]:
    """Stopped for a while, in half the cases while another run takes up the same release; then it goes on."""
    os.killpg(process.pid, signal.SIGSTOP)
    rival = subject.start("run", subject.release, "--json") if chance.random() < 0.5 else None
    time.sleep(chance.uniform(0.5, 12 if rival else 4))
    os.killpg(process.pid, signal.SIGCONT)
    found = []
    for each in filter(None, (process, rival)):
        try:
            code = each.wait(4 * GRACE)
            # One that waited too long for the other's lock says so, and has done nothing: that is a fault worth a retry.
            found += [] if code in (0, 1) else [f"ended with {code} after it was stopped: {subject.said()}"]
        except subprocess.TimeoutExpired:
            found.append(f"hangs {4 * GRACE:.0f} s after SIGCONT")
            subject.end()
            each.wait()
    return found


FAMILY = Family(
    name="kills",
    does="Real `steps run` processes meet kill -9, SIGTERM or SIGSTOP and SIGCONT at random moments; then the release is run to its end.",
    trials=24,
    share=300,
    attempt=attempt,
    preparing=preparing,
    at_once=AT_ONCE,
)
