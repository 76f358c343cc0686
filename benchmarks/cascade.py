"""The cascade beside PrivBayes: utility of one set and CPU seconds, mean over repeats.

Run with `python -m benchmarks.cascade [FILE SIZES.json] [--repeats N]`: FILE (Parquet or CSV) holds category codes from 0,
SIZES.json the number of categories of each attribute; without them the youth voter stand-in is generated. KS is that of
SPECKS with the richest classifier that fits: all two-way interactions on the voter data, main effects on wide domains.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from schemas.domain import Domain
from schemas.release import Method, Release, ReleaseSpec
from steps_engine.baselines.privbayes import fit_privbayes, make_privbayes_plan, sample
from steps_engine.cascade import fit
from steps_engine.cascade_plan import make_cascade_plan
from steps_engine.counting import Counts, count_codes
from steps_engine.evaluation.association import association
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.margins import margins
from steps_engine.evaluation.specks import specks
from steps_engine.noise import SeededSource
from steps_engine.standin import COLUMNS, ROWS, TRAITS, youth_voter
from steps_engine.walk import walk

METHODS = {"cascade": (make_cascade_plan, fit, walk), "PrivBayes": (make_privbayes_plan, fit_privbayes, sample)}
EPSILONS = (math.exp(-2), 1.0, math.exp(2))


def read(file: str, sizes: str) -> Coded:
    known = json.loads(Path(sizes).read_text())
    frame = pd.read_csv(file) if file.endswith(".csv") else pd.read_parquet(file)
    return Coded(tuple(known), tuple(known.values()), frame[list(known)].to_numpy(np.int64))


def standin() -> Coded:
    frame, categories = youth_voter(ROWS, SeededSource("cascade benchmark")), {t.name: t.categories for t in TRAITS}
    codes = [pd.Index(categories[name]).get_indexer(frame[name]) for name in COLUMNS]
    return Coded(COLUMNS, tuple(len(categories[name]) for name in COLUMNS), np.stack(codes, axis=1))


def domain_of(table: Coded) -> Domain:
    """Whole numbers from 0; the voter domain's rule where both of its attributes are there."""
    attributes = tuple(
        {"name": f"a{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(table.sizes)
    )
    names = dict(zip(table.names, (a["name"] for a in attributes), strict=True))
    tied = {"voted", "registered"} <= set(names)
    rules = ({"never": {names["voted"]: 1, names["registered"]: 0}},) if tied else ()
    expected = round(table.total, 1 - len(str(table.total)))
    known = {"name": "d", "population": "p", "expected_rows": expected, "attributes": attributes, "rules": rules}
    return Domain.model_validate(known)


def one_set(method: str, domain: Domain, counts: Counts, epsilon: float, repeat: int) -> tuple[np.ndarray, float]:
    """Codes of one set, and the CPU seconds from the plan to the rows."""
    make, learn, draw = METHODS[method]
    asked = {"epsilon": Decimal(f"{epsilon:.6f}")}
    spec = {"name": "b", "dataset": "d", "source": "s", "privacy": asked, "method": Method(decomposition="flat")}
    release = Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")
    source, started = SeededSource((method, repeat)), time.process_time()
    plan = make(release)
    rows = draw(domain, plan, learn(domain, plan, counts, source), 1, source)
    return rows, time.process_time() - started


def figures(original: Coded, rows: np.ndarray) -> list[float]:
    made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
    ks = specks(original, made, SeededSource(0), null=0).ks
    return [ks, association(original, made).agreement["0.05"], *(margins(original, made, ways).mean for ways in (1, 2, 3))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args()
    original = read(*asked.files) if asked.files else standin()
    domain, counts = domain_of(original), count_codes(original.codes)
    title = f"{original.total:,} rows × {len(original.names)} attributes, mean of {asked.repeats} sets"
    table = Table("method", "ε", "KS", "χ² agreement at 5%", "1-way TVD", "2-way TVD", "3-way TVD", "CPU s", title=title)
    for epsilon in EPSILONS:
        for method in METHODS:
            made = [one_set(method, domain, counts, epsilon, repeat) for repeat in range(asked.repeats)]
            mean = np.mean([figures(original, rows) for rows, _ in made], axis=0)
            seconds = np.mean([spent for _, spent in made])
            table.add_row(method, f"{epsilon:.4g}", *(f"{value:.4f}" for value in mean), f"{seconds:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
