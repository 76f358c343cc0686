"""Sixty-four processes want the last of a budget at the same moment, by the stage `charge`: never more than the grant."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tasks.stages.audit import check_ledger
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.record import ROOT
from tests.campaign.subject import COST, NAME, POPULATION, Subject, make_subject
from tests.campaign.trials import CannotTry, Family, Found, Trial, nothing_shared
from tests.postgres import Postgres, running_postgres

PROCESSES = 64
ANSWERS = ("charged", "BudgetRefused", "InfrastructureFault")
REAL = 6  # real `steps run` processes at once …
SELDOM = 6  # … in one trial of so many


@contextmanager
def serving(_: Path) -> Iterator[dict[str, Any]]:
    """A PostgreSQL server for the trials; each makes a database of its own on it."""
    try:
        with running_postgres() as server:
            yield {"binaries": str(server.binaries), "folder": str(server.folder), "port": server.port}
    except pytest.skip.Exception as missing:
        raise CannotTry(str(missing)) from None


def server_of(shared: dict[str, Any]) -> Postgres:
    return Postgres(Path(shared["binaries"]), Path(shared["folder"]), shared["port"])


def home_on(shared: dict[str, Any], folder: Path, database: str) -> Home:
    """A home whose ledger is an empty database; without a server the SQLite file of the home."""
    if not shared:
        return Home(folder / "home")
    server = server_of(shared)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {database}")
    return Home(folder / "home", ledger_url=server.url.rpartition("/")[0] + f"/{database}")


def attempt(trial: Trial, racer: str = "stage") -> Found:
    """As many as there is room for are charged; the others are refused, and the ledger tells the same story."""
    home = home_on(trial.shared, trial.folder, f"race_{trial.number}")
    subject = make_subject(trial.folder, home=home)  # granted what two releases cost
    if trial.number % SELDOM == SELDOM - 1:
        return judged(home, 2, "real runs", run_at_once(subject))
    room = trial.chance.randrange(3, 24)
    open_ledger(home).grant(POPULATION, (room - 2) * COST, "more of it")
    words = (sys.executable, "-m", "tests.campaign.racing", racer, str(PROCESSES), str(home.path), home.ledger_url or "")
    done = subprocess.run((*words, str(subject.release)), cwd=ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        return Found(lost=(f"the race itself failed: {done.stderr[-800:]}",), kind="stage charge")
    return judged(home, room, "stage charge", json.loads(done.stdout))


def run_at_once(subject: Subject) -> dict[str, str]:
    """Real `steps run` processes, each with a release of its own: what became of each."""
    answers = {0: "charged", 3: "BudgetRefused", 1: "InfrastructureFault"}
    running = {}
    for name in (f"racer-{number}" for number in range(REAL)):
        path = write_again(subject.release, name)
        running[name] = subject.start("run", path, "--json")
    return {name: answers.get(code := each.wait(900), f"ended with {code}") for name, each in running.items()}


def write_again(release: Path, name: str) -> Path:
    """The same release under another name, beside it."""
    path = release.with_name(f"{name}.yaml")
    path.write_text(release.read_text().replace(f"name: {NAME}", f"name: {name}"))
    return path


def judged(home: Home, room: int, kind: str, said: dict[str, str]) -> Found:
    """What the racers heard, against what the ledger holds."""
    ledger = open_ledger(home)
    account, charged = ledger.account(POPULATION), [each.release for each in ledger.entries() if each.kind == "charge"]
    told = {name for name, answer in said.items() if answer == "charged"}
    lost = [f"{name} was told that it had paid, and the ledger does not know" for name in told - set(charged)]
    lost += [f"{name}: {answer}" for name, answer in said.items() if answer not in ANSWERS]
    if "InfrastructureFault" not in said.values() and len(told) < room:
        lost.append(f"{len(told)} were charged, though there was room for {room}")
    over = [f"{len(told)} were told that they had paid; there was room for {room}"] if len(told) > room else []
    over += [f"{account.charged} charged of {account.granted}"] if account.charged > account.granted else []
    over += ["a release was charged twice"] if len(charged) > len(set(charged)) else []
    return Found.in_one(kind, lost + check_ledger(home), over)


def _family(name: str, does: str, preparing: Any, trials: int) -> Family:
    text = f"{PROCESSES} processes at once pay for releases of their own by the stage `charge`, with room for 3 to 23; some trials are {REAL} real `steps run`, with room for two. {does}"
    return Family(name, text, trials=trials, share=220, attempt=attempt, preparing=preparing, at_once=1)


ON_SQLITE = _family("races-sqlite", "The ledger is a SQLite file.", nothing_shared, trials=12)
ON_POSTGRESQL = _family("races-postgresql", "The ledger is on PostgreSQL.", serving, trials=8)
