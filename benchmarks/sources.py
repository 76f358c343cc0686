"""The same rows counted from Parquet, DuckDB, SQLite and PostgreSQL, against Parquet: `python -m benchmarks.sources 1000000`.

    python -m benchmarks.sources ROWS postgresql://…       PostgreSQL too: a table is made there for it, and dropped at the end

Each runs in a process of its own. What is measured is ours alone: seconds on the clock hold what a server does, CPU seconds do
not.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.counting import SIZES, domain, generate

TABLE = "steps_bench_sources"


def measure(rows: int = 10**6, server: str | None = None, repeats: int = 2) -> dict[str, float]:
    """Ratios of seconds and CPU seconds to those of Parquet (the fastest of `repeats`), and peak memory."""
    with TemporaryDirectory() as name, filled(Path(name), rows, server) as kinds:
        found: dict[str, dict] = {}
        for kind in [*kinds] * repeats:
            command = [sys.executable, "-m", "benchmarks.sources", "count", kind, name, server or "-"]
            run = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            found[kind] = min(found.get(kind, run), run, key=lambda each: each["cpu"])
    assert len({run["cells"] for run in found.values()}) == 1  # the same rows
    figures, first = dict[str, float](), found["parquet"]
    for kind, run in found.items():
        figures |= {f"{kind} / Parquet, {what}": run[what] / first[what] for what in ("wall", "cpu") if kind != "parquet"}
        figures[f"{kind}, CPU s"], figures[f"{kind}, peak MiB"] = run["cpu"], run["peak"]
    return figures


@contextmanager
def filled(folder: Path, rows: int, server: str | None) -> Iterator[list[str]]:
    """The rows in every kind of source that there is."""
    import duckdb
    import pyarrow.parquet as pq

    generate(folder / "records.parquet", rows)
    with duckdb.connect(str(folder / "records.duckdb")) as connection:
        connection.execute(f"CREATE TABLE {TABLE} AS FROM read_parquet('{folder / 'records.parquet'}')")
    names = [f"x{j}" for j in range(len(SIZES))]
    with sqlite3.connect(folder / "records.db") as database:
        database.execute(f"CREATE TABLE {TABLE} ({', '.join(names)})")
        with pq.ParquetFile(folder / "records.parquet") as file:
            for batch in file.iter_batches(2**16):
                into = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(names))})"
                database.executemany(into, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    database.close()
    if server is None:
        yield ["parquet", "duckdb", "sqlite"]
        return
    _fill_server(server, folder)
    try:
        yield ["parquet", "duckdb", "sqlite", "postgresql"]
    finally:
        _ask(server, f"DROP TABLE {TABLE}")


def _ask(server: str, sql: str) -> None:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.encode())


def _fill_server(server: str, folder: Path) -> None:
    import duckdb
    import psycopg

    holds = ", ".join(f"x{j} {'integer' if attribute.kind == 'integer' else 'text'}" for j, attribute in enumerate(
        domain().attributes))  # fmt: skip
    _ask(server, f"CREATE TABLE {TABLE} ({holds})")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (FROM read_parquet('{folder / 'records.parquet'}')) TO '{folder / 'records.csv'}' (HEADER false)"
        )
    with psycopg.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY {TABLE} FROM STDIN (FORMAT csv)".encode()) as copy, (folder / "records.csv").open("rb") as file:
            while block := file.read(2**20):
                copy.write(block)


def _count(kind: str, folder: Path, server: str) -> dict:
    from schemas.spec.database import DatabaseSource
    from tasks.reading.counting import count_cells

    urls = {"duckdb": f"duckdb:///{folder / 'records.duckdb'}", "sqlite": f"sqlite:///{folder / 'records.db'}"}
    url = urls.get(kind, server)
    source = str(folder / "records.parquet") if kind == "parquet" else DatabaseSource(url=url, table=TABLE)
    of, wall, cpu = domain(), time.perf_counter(), time.process_time()
    cells = len(count_cells(source, of, folder).count)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()  # getrusage would inherit the peak of the process that started this one
    return {"cells": cells, "wall": wall, "cpu": cpu, "peak": int(status.split("VmHWM:")[1].split()[0]) / 1024}


if __name__ == "__main__":
    if sys.argv[1:2] == ["count"]:
        print(json.dumps(_count(sys.argv[2], Path(sys.argv[3]), sys.argv[4])))
    else:
        given = sys.argv[1:]
        print(json.dumps(measure(int(given[0]) if given else 10**6, *given[1:2]), indent=2))
