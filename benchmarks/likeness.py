"""How alike one set of `auto` is to its records, at six points: KS of SPECKS, agreement of χ² tests, mean 3-way distance.

Run with `python -m benchmarks.likeness [FILE SIZES.json] [--repeats 10]`: the arguments of benchmarks/cascade.py. What a set
gave is kept in .cache/likeness.jsonl (or --kept FILE), so that an interrupted run goes on where it was; remove it when methods
have changed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cascade import domain_of, read, standin
from benchmarks.choosing import one_set, release
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.association import association
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness

POINTS = tuple((delta, exponent) for delta in ("1e-9", "") for exponent in (-2, 0, 2))
FIGURES = ("KS", "χ² 5%", "3-way", "2-way", "CPU s")


def one(original: Coded, delta: str, exponent: int, repeat: int) -> dict[str, float | str]:
    asked = release(domain_of(original), method_spec(), math.exp(exponent), delta or None)
    counts, begun = count_codes(original.codes), time.process_time()
    rows = one_set(asked, counts, repeat)
    seconds = time.process_time() - begun
    made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
    agreed = association(original, made).agreement["0.05"]
    found = (specks(original, made, SeededRandomness(0), null=0).ks, agreed, margins(original, made, 3).mean)
    figures = dict(zip(FIGURES, (*found, margins(original, made, 2).mean, seconds), strict=True))
    return {**figures, "taken": make_plan(asked).decomposition}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--kept", type=Path, default=Path(".cache/likeness.jsonl"))
    asked = parser.parse_args()
    original, file = read(*asked.files) if asked.files else standin(), Path(asked.files[0]).stem if asked.files else ""
    lines = map(json.loads, asked.kept.read_text().splitlines()) if asked.kept.exists() else ()
    kept = {tuple(line["asked"]): line["found"] for line in lines}
    for repeat in range(asked.repeats):
        for delta, exponent in POINTS:
            if (key := (file, delta, exponent, repeat)) not in kept:
                kept[key] = one(original, delta, exponent, repeat)
                asked.kept.parent.mkdir(parents=True, exist_ok=True)
                with asked.kept.open("a") as text:
                    text.write(json.dumps({"asked": key, "found": kept[key]}) + "\n")
    table = Table("", "taken", *FIGURES, title=f"{original.total:,} × {len(original.names)}, mean of {asked.repeats}")
    for delta, exponent in POINTS:
        found = [kept[file, delta, exponent, repeat] for repeat in range(asked.repeats)]
        means = (f"{np.mean([each[name] for each in found]):.4f}" for name in FIGURES)
        table.add_row(f"{'zCDP' if delta else 'pure'} ε = e^{exponent}", str(found[0]["taken"]), *means)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
