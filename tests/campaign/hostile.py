"""Generated hostile specs and files: each is refused in words, with the exit code of the contract and nothing charged; or works."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.cli import main
from flows.commands.answers import _refuse
from flows.runtime.boundary import fit_for_public
from schemas.errors import StepsError
from tasks.specs import load_release, refusals_naming
from tasks.stages.audit import bundles, check_bundle, check_ledger
from tasks.stages.door import look_first
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.hostile_files import SOURCES
from tests.campaign.hostile_specs import spoil, write_specs
from tests.campaign.stages import rehearsed, warm
from tests.campaign.subject import COST, POPULATION, SECRETS, Subject
from tests.campaign.traces import leaks
from tests.campaign.trials import Family, Found, Trial
from tests.campaign.ways import write_records
from tests.flows.without_prefect import run_stages

LONGEST, MOST_MEMORY = 120, 8 * 2**30  # seconds; bytes
TOLD = (0, 2, 3, 4)  # done; bad spec or usage; refused by the budget; data fail validation
REAL = 20  # one file in so many meets a real `steps run`

Command = Callable[[Home, Path], int]


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    yield {"modules": rehearsed(folder)}


def attempt(trial: Trial, plan: Command | None = None, run: Command | None = None) -> Found:
    """Even trials plan a hostile spec, odd ones release hostile records."""
    warm(trial.shared["modules"])
    chance, folder = trial.chance, trial.folder
    home = Home(folder / "home")
    open_ledger(home).grant(POPULATION, 2 * COST, "a campaign")
    write_specs(folder, chance)
    if trial.number % 2 == 0:
        write_records(folder / "records.parquet")
        kind = spoil(folder, chance)
        answered = in_words(folder, lambda: (plan or _plan)(home, folder / "release.yaml"))
        return judged(trial, home, kind, answered, charges=0)
    source = chance.choice(SOURCES)
    text = (folder / "release.yaml").read_text().replace("records.parquet", source(folder, chance))
    (folder / "release.yaml").write_text(text)
    if trial.number % (2 * REAL) == 1:
        answered = Subject(folder, home).run()
    else:
        answered = in_words(folder, lambda: (run or _run)(home, folder / "release.yaml"))
    return judged(trial, home, source.__name__, answered, charges=1 if answered == 0 else 0)


def _plan(home: Home, path: Path) -> int:
    main(["--home", str(home.path), "plan", str(path), "--json"], prog_name="steps")
    return 0  # not reached: a command ends its process


def _run(home: Home, path: Path) -> int:
    """`steps run` without Prefect: the door, the stages and the boundary that no confidential value passes."""
    try:
        asked = load_release(path)
        with refusals_naming(path):
            look_first(home, asked)
        fit_for_public("release", lambda home: run_stages(home, path))(home)
    except StepsError as error:
        _refuse(str(error), error.exit_code, as_json=True)
        return error.exit_code
    return 0


def in_words(folder: Path, command: Callable[[], int]) -> int | str:
    """The exit code of a command in a child with bounds on time and memory; what it says is kept in files."""
    child = os.fork()
    if child == 0:
        try:
            for descriptor, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            code = command()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return _ended(child)


def _ended(child: int) -> int | str:
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"does not end within {LONGEST} s"


def judged(trial: Trial, home: Home, kind: str, answered: int | str, charges: int) -> Found:
    said = {
        name: path.read_text(errors="replace") if (path := trial.folder / name).exists() else ""
        for name in ("stdout", "stderr")
    }
    lost = [] if answered in TOLD else [f"{kind}: ended with {answered}: {said['stderr'][-500:]}"]
    if "Traceback" in said["stderr"]:
        lost.append(f"{kind}: a traceback: {said['stderr'][-700:]}")
    if answered == 0 and trial.number % 2 == 0 and "draws" not in json.loads(said["stdout"] or "{}"):
        lost.append(f"{kind}: ended well without a plan")
    if answered != 0 and not said["stderr"].strip():
        lost.append(f"{kind}: refused without a word")
    lost += check_ledger(home) + [problem for each in bundles(home) for problem in check_bundle(home, each)]
    charged = open_ledger(home).account(POPULATION).charged
    over = [] if charged == charges * COST else [f"{kind}: {charged} charged, though it ended with {answered}"]
    leaked = leaks(SECRETS, home.path, trial.folder / "stdout", trial.folder / "stderr")
    return Found.in_one("spec" if trial.number % 2 == 0 else "file", lost, over, leaked)


FAMILY = Family(
    name="hostile",
    does="Generated specs (planned) and files of records (released): damaged, cut, nested, huge, of wrong types, in odd encodings, with markup, links, pipes. Each is refused in words with the exit code of the contract and nothing charged, or works.",
    trials=500,
    share=190,
    attempt=attempt,
    preparing=preparing,
)
