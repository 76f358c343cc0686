"""PostgreSQL killed in mid-transaction: kill -9 of a backend, and of the server itself; then it is started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg

from tasks.stages.audit import check_ledger
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.races import home_on, server_of, serving
from tests.campaign.record import ROOT
from tests.campaign.subject import COST, POPULATION, STEPS, drawn, leaking, make_subject, overspending, settled
from tests.campaign.trials import Family, Found, Trial
from tests.postgres import Postgres

PAYING = 4  # processes
NOTHING = "Nothing was written"
KINDS = ("backend", "server", "backend", "server", "real run")


def attempt(trial: Trial, payer: str = "ledger") -> Found:
    kind, server = KINDS[trial.number % len(KINDS)], server_of(trial.shared)
    must_run(server)
    home = home_on(trial.shared, trial.folder, f"killed_{trial.number}")
    if kind == "real run":
        return _real_run(trial, home, server)
    open_ledger(home).grant(POPULATION, 10**6 * COST, "a campaign")
    heard = trial.folder / "heard"
    words = (sys.executable, "-m", "tests.campaign.paying", payer, home.ledger_url or "", str(home.path), str(heard))
    payers = [subprocess.Popen((*words, f"payer-{n}"), cwd=ROOT, stderr=subprocess.DEVNULL) for n in range(PAYING)]
    try:
        _until(lambda: heard.exists() and heard.stat().st_size > 0, 120)
        for _ in range(trial.chance.randrange(2, 5)):
            time.sleep(trial.chance.uniform(0.05, 0.6))
            _kill(kind, server, trial.chance)
    finally:
        time.sleep(0.5)
        for each in payers:
            each.kill()
            each.wait()
    must_run(server)
    return judged(home, kind, heard.read_text().splitlines())


def judged(home: Home, kind: str, heard: Sequence[str]) -> Found:
    """What every payer heard, against what the ledger holds after all."""
    entries = [entry for entry in open_ledger(home).entries() if entry.kind == "charge"]
    charged = [entry.release for entry in entries]
    answers = [line.split(" ", 1) for line in heard if " " in line]
    paid = {name for name, answer in answers if answer == "paid"}
    lost = [f"{name} was told that it had paid" for name in sorted(paid - set(charged))]
    lost += [f"{name} {answer}" for name, answer in answers if answer.startswith("CRASH")]
    lost += [
        f"{n} is charged and was told otherwise" for n, said in answers if NOTHING in said and n in charged and n not in paid
    ]
    lost += [] if paid else ["nobody paid anything: the trial shows nothing"]
    over = [f"{len(charged) - len(set(charged))} charged twice"] if len(charged) > len(set(charged)) else []
    account = open_ledger(home).account(POPULATION)
    over += [] if account.charged == sum(entry.amount for entry in entries) else ["the account is not the sum of its charges"]
    return Found.in_one(kind, lost + check_ledger(home), over)


def _kill(kind: str, server: Postgres, chance: random.Random) -> None:
    if kind == "server":
        os.kill(server.postmaster, signal.SIGKILL)
        time.sleep(chance.uniform(0, 0.3))
        must_run(server)
    elif (backend := _in_a_transaction(server)) is not None:
        with suppress(ProcessLookupError):
            os.kill(backend, signal.SIGKILL)
        must_run(server)


def _in_a_transaction(server: Postgres) -> int | None:
    """The process of a backend that has begun a transaction and not ended it."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname <> 'postgres'"
    )
    deadline = time.monotonic() + 10
    with suppress(psycopg.OperationalError), psycopg.connect(server.url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            if found := connection.execute(query).fetchall():
                return found[0][0]
    return None


def must_run(server: Postgres) -> None:
    """Answers again: after the death of a backend by itself, after its own when it is started."""
    answered = 0
    for _ in range(600):
        with suppress(psycopg.OperationalError), psycopg.connect(server.url, connect_timeout=5):
            answered += 1
        if answered == 3:  # once is not enough: it may not have noticed yet that a backend died
            return
        if not _alive(server):
            with suppress(AssertionError):  # its last processes may still hold the memory
                server.start()
        time.sleep(0.1)
    raise RuntimeError("PostgreSQL does not come back")


def _alive(server: Postgres) -> bool:
    try:
        os.kill(server.postmaster, 0)
    except (ProcessLookupError, FileNotFoundError, ValueError, IndexError):
        return False
    return True


def _until(holds, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)


def _real_run(trial: Trial, home: Home, server: Postgres, program: Sequence[str] = STEPS) -> Found:
    """The server dies somewhere in a real run; the run says so, or ends well. Then it is run again."""
    subject = make_subject(trial.folder, home=home, program=program)
    process = subject.start("run", subject.release, "--json")
    with suppress(subprocess.TimeoutExpired):
        process.wait(trial.chance.uniform(1, 10))
    _kill("server", server, trial.chance)
    code = process.wait(300)
    lost = [] if code in (0, 1) else [f"ended with {code} when its ledger went away: {subject.said()}"]
    before = drawn(home)
    seen = Found.in_one("real run", lost, overspending(home, before), leaking(subject))
    return settled(subject, "real run", before, seen)


FAMILY = Family(
    name="postgres",
    does="Four processes charge without a pause while a backend in mid-transaction, or the PostgreSQL server, is killed (kill -9) and started again; some trials kill the server under a real `steps run`.",
    trials=20,
    share=260,
    attempt=attempt,
    preparing=serving,
    at_once=1,
)
