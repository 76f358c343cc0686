"""A small release: three attributes and a person's number, with values in it that must never leave confidential/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_234_577  # seven digits, so that no microsecond of a time stamp looks like it
PERSON = 987_650_000_000_000  # every person's number begins like this
STRANGER = "quetzalcoatlus"  # a category that no domain knows
# What a release is paid with where ROWS is sought: its noisy number of rows is public, and is ROWS by chance once in a million.
LITTLE = "0.00005"

DATASET = """
name: small
population: small-people
expected_rows: 1000000
unit: {column: person, rows_per_person: 1}
attributes:
  - {name: region, kind: categorical, categories: [north, south, west]}
  - {name: working, kind: categorical, categories: ["no", "yes"]}
  - {name: age, kind: integer, bounds: [18, 22]}
rules:
  - never: {region: west, working: "yes"}
"""
RELEASE = """
name: NAME
dataset: dataset.yaml
source: records.parquet
privacy: {epsilon: EPSILON}
method: {decomposition: tree, order: [region], sets: {count: 2}}
"""


@dataclass(frozen=True)
class Small:
    """Where the files of a small release lie."""

    folder: Path

    @property
    def release(self) -> Path:
        return self.folder / "release.yaml"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def write(self, name: str = "small-1", epsilon: str = "0.5", more: str = "", release: str = RELEASE) -> Path:
        self.release.write_text(release.replace("NAME", name).replace("EPSILON", epsilon) + more)
        return self.release


def make_small(folder: Path, rows: int = ROWS) -> Small:
    """Specs and records; the same rows for the same number of them."""
    (folder / "dataset.yaml").write_text(DATASET)
    write_records(folder / "records.parquet", rows)
    small = Small(folder)
    small.write()
    return small


def write_records(path: Path, rows: int, region: str | None = None) -> None:
    """`region` replaces the last row's, to make the records unfit for the domain."""
    number = np.arange(rows)
    regions = pa.array(np.array(["north", "south", "west"])[number % 3])
    if region is not None:
        regions = pa.concat_arrays([regions.slice(0, rows - 1), pa.array([region])])
    working = np.where((number % 3 != 2) & (number % 7 == 0), "yes", "no")
    columns = {"region": regions, "working": working, "age": 18 + number % 5, "person": PERSON + number}
    pq.write_table(pa.table(columns), path)


CANARIES = {
    "the number of rows": re.compile(rb"(?<![0-9a-f])" + str(ROWS).encode() + rb"(?![0-9a-f])"),
    "a person's number": re.compile(str(PERSON)[:5].encode() + rb"0{4}[0-9]{6}"),
    "a category outside the domain": re.compile(STRANGER.encode()),
}


def canaries_in(content: bytes) -> list[str]:
    return [name for name, pattern in CANARIES.items() if pattern.search(content)]


def leaks(*places: Path, inside: str = "confidential") -> list[str]:
    """Every file under these places, outside confidential/, that holds a canary."""
    found = []
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and inside not in path.parts:
                found += [f"{path}: {name}" for name in canaries_in(path.read_bytes())]
    return found


def drawn(small: Small) -> tuple:
    """The small release up to its noise, by plain functions: home, release, plan, cells, tree, noisy counts."""
    from tasks.specs import load_release
    from tasks.stages.build import build_tree
    from tasks.stages.charge import charge
    from tasks.stages.discretize import discretize
    from tasks.stages.plan import plan
    from tasks.stages.sanitize import sanitize
    from tasks.stores.home import Home
    from tasks.stores.ledger import open_ledger

    home, asked = Home(small.home), load_release(small.release)
    open_ledger(home).grant("small-people", 10**9, "a test")
    planned, cells = plan(home, asked), discretize(home, asked)
    paid = charge(home, asked, planned, cells, {})
    tree = build_tree(home, asked, planned, cells, paid)
    return home, asked, planned, cells, tree, sanitize(home, asked, planned, cells, tree, paid)
