"""Many processes run one release at the same moment. Run as a script, which has no threads and forks them; answers with JSON.

Arguments: a home, and the release.yaml of each process. All of them wait at a gate until the last one stands there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tasks.stages.audit import bundles, check_bundle, check_ledger
from tasks.stages.validate import silent_gx
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import leaks
from tests.flows.without_prefect import granted_home, run_stages


def started(home: Home, path: Path, gate: int, opener: int) -> int:
    """A process at the gate; what it says in the end is read from the answer."""
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return reader
    os.close(opener)
    os.read(gate, 1)  # returns when nobody holds the other end any more
    try:
        said = "paid" if run_stages(home, path) else "found"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    os.write(writer, said.encode())
    os._exit(0)


def run_at_once(home: Home, paths: list[Path]) -> list[str]:
    gate, opener = os.pipe()
    readers = [started(home, path, gate, opener) for path in paths]
    os.close(opener)
    said = []
    for reader in readers:
        with os.fdopen(reader) as pipe:
            said.append(pipe.read() or "died")
    for _ in readers:
        os.wait()
    return said


def what_is_there(home: Home) -> dict[str, object]:
    entries = open_ledger(home).entries()
    seals = [entry.details["stage"] for entry in entries if entry.kind == "seal"]
    return {
        "charges": sum(entry.kind == "charge" for entry in entries),
        "sealed twice": sorted({stage for stage in seals if seals.count(stage) > 1}),
        "states": {each.name: each.state for each in open_ledger(home).releases()},
        "problems": check_ledger(home) + [problem for each in bundles(home) for problem in check_bundle(home, each)],
        "exact counts left": [str(each) for each in home.path.rglob("cells/*.parquet")],
        "half files left": [str(each) for pattern in (".*tmp*", ".writing-*") for each in home.path.rglob(pattern)],
        "leaks": leaks(home.folder),
    }


if __name__ == "__main__":
    silent_gx()
    home = granted_home(Path(sys.argv[1]))
    said = run_at_once(home, [Path(each) for each in sys.argv[2:]])
    print(json.dumps({"said": said, **what_is_there(home)}))
