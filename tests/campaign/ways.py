"""What is released in a trial: six ways to release, with the files of each. Every person's number and every exact count in them
would be recognised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.flows.small import DATASET, PERSON

METHODS = {
    "tree": "{decomposition: tree, order: [region], sets: {count: 2}}",
    "cascade": "{decomposition: cascade, sets: {count: 2, budget: shared}}",
    "pairs": "{decomposition: pairs, sets: {count: 2}}",
    "elected": "{decomposition: tree, elect: {layers: 2}}",
}
CELLS = [cell for cell in product(range(3), range(2), range(5)) if cell[:2] != (2, 1)]
EXACT = [211 + 37 * place + place * place % 23 for place in range(len(CELLS))]  # no two alike
REGIONS, ANSWERS = np.array(["north", "south", "west"]), np.array(["no", "yes"])


def write_records(path: Path) -> None:
    """As many rows in every cell as EXACT says, each of a person of its own."""
    codes = np.repeat(np.array(CELLS), EXACT, axis=0)
    codes = codes[np.random.default_rng(1).permutation(len(codes))]
    region, working = REGIONS[codes[:, 0]], ANSWERS[codes[:, 1]]
    columns = {"region": region, "working": working, "age": 18 + codes[:, 2], "person": PERSON + np.arange(len(codes))}
    pq.write_table(pa.table(columns), path)


def _write_table(folder: Path) -> None:
    write_records(folder / "records.parquet")


PLACES = DATASET.replace(
    "{name: region, kind: categorical, categories: [north, south, west]}",
    "{name: region, geography: {levels: [land, region], table: places.csv}}",
).partition("rules:")[0]


def _write_places(folder: Path) -> None:
    _write_table(folder)
    (folder / "places.csv").write_text("land,region\nmainland,north\nmainland,south\nisland,west\nisland,east\n")


HOUSEHOLDS = """
name: homes
population: small-people
expected_rows: 10000
tables:
  household:
    key: home
    attributes:
      - {name: region, kind: categorical, categories: [north, south, west]}
      - {name: owned, kind: categorical, categories: ["no", "yes"]}
  person:
    parent: household
    column: home
    key: person
    at_most: 2
    expected_rows: 15000
    reference: {relation: reference}
    kinds: relation
    attributes:
      - {name: relation, kind: categorical, categories: [reference, child]}
      - {name: working, kind: categorical, categories: ["no", "yes"]}
"""
HOMES = list(product(range(3), range(2), range(2), range(2)))  # region, owned, whether there is a child, who works
EXACT_HOMES = EXACT[: len(HOMES)]


def _write_households(folder: Path) -> None:
    """As many households of every kind as EXACT_HOMES says."""
    codes = np.repeat(np.array(HOMES), EXACT_HOMES, axis=0)
    home = PERSON + np.arange(len(codes))
    household = {"home": home, "region": REGIONS[codes[:, 0]], "owned": ANSWERS[codes[:, 1]]}
    pq.write_table(pa.table(household), folder / "households.parquet")
    child = codes[:, 2] == 1
    persons = {
        "home": np.concatenate([home, home[child]]),
        "relation": np.repeat(["reference", "child"], [len(home), child.sum()]),
        "working": ANSWERS[np.concatenate([codes[:, 3], np.arange(child.sum()) % 2])],
    }
    numbers = PERSON + len(codes) + np.arange(len(persons["home"]))
    pq.write_table(pa.table({"person": numbers, **persons}), folder / "persons.parquet")


@dataclass(frozen=True)
class Way:
    """The files of a release, and the counts that nobody outside confidential/ may see."""

    method: str
    dataset: str = DATASET
    source: str = "records.parquet"
    write: Callable[[Path], None] = _write_table
    exact: tuple[int, ...] = tuple(EXACT)
    unit: str = "person"


WAYS = {
    **{name: Way(method) for name, method in METHODS.items()},
    "places": Way("{decomposition: places, sets: {count: 2}}", PLACES, write=_write_places),
    "households": Way(
        "{decomposition: households, sets: {count: 2}}",
        HOUSEHOLDS,
        "{household: households.parquet, person: persons.parquet}",
        _write_households,
        tuple(EXACT_HOMES),
        "household",
    ),
}
