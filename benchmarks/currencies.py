"""What zero-concentrated privacy gains: cascade and PrivBayes at the same ε, pure and with δ = 10⁻⁹, mean over repeats.

Run with `python -m benchmarks.currencies [FILE SIZES.json] [--repeats N] [--wide ROWS] [--wide-repeats N]`: on the youth voter
stand-in, on FILE if one is given (the arguments of benchmarks/cascade.py), and on a generated table of 100 attributes
(benchmarks/wide.py). KS is that of SPECKS with the richest classifier that fits: all two-way interactions on the voter data,
main effects on wider domains. Figures are also written as JSON to .cache/currencies.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import wide
from benchmarks.cascade import EPSILONS, METHODS, domain_of, one_set, read, standin
from steps_engine.domain.counting import count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.noise import SeededRandomness

DELTA = "1e-9"
MEASURES = {"pure": None, "zCDP": DELTA}
FIGURES = ("2-way TVD", "3-way TVD", "KS", "CPU s")
WIDTH = 100
Row = dict[str, str | float | int]


def generated(rows: int, attributes: int = WIDTH) -> Coded:
    names = tuple(f"a{j}" for j in range(attributes))
    return Coded(names, wide.sizes_of(attributes), wide.table(rows, attributes).codes.astype(np.int64))


def figures(original: Coded, rows: np.ndarray, seconds: float) -> list[float]:
    made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
    distances = [margins(original, made, ways).mean for ways in (2, 3)]
    return [*distances, specks(original, made, SeededRandomness(0), null=0).ks, seconds]


def compare(name: str, original: Coded, repeats: int, console: Console | None = None) -> list[Row]:
    """Both methods in both measures at three ε: means of one set's figures, and their standard errors."""
    domain, counts, found = domain_of(original), count_codes(original.codes), list[Row]()
    for epsilon in EPSILONS:
        for method in METHODS:
            for measure, delta in MEASURES.items():
                sets = (one_set(method, domain, counts, epsilon, repeat, delta) for repeat in range(repeats))
                each = np.array([figures(original, *made) for made in sets])
                row: Row = {"data": name, "epsilon": epsilon, "method": method, "measure": measure, "repeats": len(each)}
                row |= dict(zip(FIGURES, each.mean(axis=0).tolist(), strict=True))
                if len(each) > 1:
                    errors = each.std(axis=0, ddof=1) / np.sqrt(len(each))
                    row |= {f"± {figure}": error for figure, error in zip(FIGURES, errors.tolist(), strict=True)}
                found.append(row)
                if console:
                    console.print(json.dumps(row), highlight=False, soft_wrap=True)
    return found


def measure(repeats: int = 2) -> dict[str, float]:
    """On the stand-in: error under zCDP as a part of the error under ε alone."""
    found = compare("voter", standin(), repeats)
    pairs = zip(found[::2], found[1::2], strict=True)
    return {
        f"{pure['method']}, ε = {pure['epsilon']:.3g}: {figure}, zCDP / pure": zcdp[figure] / pure[figure]
        for pure, zcdp in pairs
        for figure in FIGURES[:3]
    }


def shown(found: list[Row], title: str) -> Table:
    table = Table("ε", "method", "measure", "repeats", *FIGURES, title=title)
    for row in found:
        said = (str(row[name]) for name in ("method", "measure", "repeats"))
        table.add_row(f"{row['epsilon']:.4g}", *said, *(_with_error(row, figure) for figure in FIGURES))
    return table


def _with_error(row: Row, figure: str) -> str:
    if figure == "CPU s":
        return f"{row[figure]:.1f}"
    return f"{row[figure]:.4f}" + (f" ± {row[f'± {figure}']:.4f}" if f"± {figure}" in row else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--wide", type=int, default=20_000, metavar="ROWS", help="of the generated table; 0 leaves it out")
    parser.add_argument("--wide-repeats", type=int, default=3)
    asked = parser.parse_args()
    if len(asked.files) not in (0, 2):
        parser.error("give FILE and SIZES.json, or neither")
    tables = {"voter": (standin, asked.repeats)}
    if asked.files:
        tables[Path(asked.files[0]).stem] = (lambda: read(*asked.files), asked.repeats)
    if asked.wide:
        tables["wide"] = (lambda: generated(asked.wide), asked.wide_repeats)
    console, found = Console(width=130), list[Row]()
    for name, (load, repeats) in tables.items():
        original = load()
        rows = compare(name, original, repeats, Console(stderr=True))
        console.print(shown(rows, f"{name}: {original.total:,} rows × {len(original.names)} attributes, δ = {DELTA}"))
        found += rows
    Path(".cache").mkdir(exist_ok=True)
    Path(".cache/currencies.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
