"""Counting against a bare DuckDB GROUP BY of the same columns: `python -m benchmarks.counting 10000000`.

Each of the two runs in a process of its own, on the same generated Parquet file, with the same threads and memory limit.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

SIZES = (2, 2, 5, 2, 2, 14, 2, 2, 2, 2, 2, 6, 2, 2, 2)  # the youth voter file's: 1,290,240 cells
AGE = 2  # the one attribute of whole numbers


def measure(rows: int = 10**6, repeats: int = 3) -> dict:
    """Seconds, CPU seconds and peak memory of both (the fastest of `repeats`), and the ratios ours / bare."""
    with TemporaryDirectory() as name:
        generate(Path(name) / "records.parquet", rows)
        found: dict[str, dict] = {}
        for _ in range(repeats):
            for what in ("bare", "ours"):
                command = [sys.executable, "-m", "benchmarks.counting", what, name]
                run = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                found[what] = min(found.get(what, run), run, key=lambda r: r["seconds"])
    ratios = {key: found["ours"][key] / found["bare"][key] for key in ("seconds", "cpu")}
    return {"rows": rows, **found, "ratio": ratios["seconds"], "cpu_ratio": ratios["cpu"]}


def table() -> dict[str, float]:
    """The ratios for one table: at most 1.5 and below 1 GiB at 5·10^7 rows; cost grows at most linearly in rows."""
    figures, cpu = {}, {}
    for rows, name in ((10**6, "10^6"), (10**7, "10^7"), (5 * 10**7, "5·10^7")):
        found = measure(rows)
        cpu[rows] = found["ours"]["cpu"]
        figures[f"{name} rows: ours / bare DuckDB, wall"] = found["ratio"]
        figures[f"{name} rows: ours / bare DuckDB, CPU"] = found["cpu_ratio"]
        figures[f"{name} rows: ours, wall s"] = found["ours"]["seconds"]
        figures[f"{name} rows: ours, peak MiB"] = found["ours"]["peak_mib"]
    return figures | {"exponent of CPU in rows, 10^6 to 5·10^7": math.log(cpu[5 * 10**7] / cpu[10**6]) / math.log(50)}


def generate(path: Path, rows: int) -> None:
    """Skewed categories from a hash of the row number: no randomness, the same file every time."""
    import duckdb

    columns = []
    for j, size in enumerate(SIZES):
        code = f"least(floor(pow(hash(i * 31 + {j}) % 1000003 / 1000003.0, 3) * {size}), {size - 1})::INTEGER"
        columns.append(f"{18 if j == AGE else 0} + {code} AS x{j}" if j == AGE else f"'category ' || {code} AS x{j}")
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY (SELECT {', '.join(columns)} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")


def domain():
    from schemas.spec.domain import Domain

    attributes = []
    for j, size in enumerate(SIZES):
        named = {"kind": "categorical", "categories": tuple(f"category {i}" for i in range(size))}
        attributes.append({"name": f"x{j}"} | ({"kind": "integer", "bounds": (18, 22)} if j == AGE else named))
    return Domain.model_validate({"name": "bench", "population": "bench", "attributes": tuple(attributes)})


def _ours(folder: Path) -> int:
    from tasks.reading.counting import count_cells

    return len(count_cells(str(folder / "records.parquet"), domain(), folder).count)


def _bare(folder: Path) -> int:
    import duckdb

    from tasks.reading.locked_down import MEMORY, THREADS

    config = {
        "memory_limit": MEMORY,
        "threads": THREADS,
        "temp_directory": str(folder / "bare"),
        "preserve_insertion_order": False,
    }
    columns = ", ".join(f"x{j}" for j in range(len(SIZES)))
    with duckdb.connect(":memory:", config=config) as connection:
        sql = f"SELECT {columns}, count(*) AS n FROM read_parquet('{folder / 'records.parquet'}') GROUP BY ALL"
        return connection.execute(sql).to_arrow_table().num_rows


def _timed(what: str, folder: Path) -> dict:
    import pyarrow  # noqa: F401  imports are paid once per process and not part of counting

    import tasks.stages.discretize  # noqa: F401

    began, cpu = time.perf_counter(), time.process_time()
    cells = {"ours": _ours, "bare": _bare}[what](folder)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()  # getrusage would inherit the peak of the process that started this one
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return {"cells": cells, "seconds": seconds, "cpu": cpu, "peak_mib": peak}


if __name__ == "__main__":
    if sys.argv[1:2] in (["ours"], ["bare"]):
        print(json.dumps(_timed(sys.argv[1], Path(sys.argv[2]))))
    else:
        print(json.dumps(measure(int(sys.argv[1]) if sys.argv[1:] else 10**6), indent=2))
