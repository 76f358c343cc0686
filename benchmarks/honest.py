"""How often intervals that a page calls honest hold the truth, on a file that nothing was settled with.

Run with `python -m benchmarks.honest FILE SIZES.json --model FORMULA --table A,B … [--repeats N] [--rows N] [--sets M]
[--epsilon E] [--delta D] [--attributes NAME,…]`. FILE (Parquet or CSV) holds category codes from 0, SIZES.json the number of
categories of each attribute: attributes of two are categories, others whole numbers, of which C(name) in a formula makes
categories; what names may not hold is written _. The file is the population. Every repeat draws rows of it with replacement,
a release declares the analyses, and intervals as the manifest tells them are held against what the file itself says; of tables
those of cells in which 20 rows or more are to be expected. Without δ the budget is pure.
"""

from __future__ import annotations

import argparse
import re
import time
from decimal import Decimal
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cascade import read
from benchmarks.choosing import some_of
from schemas.plan import Analysis
from schemas.results import AnalysisResult
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.analyses.questions import model_of, questions_of
from steps_engine.analyses.results import results_of
from steps_engine.analyses.seen import frame_of
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.regression import fit
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness, integers_below

LEAST = 20  # rows that are to be expected in a cell


def domain_of(table: Coded, rows: int) -> Domain:
    attributes = []
    for name, size in zip(table.names, table.sizes, strict=True):
        said = {"categories": ("no", "yes")} if size == 2 else {"bounds": (0, size - 1)}
        attributes.append({"name": re.sub(r"\W", "_", name), "kind": "categorical" if size == 2 else "integer", **said})
    expected = round(rows, 1 - len(str(rows)))
    return Domain.model_validate({"name": "d", "population": "p", "expected_rows": expected, "attributes": tuple(attributes)})


def release(domain: Domain, analyses: list[Any], privacy: dict[str, Any], sets: int) -> Release:
    method = method_spec("pairs", sets={"count": sets, "budget": "shared"})
    said = {"name": "honest", "dataset": "-", "source": "-", "privacy": privacy, "method": method, "analyses": tuple(analyses)}
    return Release(spec=ReleaseSpec.model_validate(said), domain=domain, folder=".")


def truth(analysis: Analysis, domain: Domain, codes: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """What the file says of an analysis, and of which of it intervals are looked at."""
    if analysis.table:
        places = [domain.index(name) for name in analysis.table]
        sizes = [domain.sizes[j] for j in places]
        cells = np.ravel_multi_index(tuple(codes[:, places].T), sizes)
        shares = np.bincount(cells, minlength=int(np.prod(sizes))) / len(codes)
        return shares, shares * rows >= LEAST
    records = decode(codes, domain, SeededRandomness("population"))
    found = fit(model_of(analysis), frame_of(analysis, domain, records, codes_of(records, domain)))
    return found.value, ~found.separated


def held(told: AnalysisResult, true: np.ndarray) -> np.ndarray:
    """Whether each interval holds what is true; NaN where the manifest tells none."""
    low, high = np.array([[each.low, each.high] for each in told.estimates], dtype=float).T
    return np.where(np.isfinite(low), (low <= true) & (true <= high), np.nan)


def measure(
    population: Coded, analyses: list[Any], privacy: dict[str, Any], asked: argparse.Namespace
) -> list[tuple[str, ...]]:
    domain = domain_of(population, asked.rows)
    said = release(domain, analyses, privacy, asked.sets)
    true = {each.name: truth(each, domain, population.codes, asked.rows) for each in questions_of(said.spec.analyses, domain)}
    found: dict[str, list[np.ndarray]] = {name: [] for name in true}
    widths: dict[str, list[float]] = {name: [] for name in true}
    honest: dict[str, int] = dict.fromkeys(true, 0)
    expected = {}
    for repeat in range(asked.first, asked.first + asked.repeats):
        drawing = SeededRandomness(("honest", repeat))
        drawn = population.codes[integers_below(population.total, asked.rows, drawing.child("sample"))]
        made = run(said, count_codes(drawn), drawing.child("noise", str(privacy)))
        for told in results_of(made.plan, domain, made.records):
            if told.honest:
                found[told.name].append(held(told, true[told.name][0]))
                widths[told.name].append(told.achieved_width or np.nan)
            honest[told.name] += told.honest
            expected[told.name] = told.expected_width
    rows = []
    for name, (_, seen) in true.items():
        if not found[name]:
            rows.append((name, str(int(seen.sum())), "0", "-", "-", "-"))
            continue
        each = np.array(found[name])[:, seen]
        means = np.nanmean(each, axis=1)
        least = np.nanmean(each, axis=0).min()
        error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
        width = f"{np.mean(widths[name]):.3g} : {expected[name]:.3g}"
        rows.append((name, str(int(seen.sum())), str(honest[name]), f"{means.mean():.3f} ± {error:.3f}", f"{least:.2f}", width))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs=2, help="FILE and SIZES.json")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--table", action="append", default=[])
    parser.add_argument("--attributes", help="fewer than the file has")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the number of the first repeat")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--epsilon", type=Decimal, default=Decimal(1))
    parser.add_argument("--delta", type=Decimal, help="of zero-concentrated privacy; without it, pure")
    asked, begun = parser.parse_args(), time.process_time()
    privacy = {"epsilon": asked.epsilon, **({"delta": asked.delta} if asked.delta else {})}
    analyses = [*asked.model, *(tuple(each.split(",")) for each in asked.table)]
    title = f"{asked.rows:,} rows, m = {asked.sets}, {asked.repeats} repeats, ε = {asked.epsilon}"
    title += f" at δ = {asked.delta}" if asked.delta else ", pure"
    shown = Table("analysis", "intervals", "honest", "held", "least", "width : expected", title=title)
    for row in measure(some_of(read(*asked.files), asked.attributes, None), analyses, privacy, asked):
        shown.add_row(*row)
    Console(width=150).print(shown)
    Console().print(f"{(time.process_time() - begun) / asked.repeats:.1f} CPU s a repeat")


if __name__ == "__main__":
    main()
