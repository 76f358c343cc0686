"""`make bench`: every benchmark in one run, as one table of ratios with versions; also written as JSON to .cache/bench.json.

Takes about a quarter of an hour on two quiet cores; `python -m benchmarks noise tree` runs some of them.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
import time
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
    "SPECKS": ("specks", "measure", {}),
    "counting": ("counting", "table", {}),
    "whole run": ("pipeline", "measure", {}),
}


def measured(name: str, console: Console) -> dict:
    module, function, arguments = BENCHMARKS[name]
    begun = time.monotonic()
    figures = getattr(importlib.import_module(f"benchmarks.{module}"), function)(**arguments)
    console.print(f"{name}: {time.monotonic() - begun:.0f} s", highlight=False)
    return figures


def main() -> None:
    asked = [name for name, (module, _, _) in BENCHMARKS.items() if not sys.argv[1:] or module in sys.argv[1:]]
    progress = Console(stderr=True)
    found = {name: measured(name, progress) for name in asked}
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    table = Table(title="ratios measured in one run")
    for heading in ("benchmark", "figure", "value"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name, figures in found.items():
        for what, value in figures.items():
            table.add_row(name, what, f"{value:,.4g}" if isinstance(value, int | float) else str(value))
        table.add_section()
    console = Console(width=150)
    console.print(table)
    console.print(", ".join(f"{name} {number}" for name, number in versions.items()))
    Path(".cache").mkdir(exist_ok=True)
    Path(".cache/bench.json").write_text(json.dumps({"versions": versions, "measured": found}, indent=2, default=str))


if __name__ == "__main__":
    main()
