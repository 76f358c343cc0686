"""Processes that race or are killed. Run as a script; forks from a process that has no threads; answers with JSON.

`fork` starts a function in a child and returns its pid and the pipe on which it reports lines.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sql

from schemas.errors import StepsError
from tasks.stores.artifacts import Store
from tasks.stores.charging import ChargeRequest
from tasks.stores.database import ENTRIES, SCHEMA_VERSION, version_of
from tasks.stores.entries import Draft, body_of
from tasks.stores.home import Home
from tasks.stores.keys import secret_key, signing_key
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.migrations import upgrade  # noqa: F401  (the children find it imported)

ROOT = Path(__file__).parents[3]
SCHEMA = pa.schema([pa.field("count", pa.int64(), nullable=False)])
POPULATION = "youth"


def run(verb: str, home: Home, **arguments: Any) -> Any:
    """Runs a verb of this script in a fresh process and returns its answer."""
    place = {"path": str(home.path), "ledger_url": home.ledger_url}
    command = [sys.executable, __file__, verb, json.dumps(place), json.dumps(arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fork(function: Callable[[Callable[[object], None]], None]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        function(lambda value: os.write(writer, f"{json.dumps(value)}\n".encode()))
    except StepsError as error:
        os.write(writer, f"{json.dumps(type(error).__name__)}\n".encode())
    finally:
        os._exit(0)


def collect(children: Iterable[tuple[int, int]]) -> list[list[Any]]:
    """What each child reported until it ended."""
    said = []
    for pid, reader in children:
        with open(reader, "rb") as pipe:
            said.append([json.loads(line) for line in pipe])
        os.waitpid(pid, 0)
    return said


def together(count: int, function: Callable[[int, Callable[[object], None]], None]) -> list[list[Any]]:
    """Starts the children, lets all of them go at the same moment, and collects what they report."""
    gate, opener = os.pipe()

    def child(number: int) -> Callable[[Callable[[object], None]], None]:
        def wait_and_go(report: Callable[[object], None]) -> None:
            os.close(opener)
            os.read(gate, 1)
            function(number, report)

        return wait_and_go

    children = [fork(child(number)) for number in range(count)]
    os.close(opener)
    return collect(children)


def request(release: str, nanos: int) -> ChargeRequest:
    return ChargeRequest(release, POPULATION, nanos, "add_remove", "person", "plan", "spec", "fingerprint")


def race(home: Home, processes: int, nanos: int) -> list[Any]:
    """Every process wants to pay for a release of its own."""

    def pay(number: int, report: Callable[[object], None]) -> None:
        open_ledger(home).charge(request(f"racer-{number}", nanos))
        report("charged")

    return [said[0] for said in together(processes, pay)]


def race_over_waves(home: Home, processes: int, waves: int, nanos: int) -> list[Any]:
    """Every process wants to pay for a release of its own, on one of several populations that share people."""

    def pay(number: int, report: Callable[[object], None]) -> None:
        asked = replace(request(f"racer-{number}", nanos), population=f"wave-{number % waves}")
        open_ledger(home).charge(asked)
        report("charged")

    return [said[0] for said in together(processes, pay)]


def race_for_one(home: Home, processes: int, nanos: int) -> list[Any]:
    """Every process wants to pay for the same release."""

    def pay(number: int, report: Callable[[object], None]) -> None:
        report(open_ledger(home).charge(request("the-one", nanos)).new)

    return [said[0] for said in together(processes, pay)]


def careless_race(home: Home, processes: int, nanos: int) -> list[Any]:
    """The control: looks at the balance, then pays. Whoever looked before the first paid sees it untouched."""

    def pay(number: int, report: Callable[[object], None]) -> None:
        if open_ledger(home).account(POPULATION).balance >= nanos:
            report("charged")
        else:
            report("BudgetRefused")

    return [said[0] for said in together(processes, pay)]


def killed_while_charging(home: Home, kills: int, nanos: int, seed: int) -> list[str]:
    """Kills process after process in its loop of charges; returns the releases whose charge was acknowledged."""
    chance = random.Random(seed)
    acknowledged: list[str] = []
    open_ledger(home).head()  # the children find everything imported

    def loop(life: int) -> Callable[[Callable[[object], None]], None]:
        def pay(report: Callable[[object], None]) -> None:
            for number in itertools.count():
                open_ledger(home).charge(request(f"life-{life}-{number}", nanos))
                report(f"life-{life}-{number}")

        return pay

    for life in range(kills):
        pid, reader = fork(loop(life))
        with open(reader, "rb") as pipe:
            said = [pipe.readline() for _ in range(chance.randrange(4))]
            time.sleep(chance.uniform(0, 0.015))  # somewhere within a charge
            os.kill(pid, signal.SIGKILL)
            said += pipe.readlines()
        os.waitpid(pid, 0)
        acknowledged += [json.loads(line) for line in said if line]
    return [name for name in acknowledged if name != "BudgetRefused"]


def die_before(step: int) -> None:
    """Kills this process right before its step-th fsync, link or unlink."""
    steps = itertools.count(1)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in ("fsync", "link", "unlink"):
        setattr(os, name, counted(getattr(os, name)))


def killed_while_writing(home: Home, stage: str, side: str) -> list[dict[str, Any]]:
    """One home per step: a first writer dies right before the step, a second one resumes with another draw."""
    found = []
    for step in itertools.count(1):
        place = Home(home.path / str(step))
        ledger = open_ledger(place)
        ledger.grant(POPULATION, 10**9, "test")
        ledger.charge(request("voter", 10**8))
        store = Store(place)

        def write_first(report: Callable[[object], None], store: Store = store, step: int = step) -> None:
            die_before(step)
            store.write("voter", stage, pa.table({"count": [1]}), SCHEMA, side)
            report("survived")

        survived = collect([fork(write_first)])[0] == ["survived"]
        found.append({"survived": survived} | resume(store, stage, side))
        if survived:
            return found


def resume(store: Store, stage: str, side: str) -> dict[str, Any]:
    visible = [pq.read_table(path)["count"].to_pylist() for path in store.home.path.rglob("*.parquet")]
    store.clean("voter")
    adopted = store.find("voter", stage)
    reference = adopted or store.write("voter", stage, pa.table({"count": [2]}), SCHEMA, side)
    return {
        "visible": visible,
        "value": store.read(reference)["count"].to_pylist(),
        "again": store.read(store.find("voter", stage))["count"].to_pylist(),
        "files": len(list(store.home.path.rglob("*.parquet"))),
        "temporaries": len(list(store.home.path.rglob(".writing-*"))),
        "charges": sum(entry.kind == "charge" for entry in store.ledger.entries()),
        "problems": store.ledger.verify(store.ledger.anchor),
    }


def die_before_statement(ledger: Ledger, step: int) -> None:
    """Kills this process right before its step-th statement, commit or fsync."""
    steps = itertools.count(1)

    def count(*_: Any) -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(descriptor: int, sync: Callable[[int], None] = os.fsync) -> None:
        count()
        sync(descriptor)

    os.fsync = counted
    for event in ("before_cursor_execute", "commit"):
        sql.event.listen(ledger.database.engine, event, count)


def killed_while_migrating(home: Home) -> list[dict[str, Any]]:
    """Process after process wants to write a first new entry and dies one step later than the one before, until one migrated."""
    found: list[dict[str, Any]] = []
    open_ledger(home).head()  # the children find everything imported
    for step in itertools.count(1):

        def migrate(report: Callable[[object], None], step: int = step) -> None:
            ledger = open_ledger(home)
            die_before_statement(ledger, step)
            ledger.grant(POPULATION, 10**9, "migration", key="migration", measure="zcdp")
            report("survived")

        assert collect([fork(migrate)])[0] == [], "the last step before the anchor's fsync was not met"
        ledger = open_ledger(home)
        with ledger.database.reading() as connection:
            version = version_of(connection)
        problems = ledger.verify(ledger.anchor)
        found.append({"version": version, "entries": len(ledger.entries()), "problems": problems})
        if version == SCHEMA_VERSION:
            return found


def migrate_at_once(home: Home, processes: int) -> list[Any]:
    """Every process writes a first new entry to an old ledger."""

    def write(number: int, report: Callable[[object], None]) -> None:
        open_ledger(home).grant(f"population-{number}", 10**9, "race", measure="zcdp" if number % 2 else "pure")
        report("granted")

    return [said[0] for said in together(processes, write)]


def write_at_once(home: Home, processes: int, stage: str, side: str) -> list[Any]:
    """Every process writes a draw of its own for the same stage; each reports the reference and what it reads."""

    def write(number: int, report: Callable[[object], None]) -> None:
        store = Store(home)
        reference = store.write("voter", stage, pa.table({"count": [number]}), SCHEMA, side)
        report([reference.model_dump(), store.read(reference)["count"].to_pylist()])

    return [said[0] for said in together(processes, write)]


OPENED = {
    "ledger": open_ledger,
    "file": lambda home: os.close(os.open(home.ledger_file, os.O_RDWR)),  # the control: closing it gives up SQLite's locks
}


def write_while_read(home: Home, opened: str) -> list[Any]:
    """While an entry is written, its process opens the ledger, as another thread would, and another process begins to read; it
    ends after the entry is acknowledged. The entry's number, and how many a later reader finds."""
    (begin, begun), (end, ended) = os.pipe(), os.pipe()

    def read(report: Callable[[object], None]) -> None:
        for each in (begun, ended):
            os.close(each)
        os.read(begin, 1)
        with open_ledger(home).database.reading() as connection:
            report(connection.scalar(sql.select(sql.func.count()).select_from(ENTRIES)))
            os.read(end, 1)

    pid, reading = fork(read)

    def draft(_: sql.Connection) -> Draft:
        OPENED[opened](home)
        os.close(begun)
        os.read(reading, 100)
        return Draft(
            "grant", "grant:late", "late", None, body_of({"why": "race", "neighbours": "add_remove", "unit": "person"}), 1
        )

    entry, _ = open_ledger(home)._write(draft)
    os.close(ended)
    os.waitpid(pid, 0)
    return [entry.seq, len(open_ledger(home).entries())]


def make_keys_at_once(home: Home, processes: int) -> list[Any]:
    def make(number: int, report: Callable[[object], None]) -> None:
        report([secret_key(home, "artifacts").hex(), signing_key(home).public_key().public_bytes_raw().hex()])

    return [said[0] for said in together(processes, make)]


def charge_on_full_disk(home: Home, limit: int) -> list[Any]:
    """Charges while no file may grow beyond the limit: the kernel refuses the write, as on a full disk."""

    def pay(number: int, report: Callable[[object], None]) -> None:
        ledger = open_ledger(home)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        ledger.charge(request("voter", 10**8))
        report("charged")

    return together(1, pay)[0]


def main() -> None:
    verb, place, arguments = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    print(json.dumps(globals()[verb](Home(**place), **arguments)))


if __name__ == "__main__":
    main()
