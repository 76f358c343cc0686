"""How often intervals of declared analyses cover on a coded file: pairs under ε, five sets from one measurement.

Run with `python -m benchmarks.declared FILE SIZES.json ANALYSIS … [--epsilon 2] [--attributes NAME,…] [--repeats 50]`. A repeat
is a sample with replacement from the file (Parquet of codes from 0); the truth is what all of it says. Codes are whole numbers,
each a category; an analysis is a formula or names joined by "by": "time_in_hospital ~ age + gender", "race by gender".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from schemas.plan import AnalysisPlan
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.analyses.questions import model_of
from steps_engine.analyses.results import results_of
from steps_engine.domain.encoding import count_frame
from steps_engine.evaluation.regression import INTERCEPT, fit
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness, integers_below

METHOD = {"decomposition": "pairs", "sets": {"count": 5, "budget": "shared"}}


def release(sizes: dict[str, int], rows: int, analyses: Iterable[str], epsilon: str) -> Release:
    attributes = tuple({"name": name, "kind": "integer", "bounds": (0, size - 1)} for name, size in sizes.items())
    said = {"name": "coded", "population": "coded", "expected_rows": rows, "attributes": attributes}
    asked = tuple(each if "~" in each else tuple(each.split(" by ")) for each in analyses)
    privacy = {"epsilon": Decimal(epsilon)}
    spec = {"name": "a", "dataset": "d", "source": "s", "method": METHOD, "privacy": privacy, "analyses": asked}
    return Release(spec=ReleaseSpec.model_validate(spec), domain=Domain.model_validate(said), folder=".")


def truth(analysis: AnalysisPlan, frame: pd.DataFrame) -> dict[str, float]:
    if analysis.kind != "table":
        found = fit(model_of(analysis), frame)
        return dict(zip(found.names, found.value.tolist(), strict=True))
    shares = frame.value_counts(list(analysis.table), normalize=True)
    return {", ".join(f"{n} = {v}" for n, v in zip(analysis.table, cell, strict=True)): s for cell, s in shares.items()}


def covered(asked: Release, frame: pd.DataFrame, repeat: int) -> dict[str, dict[str, float]]:
    """Of each analysis: the part of its intervals that hold the truth, and how wide they are."""
    randomness = SeededRandomness(repeat)
    rows = frame.iloc[integers_below(len(frame), len(frame), randomness)].reset_index(drop=True)
    made = run(asked, count_frame(rows, asked.domain), randomness)
    found: dict[str, dict[str, float]] = {}
    for planned, each in zip(made.plan.analyses, results_of(made.plan, asked.domain, made.records), strict=True):
        right = truth(planned, frame)
        ends = [(right.get(at.name, 0.0), at.low, at.high) for at in each.estimates if at.name != INTERCEPT]
        hits = [low <= true <= high for true, low, high in ends if low is not None and high is not None]
        wide = {"expected": each.expected_width or np.nan, "achieved": each.achieved_width or np.nan}
        found[each.name] = {"coverage": float(np.mean(hits)), **wide}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    parser.add_argument("sizes", type=Path)
    parser.add_argument("analyses", nargs="+", metavar="ANALYSIS")
    parser.add_argument("--epsilon", default="2")
    parser.add_argument("--attributes")
    parser.add_argument("--repeats", type=int, default=50)
    asked = parser.parse_args()
    sizes: dict[str, Any] = json.loads(asked.sizes.read_text())
    names = asked.attributes.split(",") if asked.attributes else list(sizes)
    frame = pd.read_parquet(asked.file)[names]
    made = release({name: sizes[name] for name in names}, len(frame), asked.analyses, asked.epsilon)
    repeats = [covered(made, frame, repeat) for repeat in range(asked.repeats)]
    shown = Table("analysis", "coverage", "expected", "achieved", title=f"ε = {asked.epsilon}, {asked.repeats} repeats")
    for name in repeats[0]:
        each = {key: np.array([repeat[name][key] for repeat in repeats]) for key in repeats[0][name]}
        error = each["coverage"].std(ddof=1) / np.sqrt(len(repeats)) if len(repeats) > 1 else np.nan
        wide = (f"± {each[key].mean():.4f}" for key in ("expected", "achieved"))
        shown.add_row(name, f"{each['coverage'].mean():.3f} ± {error:.3f}", *wide)
    Console(width=120).print(shown)


if __name__ == "__main__":
    main()
