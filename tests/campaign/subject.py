"""The release that is attacked: its files, the real `steps` that runs it, and what must hold whenever one looks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tasks.stages.audit import bundles, check_bundle, check_ledger
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.record import ROOT
from tests.campaign.traces import Secrets, exact_tables, forms, leaks, packed
from tests.campaign.trials import Found
from tests.campaign.ways import EXACT, WAYS
from tests.flows.small import PERSON

STEPS = (str(Path(sys.executable).with_name("steps")),)
POPULATION, NAME, COST = "small-people", "small-1", 500_000_000
MARK = "STEPS_CAMPAIGN_TRIAL"  # in the environment of whatever a trial starts: what outlives it is found by it
PATIENCE = 300.0  # seconds for a run on a busy machine

SECRETS: Secrets = {
    "a person's number": forms(str(PERSON)[:9]) | packed(PERSON, variable=3),
}


@dataclass(frozen=True)
class Subject:
    """A release in a folder of its own, with a grant for two of its kind: paying twice would be possible, and seen."""

    folder: Path
    home: Home
    program: Sequence[str] = STEPS
    environment: Mapping[str, str] = field(default_factory=dict)
    exact: tuple[int, ...] = tuple(EXACT)

    @property
    def release(self) -> Path:
        return self.folder / "release.yaml"

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        """`steps …` in a process group of its own, as if typed."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("STEPS_", "PREFECT_"))}
        place = {"STEPS_HOME": str(self.home.path), MARK: str(self.folder), "PYTHONPATH": str(ROOT), "TMPDIR": str(self.tmp)}
        ledger = {"STEPS_LEDGER": self.home.ledger_url} if self.home.ledger_url else {}
        output = {name: (self.folder / name).open("ab") for name in ("stdout", "stderr")}
        words = (*self.program, *map(str, words))
        environment = {**clean, **place, **ledger, **self.environment}
        return subprocess.Popen(words, cwd=self.folder, env=environment, start_new_session=True, **output)

    @property
    def tmp(self) -> Path:
        (self.folder / "tmp").mkdir(exist_ok=True)
        return self.folder / "tmp"

    def run(self) -> int | str:
        """The release, to its end: the exit code, or that it has none."""
        process = self.start("run", self.release, "--json")
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.end()
            process.wait()
            return f"did not end within {PATIENCE:.0f} s"

    def said(self, last: int = 400) -> str:
        path = self.folder / "stderr"
        return path.read_text(errors="replace")[-last:] if path.exists() else ""

    def living(self) -> list[int]:
        """Processes that this trial started, or that those did."""
        return [pid for pid in _pids() if f"{MARK}={self.folder}".encode() in _environment(pid)]

    def end(self) -> None:
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and int(path.name) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def make_subject(
    folder: Path, method: str = "tree", home: Home | None = None, program: Sequence[str] = STEPS, **environment: str
) -> Subject:
    way = WAYS[method]
    (folder / "dataset.yaml").write_text(way.dataset)
    way.write(folder)
    files = f"dataset: dataset.yaml\nsource: {way.source}\n"
    asked = f"name: {NAME}\n{files}privacy: {{epsilon: 0.5}}\nmethod: {way.method}\n"
    (folder / "release.yaml").write_text(asked)
    subject = Subject(folder, home or Home(folder / "home"), program, environment, way.exact)
    open_ledger(subject.home).grant(POPULATION, 2 * COST, "a campaign", unit=way.unit)
    return subject


def drawn(home: Home) -> dict[str, str]:
    """What is sealed: nobody may draw it again."""
    sealed = [entry.details for entry in open_ledger(home).entries() if entry.kind == "seal"]
    return {each["stage"]: each["digest"] for each in sealed if each["side"] == "public"}


def overspending(home: Home, before: Mapping[str, str]) -> list[str]:
    """More paid than the release costs, more than the grant, or something drawn anew that was drawn before."""
    account, entries = open_ledger(home).account(POPULATION), open_ledger(home).entries()
    charges, after = sum(entry.kind == "charge" for entry in entries), drawn(home)
    found = [f"{charges} charges"] if charges > 1 else []
    found += [f"{account.charged} charged, one release costs {COST}"] if account.charged > COST else []
    return found + [f"{stage} was drawn again" for stage, digest in before.items() if after.get(stage, digest) != digest]


def leaking(subject: Subject) -> list[str]:
    """Anything of the records outside confidential/: in the home, in what was printed, in temporary files."""
    places = [subject.home.path, subject.tmp, *(p for n in ("stdout", "stderr") if (p := subject.folder / n).exists())]
    return leaks(SECRETS, *places) + exact_tables(subject.exact, subject.home.path)


def losses(subject: Subject) -> list[str]:
    """What is missing or broken in a release that ran to its end."""
    home = subject.home
    ledger = open_ledger(home)
    found = check_ledger(home) + [problem for each in bundles(home) for problem in check_bundle(home, each)]
    found += [] if ledger.account(POPULATION).charged else ["the charge is not there"]
    found += [] if ledger.state(NAME) == "evaluated" else [f"the release ends as {ledger.state(NAME)}"]
    found += [] if [each.name for each in bundles(home)] == [NAME] else ["its bundle is not there"]
    lying = [path for pattern in ("cells/*.parquet", ".writing-*") for path in home.path.rglob(pattern)]
    return found + [f"left lying: {path}" for path in lying] + [f"process {pid} lives on" for pid in subject.living()]


def settled(
    subject: Subject, kind: str, before: Mapping[str, str], meanwhile: Found, run: Callable[[], int | str] | None = None
) -> Found:
    """Runs the release to its end, and says everything that does not hold then; `run` in place of the real `steps run`."""
    ended = (run or subject.run)()
    lost = [] if ended == 0 else [f"run again, it ended with {ended}: {subject.said()}"]
    lost += losses(subject) if ended == 0 else check_ledger(subject.home)
    lost += ["a traceback was printed"] if "Traceback" in subject.said(10**6) else []
    columns = (lost, overspending(subject.home, before), leaking(subject))
    subject.end()
    said = zip((meanwhile.lost, meanwhile.overspent, meanwhile.leaked), columns, strict=True)
    return Found.in_one(kind, *([*earlier, *now] for earlier, now in said))
