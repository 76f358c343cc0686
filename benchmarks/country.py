"""A country's worth of rows: a whole release by pairs or places, its CPU seconds and peak memory by stage, beside the plan's.

    python -m benchmarks.country ROWS ATTRIBUTES FOLDER      12 attributes: generated persons; others: those of benchmarks/wide
    python -m benchmarks.country ROWS ATTRIBUTES FOLDER --places N  and the tract that each lives in, one of N: by places
    python -m benchmarks.country ROWS ATTRIBUTES FOLDER --run       the same as one `steps run`, Prefect and its server included
    python -m benchmarks.country ROWS ATTRIBUTES FOLDER --workers   counting and synthesis by one worker of Dask, and by two

Records are written once, by DuckDB, as Parquet files of ten million rows. A run that was stopped goes on from what is sealed,
and measures what is left.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.wide import REACH, sizes_of

PERSONS = {"sex": 2, "age": 100, "region": 20, "education": 8, "marital": 5, "employed": 4, "occupation": 30, "income": 15,
           "household": 10, "tenure": 4, "birthplace": 12, "language": 10}  # fmt: skip
PART = 10**7  # rows of a file
COUNTY, STATE = 25, 4  # tracts of a county, counties of a state


def shape(attributes: int) -> dict[str, int]:
    return PERSONS if attributes == len(PERSONS) else {f"a{j}": size for j, size in enumerate(sizes_of(attributes))}


def generate(rows: int, attributes: int, folder: Path, tracts: int = 0) -> Path:
    """Records, dataset.yaml and release.yaml. Skewed codes from hashes of the row's number; half copy an earlier attribute, or
    the county.
    """
    import duckdb

    records, columns, sizes = folder / "records", [], list(shape(attributes).values())
    records.mkdir(parents=True, exist_ok=True)
    part = "hash(i * 131 + {}) % 1000003 / 1000003.0"
    if tracts:
        columns.append(f"least(floor(pow({part.format(130)}, 2) * {tracts}), {tracts - 1})::INTEGER AS tract")
    for j, size in enumerate(sizes):
        own = f"least(floor(pow({part.format(2 * j)}, 2) * {size}), {size - 1})::INTEGER"
        earlier = f"k{max(0, j - 1 - 5 * j % REACH)} * 3 + {j}" if j else f"tract // {COUNTY}"
        copied = f"(({earlier}) % {size})::INTEGER"
        columns.append(
            f"CASE WHEN {part.format(2 * j + 1)} < 0.5 THEN {copied} ELSE {own} END AS k{j}" if j or tracts else f"{own} AS k0"
        )
    named = ", ".join(f"k{j}::UTINYINT AS {name}" for j, name in enumerate(shape(attributes)))
    named = f"'t' || tract AS tract, {named}" if tracts else named
    with duckdb.connect(config={"threads": 2, "memory_limit": "1GB"}) as connection:
        connection.execute("SET enable_progress_bar = false")
        for number, first in enumerate(range(0, rows, PART)):
            path = records / f"part-{number:03}.parquet"
            if not path.exists():
                some = f"SELECT {', '.join(columns)} FROM range({first}, {min(first + PART, rows)}) t(i)"
                connection.execute(f"COPY (SELECT {named} FROM ({some})) TO '{path}.new' (FORMAT parquet, COMPRESSION zstd)")
                Path(f"{path}.new").rename(path)
    return _specs(rows, attributes, folder, tracts)


def _specs(rows: int, attributes: int, folder: Path, tracts: int) -> Path:
    each: list[dict[str, Any]] = [
        {"name": name, "kind": "integer", "bounds": [0, size - 1]} for name, size in shape(attributes).items()
    ]
    if tracts:
        each.insert(0, {"name": "tract", "geography": {"levels": ["state", "county", "tract"], "table": "places.csv"}})
        lines = (f"s{t // COUNTY // STATE},c{t // COUNTY},t{t}\n" for t in range(tracts))
        (folder / "places.csv").write_text("state,county,tract\n" + "".join(lines))
    dataset = {"name": "country", "population": "country", "expected_rows": rows, "attributes": each}
    privacy = {"epsilon": 1, "delta": 1e-9 if rows <= PART else 1e-11}
    release = {"name": "country", "dataset": "dataset.yaml", "source": "records", "privacy": privacy,
               "method": {"decomposition": "places" if tracts else "pairs", "sets": {"count": 1}}}  # fmt: skip
    # JSON is YAML.
    (folder / "dataset.yaml").write_text(json.dumps(dataset))
    (folder / "release.yaml").write_text(json.dumps(release))
    return folder / "release.yaml"


def peak() -> float:
    """GiB of this process since the last `forget_peak`; getrusage would inherit that of whoever started it."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def stages(release_file: Path, home_folder: Path) -> None:
    """Every stage as a plain function, without Prefect: a line with seconds, CPU seconds and peak memory as each ends."""
    from tasks.specs import load_release
    from tasks.stages.build import build_tree
    from tasks.stages.charge import charge
    from tasks.stages.correct import correct
    from tasks.stages.discretize import discretize
    from tasks.stages.evaluate import evaluate
    from tasks.stages.forget import forget_exact_counts
    from tasks.stages.plan import load_plan, plan
    from tasks.stages.publish import publish_release
    from tasks.stages.sanitize import sanitize
    from tasks.stages.synthesize import synthesize
    from tasks.stages.validate import validate
    from tasks.stores.artifacts import Store
    from tasks.stores.home import Home
    from tasks.stores.ledger import open_ledger
    from tasks.verify.bundle import verify_bundle
    from tasks.verify.recompute import verify_again

    home, release, of_all = Home(home_folder), load_release(release_file, None), {"s": 0.0, "CPU s": 0.0, "peak GiB": 0.0}
    open_ledger(home).grant("country", 10**9, "benchmark", key="benchmark", measure="zcdp", delta="1e-9")

    def timed(name: str, function: Callable[..., Any], *arguments: Any, counts: bool = True) -> Any:
        forget_peak()
        begun, cpu = time.monotonic(), time.process_time()
        made = function(*arguments)
        found = {"s": time.monotonic() - begun, "CPU s": time.process_time() - cpu, "peak GiB": peak()}
        if counts:
            of_all.update({"peak GiB": max(of_all["peak GiB"], found["peak GiB"])}
                          | {key: of_all[key] + found[key] for key in ("s", "CPU s")})  # fmt: skip
        _say({"stage": name} | found)
        return made

    planned = timed("plan", plan, home, release)
    said = load_plan(Store(home), planned)
    timed("validate", validate, home, release)
    cells = timed("discretize", discretize, home, release)
    paid = timed("charge", charge, home, release, planned, cells, {})
    tree = timed("build tree", build_tree, home, release, planned, cells, paid)
    noisy = timed("sanitize", sanitize, home, release, planned, cells, tree, paid)
    consistent = timed("correct", correct, home, release, planned, tree, noisy)
    sets = timed("synthesize", synthesize, home, release, planned, tree, noisy, consistent)
    folder = timed("publish", publish_release, home, release, planned, (tree, noisy, consistent, *sets))
    timed("evaluate", evaluate, home, release, cells, sets)
    timed("forget", forget_exact_counts, home, release)
    _say({"whole": of_all, "planned s": said.seconds, "planned GiB": said.memory_bytes / 2**30})
    timed("verify", verify_bundle, folder, counts=False)
    if "--recompute" in sys.argv:
        verdict = timed("verify --recompute", verify_again, folder, counts=False)
        _say({"the same": dict(verdict.recomputed.same), "problems": [str(each) for each in verdict.problems]})


def _say(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found, default=str) + "\n")
    sys.stdout.flush()


def run(release_file: Path, home: Path, dask: str = "") -> dict[str, Any]:
    """One `steps run`: seconds, CPU seconds of all that it started, and the peak memory of its largest process."""
    steps = [sys.executable, "-c", "from flows.cli import main; main()", "--home", str(home)]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"} | {"STEPS_DASK": dask}
    subprocess.run(
        [*steps, "budget", "grant", "country", "--rho", "1", "--delta", "1e-9", "--why", "benchmark"],
        check=True,
        env=environment,
    )
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*steps, "run", str(release_file)], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"s": time.monotonic() - begun, "CPU s": cpu, "peak GiB": after.ru_maxrss / 2**20}


def shared_out(release_file: Path, home_folder: Path, workers: int) -> dict[str, float]:
    """Seconds of counting and of synthesis, handed to so many worker processes of Dask as a run hands them out.

    A worker keeps to a core of its own, as one on a machine of one core would: DuckDB counts with two threads in each, so
    that one worker alone would else keep two cores busy.
    """
    from distributed import Client, LocalCluster

    from tasks.reading.partial_counts import count_part, room_for_parts, shares_of_source
    from tasks.specs import load_release
    from tasks.stages.build import build_tree
    from tasks.stages.charge import charge
    from tasks.stages.correct import correct
    from tasks.stages.discretize import discretize_parts
    from tasks.stages.plan import plan
    from tasks.stages.sanitize import sanitize
    from tasks.stages.synthesize import join_parts, make_part, parts_of, room_for_sets
    from tasks.stores.home import Home
    from tasks.stores.ledger import open_ledger

    home, release = Home(home_folder), load_release(release_file, None)
    open_ledger(home).grant("country", 10**9, "benchmark", key="benchmark", measure="zcdp", delta="1e-9")
    planned, shares = plan(home, release), shares_of_source(release)
    with LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=None, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            for core, worker in enumerate(client.scheduler_info()["workers"]):
                client.run(os.sched_setaffinity, 0, {core}, workers=[worker])
            begun = time.monotonic()
            with room_for_parts(home, release, len(shares)) as room:
                client.gather([client.submit(count_part, home, release, *each) for each in zip(shares, room, strict=True)])
                cells = discretize_parts(home, release, room)
            counted = time.monotonic() - begun
            paid = charge(home, release, planned, cells, {})
            tree = build_tree(home, release, planned, cells, paid)
            noisy = sanitize(home, release, planned, cells, tree, paid)
            drawn = (planned, tree, noisy, correct(home, release, planned, tree, noisy))
            begun, parts = time.monotonic(), parts_of(home, release, planned)
            with room_for_sets(home, release, parts, [1]) as places:
                client.gather([client.submit(make_part, home, release, *drawn, parts, each) for each in places])
                join_parts(home, release, 1, [path for _, _, path in places])
            return {"counting s": counted, "synthesis s": time.monotonic() - begun}


def speed_up(release_file: Path, folder: Path) -> dict[str, Any]:
    found = {}
    for workers in (1, 2):
        home = folder / f"home-{workers}-workers"
        shutil.rmtree(home, ignore_errors=True)  # every time from the start: what is sealed is found, not measured
        found[workers] = shared_out(release_file, home, workers)
        _say({"workers": workers} | found[workers])
    return {what.removesuffix(" s"): found[1][what] / found[2][what] for what in found[1]}


def main() -> None:
    rows, attributes, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).resolve()
    tracts = int(sys.argv[sys.argv.index("--places") + 1]) if "--places" in sys.argv else 0
    release = generate(rows, attributes, folder, tracts)
    if "--run" in sys.argv:
        _say({"steps run": run(release, folder / "home-run")})
    elif "--workers" in sys.argv:
        _say({"speed-up of two workers over one": speed_up(release, folder)})
    else:
        stages(release, folder / "home")


if __name__ == "__main__":
    main()
