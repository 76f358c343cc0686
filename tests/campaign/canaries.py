"""Canaries: rare values planted in the records, also where something is going to fail; then everything that is open is searched."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.stages.audit import check_ledger
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.subject import COST, POPULATION, STEPS, Subject
from tests.campaign.traces import Secrets, forms, leaks, packed
from tests.campaign.trials import Family, Found, Trial
from tests.flows.small import DATASET

BIRD, NUMBER, FRACTION, ROWS = "xqcanaryzebra", 73_917_391_739, "18.73917391", 301
SECRETS: Secrets = {
    "a planted word": forms(BIRD),
    "a planted word, in capitals": forms(BIRD.upper()),
    "a planted number": forms(str(NUMBER)) | packed(NUMBER) | {"with commas": f"{NUMBER:,}".encode()},
    "a planted fraction": forms(FRACTION) | {"float64": np.float64(FRACTION).tobytes()},
}
RELEASE = "name: canary-1\ndataset: dataset.yaml\nsource: SOURCE\nprivacy: {epsilon: 0.5}\nmethod: {decomposition: tree, order: [region], sets: {count: 2}}\n"

Write = Callable[[Path], str]  # writes the records, and says what `source` is


def columns() -> dict[str, pa.Array]:
    n = np.arange(ROWS)
    region = pa.array(np.array(["north", "south", "west"])[n % 3])
    working = pa.array(np.where((n % 3 != 2) & (n % 7 == 0), "yes", "no"))
    return {
        "region": region,
        "working": working,
        "age": pa.array(18 + n % 5),
        "person": pa.array([f"{BIRD}-{i}-{NUMBER}" for i in n]),
    }


def table(**other: pa.Array) -> Write:
    def write(folder: Path) -> str:
        pq.write_table(pa.table(columns() | other), folder / "records.parquet")
        return "records.parquet"

    return write


def last(name: str, value: object) -> Write:
    """The last row has another value."""
    values = columns()[name].to_pylist()[:-1]
    kind = float if isinstance(value, float) else type(value) if isinstance(value, str) else int
    return table(**{name: pa.array([*map(kind, values), value])})


def text(tail: bytes = b"", header: str = "region,working,age,person") -> Write:
    def write(folder: Path) -> str:
        rows = zip(*(column.to_pylist() for column in columns().values()), strict=True)
        body = "\n".join(",".join(map(str, row)) for row in rows)
        (folder / "records.csv").write_bytes(f"{header}\n{body}\n".encode() + tail)
        return "records.csv"

    return write


def damaged(folder: Path) -> str:
    pq.write_table(pa.table(columns()), folder / "records.parquet", compression="none", use_dictionary=False)
    content = bytearray((folder / "records.parquet").read_bytes())
    for place in range(200, len(content) - 4000, 97):
        content[place] ^= 0xFF
    (folder / "records.parquet").write_bytes(content)
    return "records.parquet"


CASES: dict[str, Write] = {
    "records as they should be": table(),
    "a category outside the domain": last("region", BIRD),
    "an age with a fraction": last("age", float(FRACTION)),
    "an age that is none": last("age", float("nan")),
    "an infinite age": last("age", float("inf")),
    "a huge age": last("age", NUMBER),
    "an age in words": table(age=pa.array([*map(str, columns()["age"].to_pylist()[:-1]), BIRD])),
    "an age in decimals": table(age=pa.array([NUMBER] * ROWS).cast(pa.decimal128(38, 10))),
    "a column named by a value": table(**{BIRD: pa.array([NUMBER] * ROWS)}),
    "a person twice": table(person=pa.array([f"{BIRD}-0-{NUMBER}"] * ROWS)),
    "a rule broken": table(working=pa.array(["yes"] * ROWS)),
    "binary values": table(region=pa.array([BIRD.encode()] * ROWS)),
    "a text: no number": text(f"north,no,{BIRD},{BIRD}-x\n".encode()),
    "a text: too many columns": text(f"north,no,18,{BIRD}-x,{BIRD},{NUMBER}\n".encode()),
    "a text: too few columns": text(f"{BIRD}\n".encode()),
    "a text: an open quote": text(f'"{BIRD},no,18,{BIRD}-x\n'.encode()),
    "a text: not UTF-8": text(f"north,no,18,{BIRD}".encode() + b"\xff\xfe\n"),
    "a text: a header that is a value": text(header=f"region,working,age,{BIRD}"),
    "damaged pages": damaged,
    "a method that fails over a record": table(),
    "killed with exact counts on disk": table(),
}
FAILING = ("-c", f"import steps_engine.methods.tree.method as m\ndef fail(*_): raise ValueError('{BIRD} {NUMBER}') from KeyError('{BIRD}')\nm.sanitize = fail\nfrom flows.cli import main\nmain()")  # fmt: skip


def attempt(trial: Trial, program: Sequence[str] = STEPS) -> Found:
    """One case by a real `steps run`, logging everything; every file that it left, and all that it said, is searched."""
    what, write = list(CASES.items())[trial.number % len(CASES)]
    folder, home = trial.folder, Home(trial.folder / "home")
    (folder / "dataset.yaml").write_text(DATASET)
    (folder / "source").mkdir()
    (folder / "release.yaml").write_text(RELEASE.replace("SOURCE", f"source/{write(folder / 'source')}"))
    open_ledger(home).grant(POPULATION, 2 * COST, "a campaign")
    if what == "a method that fails over a record":
        program = (python(), *FAILING)
    subject = Subject(folder, home, program, {"PREFECT_LOGGING_LEVEL": "DEBUG", "PREFECT_LOGGING_ROOT_LEVEL": "DEBUG"})
    code = _killed(subject, trial) if what.startswith("killed") else subject.run()
    subject.start("releases").wait(120)
    subject.start("status").wait(120)
    said = [folder / "stdout", folder / "stderr"]
    lost = [] if isinstance(code, int) else [f"{what}: {code}"]
    lost += check_ledger(home)
    lost += (
        ["the control: what was planted is nowhere, not even in the source"] if not leaks(SECRETS, folder / "source") else []
    )
    return Found.in_one(what, lost, leaked=leaks(SECRETS, home.path, subject.tmp, *said))


def python() -> str:
    return str(Path(STEPS[0]).with_name("python"))


def _killed(subject: Subject, trial: Trial) -> int:
    """By kill -9, once there are exact counts."""
    process = subject.start("run", subject.release, "--json")
    while process.poll() is None and not list((subject.home.path / "confidential").rglob("*.parquet")):
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.wait()


FAMILY = Family(
    name="canaries",
    does="Rare words and numbers in the records of real `steps run` processes that log everything, in good runs and in failing ones; everything outside confidential/ (files, Prefect's database, logs, bundles, anchor, output) is searched in plain, UTF-16, base64, hexadecimal and packed form.",
    trials=len(CASES),
    share=150,
    attempt=attempt,
)
