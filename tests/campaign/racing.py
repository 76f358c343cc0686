"""A race in a process of its own, which has no threads and forks the racers. Answers with JSON: what each of them heard.

Every racer plans and counts its own release, says that it is ready and waits; when all are, they pay at the same moment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from schemas.errors import StepsError
from tasks.specs import load_release
from tasks.stages.charge import charge
from tasks.stages.discretize import discretize
from tasks.stages.plan import plan
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.races import ANSWERS, write_again
from tests.campaign.stages import warm
from tests.campaign.subject import COST, POPULATION
from tests.flows.without_prefect import in_child

READY = "ready"
Racer = Callable[[Home, Path], Callable[[], str]]


def stage(home: Home, path: Path) -> Callable[[], str]:
    """The program's own: everything up to the charge beforehand, and then the stage."""
    asked = load_release(path)
    planned, cells = plan(home, asked), discretize(home, asked)

    def pay() -> str:
        charge(home, asked, planned, cells, {})
        return "charged"

    return pay


def careless(home: Home, path: Path) -> Callable[[], str]:
    """The control: looks at the balance before it pays, outside any transaction."""
    open_ledger(home).head()

    def pay() -> str:
        return "charged" if open_ledger(home).account(POPULATION).balance >= COST else "BudgetRefused"

    return pay


def forgetful(home: Home, path: Path) -> Callable[[], str]:
    """The control: says that it has paid, and has not."""
    return lambda: "charged" if path.stem == "racer-0" else "BudgetRefused"


RACERS: dict[str, Racer] = {"stage": stage, "careless": careless, "forgetful": forgetful}


def race(racer: Racer, home: Home, releases: list[Path]) -> dict[str, str]:
    gate, opener = os.pipe()
    readers = [_start(racer, home, path, gate, opener) for path in releases]
    pipes = [os.fdopen(reader) for reader in readers]
    first = [pipe.readline().strip() for pipe in pipes]
    os.close(opener)
    said = {path.stem: last_said(heard, pipe) for path, heard, pipe in zip(releases, first, pipes, strict=True)}
    for _ in releases:
        os.wait()
    return said


def last_said(heard: str, pipe: IO[str]) -> str:
    """What a racer said in the end; one that never got ready has said why."""
    return pipe.readline().strip() or ("died" if heard in ("", READY) else heard)


def told(error: StepsError) -> str:
    """The name of a refusal; of one that no racer should hear, its words too."""
    name = type(error).__name__
    return name if name in ANSWERS else " ".join(f"{name}: {error}".split())


def _start(racer: Racer, home: Home, path: Path, gate: int, opener: int) -> int:
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return reader
    os.close(opener)
    try:
        pay = racer(home, path)
        os.write(writer, f"{READY}\n".encode())
        os.read(gate, 1)
        answer = pay()
    except StepsError as error:
        answer = told(error)
    except BaseException as error:
        answer = f"failed with {type(error).__name__}: {error}"
    os.write(writer, f"{answer}\n".encode())
    os._exit(0)


def imported(racer: Racer, home: Home, path: Path) -> list[str]:
    """What a racer imports before it is ready: imported here once, all of them find it."""
    racer(home, path)
    return list(sys.modules)


if __name__ == "__main__":
    name, processes, place, url, release = sys.argv[1:]
    home = Home(Path(place), ledger_url=url or None)
    paths = [write_again(Path(release), f"racer-{number}") for number in range(int(processes))]
    warm(in_child(lambda _: imported(RACERS[name], home, paths[0]))[1][0])
    print(json.dumps(race(RACERS[name], home, paths)))
