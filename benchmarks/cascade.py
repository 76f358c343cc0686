"""The cascade beside PrivBayes: utility of one set and CPU seconds, mean over repeats; and how its cost grows.

Run with `python -m benchmarks.cascade [FILE SIZES.json] [--repeats N]`: FILE (Parquet or CSV) holds category codes from 0,
SIZES.json the number of categories of each attribute; without them the youth voter stand-in is generated. KS is that of
SPECKS with the richest classifier that fits: all two-way interactions on the voter data, main effects on wide domains.
`python -m benchmarks.cascade --growth` prints growth exponents on generated tables up to 10 million rows, 100 attributes.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.association import association
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.growth import grow
from steps_engine.methods.cascade.sanitize import sanitize
from steps_engine.methods.cascade.synthesize import walk
from steps_engine.methods.planning import make_plan
from steps_engine.methods.privbayes.network import as_tree, elect_network
from steps_engine.methods.privbayes.synthesize import sample
from steps_engine.noise import Randomness, SeededRandomness
from steps_engine.studies.standin import COLUMNS, ROWS, TRAITS, youth_voter


def network(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> tuple[AttributeTree, ...]:
    return tuple(as_tree(domain, j, parents) for j, parents in elect_network(domain, plan, counts, randomness))


METHODS = {"cascade": (grow, walk), "PrivBayes": (network, sample)}
EPSILONS = (math.exp(-2), 1.0, math.exp(2))


def read(file: str, sizes: str) -> Coded:
    known = json.loads(Path(sizes).read_text())
    frame = pd.read_csv(file) if file.endswith(".csv") else pd.read_parquet(file)
    return Coded(tuple(known), tuple(known.values()), frame[list(known)].to_numpy(np.int64))


def standin() -> Coded:
    frame, categories = youth_voter(ROWS, SeededRandomness("cascade benchmark")), {t.name: t.categories for t in TRAITS}
    codes = [pd.Index(categories[name]).get_indexer(frame[name]) for name in COLUMNS]
    return Coded(COLUMNS, tuple(len(categories[name]) for name in COLUMNS), np.stack(codes, axis=1))


def domain_of(table: Coded) -> Domain:
    """Whole numbers from 0; the voter domain's rule where both of its attributes are there."""
    attributes = tuple({"name": f"a{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(table.sizes))
    names = dict(zip(table.names, (a["name"] for a in attributes), strict=True))
    tied = {"voted", "registered"} <= set(names)
    rules = ({"never": {names["voted"]: 1, names["registered"]: 0}},) if tied else ()
    expected = round(table.total, 1 - len(str(table.total)))
    known = {"name": "d", "population": "p", "expected_rows": expected, "attributes": attributes, "rules": rules}
    return Domain.model_validate(known)


def one_set(
    method: str, domain: Domain, counts: Counts, epsilon: float, repeat: int, delta: str | None = None
) -> tuple[np.ndarray, float]:
    """Codes of one set, and the CPU seconds from the plan to the rows; with δ under zero-concentrated privacy."""
    structure, draw = METHODS[method]
    asked = {"epsilon": Decimal(f"{epsilon:.6f}"), **({"delta": Decimal(delta)} if delta else {})}
    spec = {"name": "b", "dataset": "d", "source": "s", "privacy": asked, "method": method_spec(method.lower())}
    release = Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")
    randomness, started = SeededRandomness((method, repeat)), time.process_time()
    plan = make_plan(release)
    trees = structure(domain, plan, counts, randomness)
    rows = draw(domain, plan, sanitize(domain, trees, plan, counts, randomness), 1, randomness)
    return rows, time.process_time() - started


def figures(original: Coded, rows: np.ndarray) -> list[float]:
    made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
    ks = specks(original, made, SeededRandomness(0), null=0).ks
    return [ks, association(original, made).agreement["0.05"], *(margins(original, made, ways).mean for ways in (1, 2, 3))]


def measure(full: bool = False) -> dict[str, float]:
    """One voter set, and growth: CPU seconds ~ rows^a, and ~ (pairs of an attribute and a predecessor)^b."""
    original = standin()
    seconds = one_set("cascade", domain_of(original), count_codes(original.codes), 1.0, 0)[1]
    rows = [(number, 100 if full else 30) for number in ((10**5, 10**6, 10**7) if full else (10**5, 10**6))]
    wide = [(10**6 if full else 2 * 10**5, attributes) for attributes in (10, 30, 100)]
    found = {shape: costs_of(*shape) for shape in dict.fromkeys(rows + wide)}
    pairs = [attributes * (attributes - 1) / 2 for _, attributes in wide]
    figures = {
        "voter set, CPU s": seconds,
        "exponent in rows": exponent([number for number, _ in rows], [found[shape]["cpu"] for shape in rows]),
        "exponent in pairs of attributes": exponent(pairs, [found[shape]["cpu"] for shape in wide]),
    }
    for (number, attributes), cost in found.items():
        figures[f"{number:,} × {attributes}: CPU s"] = cost["cpu"]
        figures[f"{number:,} × {attributes}: s"] = cost["seconds"]
        figures[f"{number:,} × {attributes}: peak GiB"] = cost["peak GiB"]
    return figures


def costs_of(rows: int, attributes: int) -> dict[str, float]:
    """In a process of its own, whose peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.wide", str(rows), str(attributes)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def exponent(size: list[float], cost: list[float]) -> float:
    """Slope of log cost over log size."""
    return float(np.polyfit(np.log(size), np.log(cost), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--growth", action="store_true", help="how the cost grows, up to 10 million rows × 100 attributes")
    asked = parser.parse_args()
    if asked.growth:
        for figure, value in measure(full=True).items():
            Console().print(f"{figure:>40}  {value:,.4g}", highlight=False)
    else:
        compare(read(*asked.files) if asked.files else standin(), asked.repeats)


def compare(original: Coded, repeats: int) -> None:
    """Cascade and PrivBayes at three ε, in one table."""
    domain, counts = domain_of(original), count_codes(original.codes)
    title = f"{original.total:,} rows × {len(original.names)} attributes, mean of {repeats} sets"
    table = Table("method", "ε", "KS", "χ² agreement at 5%", "1-way TVD", "2-way TVD", "3-way TVD", "CPU s", title=title)
    for epsilon in EPSILONS:
        for method in METHODS:
            made = [one_set(method, domain, counts, epsilon, repeat) for repeat in range(repeats)]
            mean = np.mean([figures(original, rows) for rows, _ in made], axis=0)
            seconds = np.mean([spent for _, spent in made])
            table.add_row(method, f"{epsilon:.4g}", *(f"{value:.4f}" for value in mean), f"{seconds:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
