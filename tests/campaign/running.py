"""Runs the trials of a family, two at a time, until all are done or its time is over."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from tests.campaign.record import Record, sums
from tests.campaign.trials import COLUMNS, CannotTry, Family, Found, Trial

EVERY = 10.0  # seconds between two lines of progress

Say = Callable[[str], None]


def tried(family: Family, trial: Trial) -> Found:
    """What a trial found; one that fails itself is no survivor. Its folder stays where something was found."""
    trial.folder.mkdir(parents=True)
    try:
        found = family.attempt(trial)
    except Exception:
        found = Found(lost=(f"the trial itself failed: {traceback.format_exc()[-1500:]}",))
    if found.good:
        shutil.rmtree(trial.folder, ignore_errors=True)
    return found


def run_family(family: Family, record: Record, seed: int, deadline: float, say: Say = print) -> None:
    """Whatever of the family is not yet in the record, in order, as far as time goes."""
    folder = Path(mkdtemp(prefix=f"campaign-{family.name}-"))  # short, and on a disk that may be small
    try:
        with family.preparing(folder / "shared") as shared, _pool(family.at_once) as pool:
            whole = replace(family, trials=shared.get("trials", family.trials))
            record.plan(family.name, whole.trials)
            left = sorted(set(range(whole.trials)) - record.done(family.name))
            _run(whole, record, pool, (Trial(family.name, n, seed, folder / str(n), shared) for n in left), deadline, say)
            if len(record.done(family.name)) < whole.trials:
                say(f"{family.name}: cut short, its time is over: {progress(whole, record)}")
    except CannotTry as reason:
        say(f"{family.name}: cannot be tried here. {reason}")
    if all(found.good for found in record.of(family.name)):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"{family.name}: what failed is kept in {folder}")


def _pool(at_once: int) -> ProcessPoolExecutor:
    # Fresh interpreters: trials fork, and a process with threads must not.
    return ProcessPoolExecutor(at_once, mp_context=multiprocessing.get_context("spawn"))


def _run(family: Family, record: Record, pool: ProcessPoolExecutor, trials: Iterable[Trial], deadline: float, say: Say) -> None:
    running: dict[Future[Found], Trial] = {}
    told, queue = time.monotonic(), iter(trials)
    while True:
        while len(running) < family.at_once and time.monotonic() < deadline and (trial := next(queue, None)):
            running[pool.submit(tried, family, trial)] = trial
        if not running:
            break
        done, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
        for future in done:
            trial, found = running.pop(future), future.result()
            record.add(family.name, trial.number, found)
            _tell(family, trial, found, say)
        if time.monotonic() - told > EVERY or not running:
            told = time.monotonic()
            say(f"{family.name}: {progress(family, record)}")


def _tell(family: Family, trial: Trial, found: Found, say: Say) -> None:
    for column in COLUMNS:
        for sentence in getattr(found, column):
            say(f"{family.name} {trial.number} {found.kind}: {column.upper()}: {sentence}")


def progress(family: Family, record: Record) -> str:
    row = sums(record.of(family.name), family.trials)
    words = ", ".join(f"{value:,} {name}" for name, value in row.items() if name not in ("done", "planned"))
    return f"{row['done']} of {row['planned']} trials; {words}"


def printed(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
