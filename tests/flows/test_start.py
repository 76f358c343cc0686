"""A start that takes seconds, and that leaves nothing behind: what is imported, what listens, what outlives a kill."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.flows.small import Small, make_small

ROOT = Path(__file__).parents[2]
HEAVY = ("prefect", "great_expectations", "pandas", "pyarrow", "scipy", "matplotlib", "sklearn", "alembic", "pydantic", "numpy")
MAIN = "from flows.cli import main; main()"


def command(home: Path, *words: object, before: str = "") -> list[str]:
    return [sys.executable, "-c", f"{before}{MAIN}", "--home", str(home), *map(str, words)]


def surroundings(folder: Path) -> dict[str, str]:
    """As a person's shell has them: no server, a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "DO_NOT_TRACK"))}
    return {**kept, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}


def imported(home: Path, *words: object, before: str = "") -> list[str]:
    """What a command imported of all that is heavy."""
    report = (
        f"import atexit, sys; atexit.register(lambda: print([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr))\n"
    )
    done = subprocess.run(
        command(home, *words, before=report + before), capture_output=True, text=True, env=surroundings(home.parent), cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("words", [["budget", "show"], ["budget", "log"], ["releases"]], ids=" ".join)
@pytest.mark.whole
def test_looking_into_the_ledger_imports_nothing_heavy(small: Small, steps, words: list[str]):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    assert imported(small.home, *words) == []


def test_the_version_is_told_at_once_with_the_commit_where_it_is_known(small: Small, steps):
    assert imported(small.home, "--version") == []
    facts = steps("--version", "--json").json
    assert facts == steps("--json", "--version").json and facts["package"] == "steps-release"
    said = steps("--version")
    assert said.code == 0 and said.out.startswith(f"steps-release {facts['version']}")
    assert facts["commit"] is None or f"(commit {facts['commit']})" in said.out
    assert not small.home.exists(), "nothing is left behind"


@pytest.mark.whole
def test_an_import_that_crept_in_would_be_seen(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    assert imported(small.home, "budget", "show", before="import numpy\n") == ["numpy"]


@pytest.mark.whole
def test_a_plan_is_made_without_prefect_validation_and_pictures(small: Small):
    found = imported(small.home, "plan", small.release)
    assert not {"prefect", "great_expectations", "matplotlib", "pandas", "sklearn"} & set(found)


class Running:
    """A real `steps run`, and what it has open."""

    def __init__(self, small: Small) -> None:
        self.small = small
        self.process = subprocess.Popen(
            command(small.home, "run", small.release, "--json"),
            env=surroundings(small.folder),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def recorded(self) -> list[tuple[str]]:
        database = (self.small.home / "prefect" / "prefect.db").as_uri() + "?mode=ro"
        with suppress(sqlite3.Error), closing(sqlite3.connect(database, uri=True)) as records:
            return records.execute("SELECT state_type FROM flow_run").fetchall()
        return []

    def wait_until_recorded(self, runs: int) -> None:
        while len(self.recorded()) < runs:
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)

    def ports(self) -> set[int]:
        """Where it listens: listening sockets that are among its open files."""
        inodes = set()
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}

    def companions(self) -> list[int]:
        """Every process of its session that lives."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found


@pytest.fixture
def granted(tmp_path: Path) -> Iterator[Small]:
    small = make_small(tmp_path, rows=2_003)
    subprocess.run(
        command(small.home, "budget", "grant", "small-people", 1, "--why", "a test"),
        check=True,
        env=surroundings(tmp_path),
        cwd=ROOT,
    )
    yield small


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.server
def test_a_server_that_cannot_start_is_told_and_nothing_is_charged(granted: Small):
    (granted.home / "prefect" / "prefect.db").mkdir(parents=True)
    said, told = Running(granted).process.communicate(timeout=120)
    assert b"server could not start" in told and b"Traceback" not in told and b'"exit_code": 1' in said
    assert not list(granted.home.glob("confidential/*/*")), "no stage was begun"


@pytest.mark.slow
@pytest.mark.server
def test_nothing_listens_after_a_kill_and_strangers_are_turned_away_before(granted: Small):
    for runs, how in enumerate((signal.SIGTERM, signal.SIGKILL), start=1):
        running = Running(granted)
        running.wait_until_recorded(runs)
        (port,) = running.ports()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/admin/settings")
        assert answers(port) and running.companions() == [running.process.pid]
        running.process.send_signal(how)
        running.process.communicate(timeout=30)
        assert running.companions() == [] and not answers(port)
    ended = Running(granted)
    said, told = ended.process.communicate(timeout=400)
    assert ended.process.returncode == 0 and b'"charges": 1' in said, told
    assert ("COMPLETED",) in ended.recorded() and len(list((granted.folder / "cache/steps-release").iterdir())) == 1
    assert not {"prefect", "great_expectations"} & set(imported(granted.home, "run", granted.release)), (
        "finished: returned at once"
    )
    assert len(ended.recorded()) == 3, "a finished release runs nothing that Prefect would record"
