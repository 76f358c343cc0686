"""`make bench`: every benchmark in one run, as one table of ratios with versions; also written as JSON to .cache/bench.json.

Takes about a quarter of an hour on two quiet cores; `python -m benchmarks noise tree` runs some of them. What was measured is
written after each; one that fails is named at the end, with exit code 1, and keeps none of the others from being measured.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
import time
import traceback
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

LIBRARIES = ("numpy", "opendp", "duckdb", "scikit-learn", "statsmodels", "pyarrow", "prefect")
BENCHMARKS = {
    "noise": ("noise", "measure", {}),
    "tree": ("tree", "measure", {}),
    "sparse cells": ("sparse", "measure", {}),
    "cascade": ("cascade", "measure", {"full": True}),
    "pairs": ("pairs", "measure", {"full": True}),
    "SPECKS": ("specks", "measure", {}),
    "currencies": ("currencies", "measure", {}),
    "counting": ("counting", "table", {}),
    "sources": ("sources", "measure", {}),
    "whole run": ("pipeline", "measure", {}),
    "start": ("start", "measure", {}),
}
OUT = Path(".cache/bench.json")


def measured(name: str) -> dict:
    module, function, arguments = BENCHMARKS[name]
    return getattr(importlib.import_module(f"benchmarks.{module}"), function)(**arguments)


def measure_each(names: list[str], progress: Console) -> tuple[dict[str, dict], list[str]]:
    """The figures of those that could be measured, and the names of those that failed."""
    found: dict[str, dict] = {}
    failed: list[str] = []
    for name in names:
        begun = time.monotonic()
        try:
            found[name] = measured(name)
        except Exception:
            failed.append(name)
            progress.print(traceback.format_exc(), markup=False, highlight=False)
        write(found, failed)
        progress.print(f"{name}: {'failed after ' * (name in failed)}{time.monotonic() - begun:.0f} s", highlight=False)
    return found, failed


def write(found: dict[str, dict], failed: list[str]) -> None:
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"versions": versions(), "measured": found, "failed": failed}, indent=2, default=str))


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def show(found: dict[str, dict], console: Console) -> None:
    table = Table(title="ratios measured in one run")
    for heading in ("benchmark", "figure", "value"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name, figures in found.items():
        for what, value in figures.items():
            table.add_row(name, what, f"{value:,.4g}" if isinstance(value, int | float) else str(value))
        table.add_section()
    console.print(table)
    console.print(", ".join(f"{name} {number}" for name, number in versions().items()))


def main() -> None:
    asked = [name for name, (module, _, _) in BENCHMARKS.items() if not sys.argv[1:] or module in sys.argv[1:]]
    found, failed = measure_each(asked, Console(stderr=True))
    show(found, Console(width=150))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their errors stand above")


if __name__ == "__main__":
    main()
