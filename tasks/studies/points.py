"""A study as a grid of points. Each is computed once and kept as a small file named by what decides its figures.

Studies run on public or simulated data: no ledger, no budget, seeded randomness.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from schemas import tables
from schemas.budget import parse_delta, parse_nanos, show_nanos
from schemas.errors import DataInvalid, SpecError
from schemas.identity import canonical, digest, digest_1
from schemas.spec.domain import load_domain
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.encoding import decode
from steps_engine.noise import SeededRandomness
from steps_engine.studies import simulation, voter
from steps_engine.studies.methods import (
    SIMULATION,
    VOTER,
    Original,
    StudyMethod,
    asked_release,
    find_method,
    find_methods,
    under_zcdp,
)
from steps_engine.studies.standin import ROWS, youth_voter
from tasks.publishing.bundle import domain_bytes, read_domain
from tasks.reading.counting import count_cells
from tasks.stores.files import keep, open_folder, sweep, temporary

FIGURES = 5  # raise it when the figures of a point change: then all points are computed again
METHODS = {"voter": VOTER, "simulation": SIMULATION}
DEFINED = {"voter": voter, "simulation": simulation}  # EPSILONS, REPEATS, SETS


@dataclass(frozen=True)
class Point:
    """One cell of the grid. `epsilon` is empty for yardsticks, which spend none."""

    study: str
    method: str
    epsilon: str
    repeat: int
    sets: int
    seed: int
    data: str = ""  # hash of the voter records and their domain
    model: int = 0
    rows: int = 0

    @property
    def key(self) -> str:
        """Equal exactly when the figures are: the point, its method's settings, and the version of the figures."""
        # in the form of version 0.1.0, so that points finished then are found
        method = find_method(METHODS[self.study], self.method)
        return digest_1({**asdict(self), "method": method.definition, "figures": FIGURES})[:32]

    @property
    def name(self) -> str:
        """What a person recognises in a list of runs."""
        where = f", model {self.model}, n {self.rows}" if self.model else ""
        return f"{self.method}{', ε ' + self.epsilon if self.epsilon else ''}{where}, repeat {self.repeat}"


@dataclass(frozen=True)
class Study:
    """What was asked, checked; empty means the paper's."""

    name: str
    methods: tuple[StudyMethod, ...]
    epsilons: tuple[str, ...]
    repeats: int
    seed: int
    data: Path | None = None  # voter records instead of the stand-in,
    domain: Path | None = None  # and the dataset.yaml that says what they hold

    @property
    def sets(self) -> int:
        sets: int = DEFINED[self.name].SETS
        return sets

    @property
    def deltas(self) -> tuple[str, ...]:
        """At which ε is told of methods under zero-concentrated privacy."""
        return tuple(dict.fromkeys(method.delta for method in self.methods if method.delta))


def ask(
    name: str,
    repeats: int | None = None,
    epsilon: Sequence[str] | None = None,
    method: Sequence[str] | None = None,
    data: str | None = None,
    domain: str | None = None,
    seed: int = 1,
    delta: Sequence[str] | None = None,
) -> Study:
    """The study of that name with the paper's choices where none is given; each δ adds every method under zCDP."""
    if name not in METHODS:
        raise SpecError(f"there is no study {name!r}; there are {' and '.join(METHODS)}.")
    repeats = DEFINED[name].REPEATS if repeats is None else repeats
    if repeats < 1:
        raise SpecError(f"{repeats} repeats are asked; a study needs at least 1.")
    try:
        epsilons = tuple(dict.fromkeys(show_nanos(parse_nanos(each)) for each in epsilon or DEFINED[name].EPSILONS))
        deltas = tuple(parse_delta(each) for each in delta or ())
    except ValueError as error:
        raise SpecError(f"{error}.") from None
    if name == "simulation" and (data or domain):
        raise SpecError("the simulation study draws its own data; leave --data and --domain out.")
    if (data is None) != (domain is None):
        raise SpecError("--data and --domain go together: a file, and the dataset.yaml that says what it holds.")
    methods = find_methods(METHODS[name], method or tuple(METHODS[name]), deltas)
    records, described = (None if path is None else Path(path) for path in (data, domain))
    study = Study(name, methods, epsilons, repeats, seed, records, described)
    if deltas and not study.deltas:
        raise SpecError(f"--delta {deltas[0]} is asked, but none of the methods is drawn under zCDP. Leave --delta out.")
    if study.deltas:
        _must_be_promises(study)
    return study


def _must_be_promises(study: Study) -> None:
    """Refuses an (ε, δ) that no release may ask for, before anything is computed."""
    usual = voter.voter_domain() if study.name == "voter" else simulation.TRUTHS[1].domain
    public = Original(load_domain(study.domain) if study.domain else usual, pd.DataFrame())
    paid = next(method for method in study.methods if method.has_currencies)
    for delta, epsilon in itertools.product(study.deltas, study.epsilons):
        allowance_of(asked_release(under_zcdp(paid, delta), public, epsilon, study.sets))


def grid(study: Study, data: str) -> Iterator[Point]:
    """Every point, repeat by repeat: an interrupted study has some of everything."""
    models = [(0, 0)] if study.name == "voter" else [(m, n) for m in simulation.MODELS for n in simulation.SIZES]
    for repeat in range(1, study.repeats + 1):
        for model, rows in models:
            for method in study.methods:
                for epsilon in study.epsilons if method.spends else ("",):
                    yield Point(study.name, method.name, epsilon, repeat, study.sets, study.seed, data, model, rows)


def prepare(study: Study, out: Path) -> str:
    """Make the folder, and put the voter records there as the workers read them. Returns their hash."""
    open_folder(out / "points")
    sweep(out)
    if study.name == "simulation":
        return ""
    original = _voters(study)
    table = pa.Table.from_pandas(original.frame, preserve_index=False)
    cells = digest([original.domain.model_dump(mode="json"), original.counts.codes.tolist(), original.counts.count.tolist()])
    described = table.replace_schema_metadata({"domain": domain_bytes(original.domain)})
    _write_once(described, out / f"records-{cells[:32]}.parquet")
    return cells[:32]


def _voters(study: Study) -> Original:
    if study.data is None or study.domain is None:
        return Original(voter.voter_domain(), youth_voter(ROWS, SeededRandomness(study.seed)))
    known = load_domain(study.domain)
    voter.check_voter_domain(known)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            counts = count_cells(str(study.data), known, Path(scratch))
        except DataInvalid:
            counts = None
    if counts is None or not len(counts.count):
        raise DataInvalid(f"{study.data} does not fit {study.domain}: its columns, categories, bounds or rules differ.")
    codes = np.repeat(counts.codes, counts.count, axis=0)
    return Original(known, decode(codes, known, SeededRandomness("records")).to_pandas())


def path_of(point: Point, out: Path) -> Path:
    return out / "points" / f"{point.key}.parquet"


def compute(point: Point, out: Path) -> float:
    """The figures of one point, written once; the seconds it took, 0 if it was there."""
    if path_of(point, out).exists():
        return 0.0
    begun = time.monotonic()
    figures = _figures(point, out)
    seconds = time.monotonic() - begun
    rows = [{"measure": a, "which": b, "value": v} for (a, b), v in {**figures, ("seconds", ""): seconds}.items()]
    table = pa.Table.from_pylist(rows, schema=tables.EVALUATION)
    _write_once(table.replace_schema_metadata({"point": canonical(asdict(point))}), path_of(point, out))
    return seconds


def _figures(point: Point, out: Path) -> dict[tuple[str, str], float]:
    """Noise is seeded by the point; simulated samples by model, size and repeat, so that all methods see the same."""
    method = find_method(METHODS[point.study], point.method)
    source = SeededRandomness((point.study, point.seed, point.data, point.model, point.rows, point.repeat))
    drawing = source.child("noise", point.method, point.epsilon)
    if point.study == "voter":
        return voter.voter_figures(method, _records(out, point.data), point.epsilon, point.sets, drawing)
    truth = simulation.TRUTHS[point.model]
    sample = source.child("sample")
    return simulation.simulation_figures(method, truth, point.rows, point.epsilon, point.sets, sample, drawing)


@lru_cache(maxsize=1)
def _records(out: Path, data: str) -> Original:
    table = pq.read_table(out / f"records-{data}.parquet")
    return Original(read_domain(table.schema.metadata[b"domain"]), table.to_pandas())


def read_points(points: list[Point], out: Path) -> pd.DataFrame:
    """The figures of all points, one row each, with what they belong to."""
    found: list[pd.DataFrame] = []
    for point in points:
        where: dict[str, Any] = {key: value for key, value in asdict(point).items() if key not in ("study", "data", "seed")}
        found.append(pq.read_table(path_of(point, out)).to_pandas().assign(**where))
    return pd.concat(found, ignore_index=True)


def _write_once(table: pa.Table, final: Path) -> None:
    if not final.exists():
        with temporary(final.parent) as file:
            pq.write_table(table, file)
            keep(file, final)
