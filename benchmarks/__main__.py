"""`make bench`: every benchmark in one run, as one table of ratios with versions; also written as JSON to .cache/bench.json."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import counting, noise, specks, tree

LIBRARIES = ("numpy", "opendp", "duckdb", "scikit-learn", "statsmodels", "pyarrow")


def main() -> None:
    measured = {"noise": noise.measure(), "tree": tree.measure(), "counting": counting.measure(), "specks": specks.measure()}
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    table = Table(title="ratios and CPU seconds, one run")
    for heading in ("benchmark", "figure", "value"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for name, figures in measured.items():
        for what, value in figures.items():
            table.add_row(name, what, f"{value:,.4g}" if isinstance(value, int | float) else str(value))
    console = Console(width=140)
    console.print(table)
    console.print(", ".join(f"{name} {number}" for name, number in versions.items()))
    Path(".cache").mkdir(exist_ok=True)
    Path(".cache/bench.json").write_text(json.dumps({"versions": versions, "measured": measured}, indent=2, default=str))


if __name__ == "__main__":
    main()
