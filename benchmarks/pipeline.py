"""A whole `steps run` of the youth-voter release: our stages, and what Prefect adds. `python -m benchmarks.pipeline`"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "youth-voter"


def prepare(folder: Path) -> Path:
    """The release with its records and a budget, in a home of its own."""
    release = folder / "release.yaml"
    for name in ("dataset.yaml", "release.yaml"):
        (folder / name).write_text((EXAMPLE / name).read_text())
    _steps(folder, "data", "youth-voter", str(folder / "voter.parquet"))
    _steps(folder, "budget", "grant", "us-youth-2000-2012", "4", "--why", "benchmark")
    return release


def _steps(folder: Path, *words: str) -> float:
    """Wall seconds of one command."""
    begun = time.monotonic()
    command = [sys.executable, "-c", "from flows.cli import main; main()", "--home", str(folder / "home"), *words]
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.monotonic() - begun


def stages(release_file: Path, home_folder: Path) -> dict[str, float]:
    """Wall seconds of every stage as a plain function, without Prefect."""
    from tasks.reading.specs import load_release
    from tasks.stages.build import build_tree
    from tasks.stages.charge import charge
    from tasks.stages.correct import correct
    from tasks.stages.discretize import discretize
    from tasks.stages.evaluate import evaluate
    from tasks.stages.plan import plan
    from tasks.stages.publish import publish_release
    from tasks.stages.sanitize import sanitize
    from tasks.stages.synthesize import synthesize
    from tasks.stages.validate import validate
    from tasks.stores.home import Home

    home, release, seconds = Home(home_folder), load_release(release_file, None), {}

    def timed(name: str, function, *arguments):
        begun = time.monotonic()
        made = function(home, release, *arguments)
        seconds[name] = time.monotonic() - begun
        return made

    planned = timed("plan", plan)
    timed("validate", validate)
    cells = timed("discretize", discretize)
    paid = timed("charge", charge, planned, cells, {})
    tree = timed("build tree", build_tree, planned, cells, paid)
    noisy = timed("sanitize", sanitize, planned, cells, tree, paid)
    consistent = timed("correct", correct, planned, tree, noisy)
    sets = timed("synthesize", synthesize, planned, tree, noisy, consistent)
    timed("publish", publish_release, planned, (tree, noisy, consistent, *sets))
    timed("evaluate", evaluate, cells, sets)
    return seconds


def measure() -> dict[str, float | str]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        whole = _steps(Path(one), "run", str(prepare(Path(one))))
        release = prepare(Path(other))
        begun = time.monotonic()
        command = [sys.executable, "-m", "benchmarks.pipeline", str(release), str(Path(other) / "home")]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
        ours = time.monotonic() - begun
    parts = json.loads(found.stdout)
    shown = ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts.items() if seconds >= 0.05)
    return {
        "steps run, wall s": whole,
        "our stages in a process of their own, wall s": ours,
        "Prefect's part of the whole": (whole - ours) / whole,
        "by stage, s": shown,
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(stages(Path(sys.argv[1]), Path(sys.argv[2]))))
    else:
        for what, value in measure().items():
            print(f"{what}: {value if isinstance(value, str) else f'{value:.3g}'}")
