"""Intervals of logistic regressions from m sets, on samples of the youth voter stand-in: coverage, overlap and width.

Run with `python -m benchmarks.logistic [FILE] [--repeats 50] [--first 0] [--release NAME]… [--sets 10] [--epsilon 1]
[--delta 1e-9]`. A repeat is a sample with replacement from the stand-in, or from FILE (Parquet), which has its attributes as
category codes from 0; the truth is the fit to all of it. Releases differ in what they declare: nothing, the paper's model of
32 coefficients, or the one of 30 among the registered; from the sets of each, both are fitted.
What a repeat gave is kept in .cache/logistic.jsonl (or --kept FILE), so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from steps_engine.domain.encoding import decode
from steps_engine.evaluation.combining import combine, interval, overlap
from steps_engine.evaluation.regression import MODELS, Estimates, Model, fit
from steps_engine.noise import SeededRandomness, integers_below
from steps_engine.studies.methods import Original, StudyMethod, draw_sets
from steps_engine.studies.standin import ROWS, youth_voter
from steps_engine.studies.voter import voter_domain

PAPER = MODELS["did_voter"]
AMONG = Model("among the registered", PAPER.formula.replace("prereg_state * registered", "prereg_state"), "logistic")
DECLARED: dict[str, dict[str, Any]] = {
    "undeclared": {},
    "paper": {"model": PAPER.formula, "kind": "logistic"},
    "registered": {"model": AMONG.formula, "kind": "logistic", "where": {"registered": "yes"}},
}


@dataclass(frozen=True)
class Asked:
    """One release of one sample."""

    release: str
    sets: int
    epsilon: str
    delta: str
    repeat: int
    file: str = ""  # the stand-in, if none

    @property
    def method(self) -> StudyMethod:
        settings = {"decomposition": "pairs", "sets": {"budget": "shared"}}
        return StudyMethod(self.release, self.release, "release", settings, self.delta, declared=self.release != "undeclared")


@cache
def population(file: str = "") -> pd.DataFrame:
    if not file:
        return youth_voter(ROWS, SeededRandomness(1))
    domain = voter_domain()
    codes = pd.read_parquet(file)[list(domain.names)].to_numpy(np.int64)
    return decode(codes, domain, SeededRandomness("population")).to_pandas()


def fits(frame: pd.DataFrame) -> dict[str, Estimates]:
    """Both models: of everybody, and of the registered."""
    domain = voter_domain()
    named = {each.name: each.labels for each in domain.attributes if each.kind == "categorical"}
    frame = frame.assign(**{name: pd.Categorical(frame[name], list(labels)) for name, labels in named.items()})
    among = frame[frame["registered"] == "yes"].drop(columns="registered")
    return {"30": fit(AMONG, among), "32": fit(PAPER, frame)}


@cache
def truth(file: str = "") -> dict[str, Estimates]:
    return fits(population(file))


def one_repeat(asked: Asked) -> dict[str, Any]:
    """Of each model per coefficient: error, whether it is covered, overlap with the sample's interval, width over its own."""
    drawing, begun = SeededRandomness(("logistic", asked.repeat)), time.process_time()
    rows = len(population(asked.file))
    frame = population(asked.file).iloc[integers_below(rows, rows, drawing.child("sample"))].reset_index(drop=True)
    declared = (DECLARED[asked.release],) if asked.release != "undeclared" else ()
    original = Original(voter_domain(), frame, declared)
    noise = drawing.child(asked.release, asked.sets, asked.epsilon, asked.delta)
    sets = [fits(each) for each in draw_sets(asked.method, original, asked.epsilon, asked.sets, noise)]
    samples = fits(frame)
    found = {model: compared(truth(asked.file)[model], samples[model], [each[model] for each in sets]) for model in samples}
    return {**found, "seconds": time.process_time() - begun}


def compared(true: Estimates, sample: Estimates, sets: Sequence[Estimates]) -> dict[str, list[float]]:
    """NaN for what the population, the sample or a set leaves separated or undetermined."""
    combined = combine(np.array([each.value for each in sets]), np.array([each.variance for each in sets]), "shared")
    low, high = interval(combined.value, combined.variance, combined.freedom)
    ours = interval(sample.value, sample.variance, sample.freedom)
    known = np.isfinite(combined.value) & ~np.any([each.separated for each in (true, sample, *sets)], axis=0)
    figures = {
        "error": combined.value - true.value,
        "covered": (low <= true.value) & (true.value <= high),
        "sample covered": (ours[0] <= true.value) & (true.value <= ours[1]),
        "overlap": overlap(*ours, low, high),
        "width": (high - low) / (ours[1] - ours[0]),
    }
    return {name: np.where(known, values, np.nan).tolist() for name, values in figures.items()}


def kept(file: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {key(Asked(**line["asked"])): line["found"] for line in lines}


def key(asked: Asked) -> str:
    return json.dumps(asdict(asked), sort_keys=True)


def keep(file: Path, asked: Asked, found: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps({"asked": asdict(asked), "found": found}) + "\n")


def row(release: str, model: str, found: Sequence[dict[str, Any]]) -> list[str]:
    """Means over repeats and coefficients; the standard error is that of repeats, whose coefficients go together."""
    each = {name: np.array([one[model][name] for one in found], dtype=float) for name in found[0][model]}
    known = np.isfinite(each["covered"]).any(axis=0)
    each = {name: values[:, known] for name, values in each.items()}
    covered = np.nanmean(each["covered"], axis=1)
    error = covered.std(ddof=1) / np.sqrt(len(covered)) if len(covered) > 1 else np.nan
    numbers = [f"{covered.mean():.3f} ± {error:.3f}", f"{np.nanmean(each['covered'], axis=0).min():.2f}"]
    numbers += [f"{np.nanmean(each[name]):.3f}" for name in ("overlap", "width", "sample covered")]
    seconds = np.mean([one["seconds"] for one in found])
    return [release, f"{model}, {known.sum()} determined", str(len(found)), *numbers, f"{seconds:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the number of the first sample")
    parser.add_argument("--release", action="append", choices=DECLARED)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-9", help="of zero-concentrated privacy; '' for pure")
    parser.add_argument("--kept", type=Path, default=Path(".cache/logistic.jsonl"))
    asked = parser.parse_args()
    before, found = kept(asked.kept), {name: [] for name in asked.release or DECLARED}
    for repeat in range(asked.first, asked.first + asked.repeats):
        for name, each in found.items():
            one = Asked(name, asked.sets, asked.epsilon, asked.delta, repeat, asked.file)
            if key(one) not in before:
                keep(asked.kept, one, one_repeat(one))
                before = kept(asked.kept)
            each.append(before[key(one)])
    headings = ("declared", "coefficients", "repeats", "coverage", "least", "CI overlap", "width : the sample's")
    title = f"ε = {asked.epsilon}" + (f" at δ = {asked.delta}" if asked.delta else "") + f", m = {asked.sets}"
    table = Table(*headings, "the sample's coverage", "CPU s", title=title)
    for name, each in found.items():
        for model in ("30", "32"):
            table.add_row(*row(name, model, each))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
