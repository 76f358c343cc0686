"""Coverage of 95% intervals from m = 4 sets: the paper's Models 1 and 2, n = 10,000, least squares, mean over coefficients.

Run with `python -m benchmarks.coverage [--repeats 200] [--first 0] [--model 1] [--method NAME]… [--epsilon ε]…`. Methods are
those of `steps study simulation`; `steps-shared-equal` divides ε equally between layers. `cascade-shared` is combined twice:
by the rule of a release's page, and with the variance of sampled rows taken out, known here from a second walk over each
measurement. What a repeat gave is kept in .cache/coverage.jsonl (or --kept FILE), so that an interrupted run goes on where it
was; remove it when the methods have changed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from steps_engine.evaluation.combining import Combined, combine, interval, sampling_variance
from steps_engine.evaluation.regression import Estimates, Groups, linear
from steps_engine.methods.blocks import together
from steps_engine.methods.cascade.growth import grow
from steps_engine.methods.cascade.sanitize import Cascade, sanitize
from steps_engine.methods.cascade.synthesize import measurements, synthesize_cascade
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from steps_engine.studies.methods import SIMULATION, Original, StudyMethod, asked_release, draw_sets
from steps_engine.studies.simulation import CATEGORIES, TRUTHS, Truth, every_combination, simulate, with_all_categories

ROWS, SETS, EPSILONS = 10_000, 4, ("0.5", "1", "2", "5", "10")
SHARED = SIMULATION["steps-shared"]
EQUAL = StudyMethod("steps-shared-equal", "STEPS, shared, equal shares", "tree", {**SHARED.settings, "shares": "equal"})
METHODS = {name: SIMULATION[name] for name in ("original", "steps", "steps-shared")} | {
    EQUAL.name: EQUAL,
    **{name: SIMULATION[name] for name in ("cascade-shared", "pairs", "pairs-undeclared")},
}


@cache
def design(model: int) -> np.ndarray:
    """One row for every combination of the predictors: the design matrix is made once, not in every repeat."""
    import patsy

    return np.asarray(patsy.dmatrix(TRUTHS[model].regression.formula.partition("~")[2], every_combination()))


def estimates(truth: Truth, frames: list[pd.DataFrame]) -> list[Estimates]:
    """Least squares on each set."""
    found = []
    for frame in map(with_all_categories, frames):
        codes = [frame[name].cat.codes.to_numpy() for name in CATEGORIES]
        place, y = np.ravel_multi_index(codes, tuple(CATEGORIES.values())), frame["y"].to_numpy()
        x = design(truth.number)
        count, total = np.bincount(place, minlength=len(x)), np.bincount(place, y, minlength=len(x))
        found.append(linear(Groups(x, truth.names, count, total, y @ y), penalty=0.0))
    return found


def one_repeat(method: StudyMethod, truth: Truth, epsilon: str, repeat: int) -> list[tuple[str, Combined, float]]:
    """The combined inferences of one sample, with the residual degrees of freedom; every method and ε sees the same samples."""
    sample = SeededRandomness(("coverage", truth.number, repeat))
    original = Original(truth.domain, simulate(truth, ROWS, sample.child("original")), truth.analyses)
    randomness = sample.child(method.name, epsilon)
    if method.settings["decomposition"] == "cascade":
        return _cascade(method, truth, original, epsilon, randomness)
    fits = estimates(truth, draw_sets(method, original, epsilon, SETS, randomness))
    return [(method.name, _combined(fits, method.combining), min(each.freedom for each in fits))]


def _combined(fits: list[Estimates], sets: str, sampling: np.ndarray | None = None) -> Combined:
    return combine(np.array([f.value for f in fits]), np.array([f.variance for f in fits]), sets, sampling)


def _cascade(
    method, truth: Truth, original: Original, epsilon: str, randomness: SeededRandomness
) -> list[tuple[str, Combined, float]]:
    """Two walks over each plausible measurement: the first is the set, the second tells how much walks differ."""
    domain, plan = truth.domain, make_plan(asked_release(method, original, epsilon, SETS))
    trees = grow(domain, plan, original.counts, randomness)
    cascade = sanitize(domain, trees, plan, original.counts, randomness)
    alone, pairs = plan.model_copy(update={"sets": 1}), []
    for which_set in range(1, SETS + 1):
        drawn = tuple(noisy[None] for noisy, _ in measurements(plan, cascade, which_set, randomness))
        given = Cascade(domain, cascade.trees, drawn, cascade.total)
        walks = [together(synthesize_cascade(domain, alone, given, 1, randomness)).to_pandas() for _ in range(2)]
        pairs.append(estimates(truth, walks))
    first, second = zip(*pairs, strict=True)
    sampled = sampling_variance(np.array([f.value for f in first]), np.array([f.value for f in second]))
    freedom = min(each.freedom for each in first)
    plain, corrected = (_combined(list(first), "shared", sampling) for sampling in (None, sampled))
    return [(method.name, plain, freedom), (f"{method.name}, V_s taken out", corrected, freedom)]


Found = dict[str, Any]


def measured(method: StudyMethod, truth: Truth, epsilon: str, repeat: int) -> Found:
    """Per rule and coefficient: the error, and whether the interval covers; NaN where some set does not determine it."""
    begun, true, rules = time.process_time(), np.array(truth.coefficients), {}
    for name, combined, freedom in one_repeat(method, truth, epsilon, repeat):
        low, high = interval(combined.value, combined.variance, np.minimum(combined.freedom, freedom))
        covered = np.where(np.isfinite(combined.value), (low <= true) & (true <= high), np.nan)
        rules[name] = {"error": (combined.value - true).tolist(), "covered": covered.tolist()}
    return {"rules": rules, "seconds": time.process_time() - begun}


class Kept:
    """One line for every repeat."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
        self.found = {tuple(line["asked"]): line["found"] for line in lines}

    def __call__(self, method: StudyMethod, truth: Truth, epsilon: str, repeat: int) -> Found:
        asked = (method.name, truth.number, epsilon, repeat)
        if asked not in self.found:
            self.found[asked] = measured(method, truth, epsilon, repeat)
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as lines:
                lines.write(json.dumps({"asked": asked, "found": self.found[asked]}) + "\n")
        return self.found[asked]


def summary(found: list[Found]) -> Iterator[list[str]]:
    """Per rule: coverage with the standard error over repeats, whose coefficients go together, the least of a coefficient…"""
    for name in found[0]["rules"]:
        error, covered = (np.array([one["rules"][name][what] for one in found], dtype=float) for what in ("error", "covered"))
        each = np.nanmean(covered, axis=1)
        chance = each.std(ddof=1) / math.sqrt(len(each)) if len(each) > 1 else math.nan
        rmse, bias = math.sqrt(np.nanmean(error**2)), np.abs(np.nanmean(error, axis=0)).mean()
        least, seconds = np.nanmean(covered, axis=0).min(), np.mean([one["seconds"] for one in found])
        yield [name, str(len(found)), f"{np.nanmean(covered):.3f} ± {chance:.3f}", f"{least:.2f}",
               f"{rmse:.4f}", f"{bias:.4f}", f"{seconds:.2f}"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first repeat")
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--model", type=int, action="append", choices=TRUTHS)
    parser.add_argument("--kept", type=Path, default=Path(".cache/coverage.jsonl"))
    asked = parser.parse_args()
    points = [
        (method, truth, epsilon)
        for truth in (TRUTHS[number] for number in asked.model or TRUTHS)
        for method in (METHODS[name] for name in asked.method or METHODS)
        for epsilon in ((asked.epsilon or EPSILONS) if method.spends else ("",))
    ]
    kept, found = Kept(asked.kept), [list[Found]() for _ in points]
    for repeat in range(asked.first, asked.first + asked.repeats):
        for each, point in zip(found, points, strict=True):
            each.append(kept(*point, repeat))
    headings = ("method", "repeats", "coverage", "least", "RMSE", "mean |bias|", "CPU s a repeat")
    table = Table("model", "ε", *headings, title=f"n = {ROWS:,}, m = {SETS}")
    for each, (_, truth, epsilon) in zip(found, points, strict=True):
        for row in summary(each):
            table.add_row(str(truth.number), epsilon, *row)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
