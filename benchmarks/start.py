"""What a start costs: CPU of whole process trees, as ratios within one run. `python -m benchmarks.start`

Wall time on a shared machine says little; user and system time of everything that a command started says more.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.pipeline import prepare

STEPS = (sys.executable, "-c", "from flows.cli import main; main()")


def cpu(folder: Path, *command: str, times: int = 1) -> float:
    """CPU seconds of a command and all that it starts; the least of several tries."""
    found = []
    for _ in range(times):
        before = _spent()
        _answer(folder, *command)
        found.append(_spent() - before)
    return min(found)


def _answer(folder: Path, *command: str) -> bytes:
    dropped = ("PREFECT_API_URL", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "STEPS_HOME": str(folder / "home")}
    return subprocess.run(command, check=True, capture_output=True, env=environment).stdout


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure() -> dict[str, float | str]:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        here, there = Path(one), Path(other)
        release = prepare(here)
        cpu(here, *STEPS, "--help")  # compiles what was never imported
        first = cpu(here, *STEPS, "run", str(release), "--period", "2026q1")  # makes the empty database of Prefect's server
        later = cpu(here, *STEPS, "run", str(release), "--period", "2026q2")
        estimated = json.loads(_answer(here, *STEPS, "plan", str(release), "--json"))["seconds"]
        again = cpu(here, *STEPS, "run", str(release), "--period", "2026q2", times=3)
        bare = cpu(there, sys.executable, "-m", "benchmarks.pipeline", str(prepare(there)), str(there / "home"))
        imported = cpu(here, sys.executable, "-c", "import prefect", times=3)
        asked = cpu(here, *STEPS, "--help", times=9)
        shown = cpu(here, *STEPS, "budget", "show", times=9)
        listed = cpu(here, *STEPS, "releases", times=9)
    return {
        "steps run of the demo, CPU s": later,
        "  against our stages in a bare process (at most 2.5)": later / bare,
        "  the plan's estimate against it (0.5 to 2)": estimated / later,
        "  the first on a machine, CPU s": first,
        "our stages in a bare process, CPU s": bare,
        "steps run of a finished release, CPU s": again,
        "  beyond import prefect, CPU s (at most 2)": again - imported,
        "import prefect, CPU s": imported,
        "steps budget show against steps --help (at most 6)": shown / asked,
        "steps releases against steps --help": listed / asked,
        "steps --help, CPU s": asked,
    }


if __name__ == "__main__":
    for what, value in measure().items():
        print(f"{what}: {value:.3g}")
