"""A disk that is full: a small tmpfs with room for so many pages and no more; and one that fills up under a real run."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.stores.home import Home
from tests.campaign.stages import ended, rehearsed, warm
from tests.campaign.subject import Subject, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import CannotTry, Family, Found, Trial
from tests.campaign.ways import WAYS
from tests.flows.without_prefect import in_child, run_stages

PAGE = 4096  # the least that a tmpfs gives away: between two of its pages no write can meet its end
PLENTY = 160 * 2**20
TOGETHER = 9  # rooms that one home meets, each a page wider than the one before
REAL = 2  # real runs of each method


@contextmanager
def mounted(place: Path) -> Iterator[Path]:
    place.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={PLENTY}", "tmpfs", place)
    try:
        yield place
    finally:
        for _ in range(50):
            if subprocess.run(["umount", place], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)


def _mount(*words: object) -> None:
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotTry(f"A small disk is mounted for it: be root, or try under `unshare -rm`. {done.stderr.strip()}")


def resize(place: Path, size: int) -> None:
    _mount("-o", f"remount,size={size}", place)


def used(place: Path) -> int:
    found = os.statvfs(place)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    """How many pages a whole release needs, and so every room that is too little; and real runs, which have no such number."""
    modules, places = rehearsed(folder), [(method, None) for method in WAYS for _ in range(REAL)]
    for method in WAYS:
        (folder / method).mkdir()
        places += [(method, pages) for pages in range(0, 2 + needed(folder / method, method), TOGETHER)]
    random.Random(0).shuffle(places)
    yield {"places": places, "modules": modules, "trials": len(places)}


def needed(folder: Path, method: str) -> int:
    """Pages that a release writes, and some more."""
    with mounted(folder / "disk") as disk:
        subject = make_subject(folder, method, Home(disk / "home"))
        before = used(disk)
        assert ended(subject) == 0
        return int(1.1 * (used(disk) - before)) // PAGE


def attempt(trial: Trial, sabotage: Callable[[], None] = lambda: None) -> Found:
    """Meets the full disk, again and again with a page more, then has room and runs to the end. `sabotage` breaks the children
    that meet it."""
    method, pages = trial.shared["places"][trial.number]
    warm(trial.shared["modules"])
    with mounted(trial.folder / "disk") as disk:
        subject = make_subject(trial.folder, method, Home(disk / "home"))
        if pages is None:
            lost = _filled_up(subject, disk, trial.chance)
            seen = Found.in_one("real run", lost, overspending(subject.home, {}), leaking(subject))
            return settled(subject, "real run", drawn(subject.home), seen)
        return _widened(subject, disk, pages, sabotage)


def _widened(subject: Subject, disk: Path, pages: int, sabotage: Callable[[], None]) -> Found:
    lost, overspent, leaked = [], [], []
    before, empty = {}, used(disk)
    for more in range(TOGETHER):
        lost += _full(subject, disk, empty + PAGE * (pages + more), sabotage)
        overspent += overspending(subject.home, before)
        leaked += leaking(subject)
        before = drawn(subject.home)
    seen = Found.in_one("stages", lost, overspent, leaked)
    return replace(settled(subject, "stages", before, seen, lambda: ended(subject)), tried=TOGETHER)


def _full(subject: Subject, disk: Path, size: int, sabotage: Callable[[], None]) -> list[str]:
    """The stages on a disk of this size: they end, or say that the disk is at fault."""
    resize(disk, max(size, used(disk)))

    def run(_: int) -> bool:
        sabotage()
        return run_stages(subject.home, subject.release)

    status, said = in_child(run)
    resize(disk, PLENTY)
    told = status == 0 or (said and str(said[0]).startswith(("InfrastructureFault", "OSError: [Errno 28]")))
    return [] if told else [f"met a full disk with {status} {said}"]


def _filled_up(subject: Subject, disk: Path, chance: random.Random) -> list[str]:
    """A real run whose disk fills up at a random moment: it says so within a minute and a half."""
    process = subject.start("run", subject.release, "--json")
    with suppress(subprocess.TimeoutExpired):
        process.wait(chance.uniform(1, 10))
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * PAGE)
    try:
        code = process.wait(90)
        found = [] if code in (0, 1) else [f"met a full disk with {code}: {subject.said()}"]
    except subprocess.TimeoutExpired:
        found = ["says nothing for 90 s while its disk is full"]
        subject.end()
        process.wait()
    filler.unlink()
    return found


FAMILY = Family(
    name="disk",
    does="A disk with room for 0, 1, 2 … pages of 4 KiB, up to all that a release writes, for each of six methods, a home meeting nine of them; and a disk that fills up under a real `steps run`.",
    share=720,
    attempt=attempt,
    preparing=preparing,
)
