"""What a whole fit of pairs costs, from the plan to the records of one set: CPU seconds, seconds and peak memory.

Run with `python -m benchmarks.pairs` for the youth voter stand-in and 50,000 rows × 100 attributes, `--full` for a million rows
too (minutes). `python -m benchmarks.pairs ROWS ATTRIBUTES [EPSILON]` prints one table's costs by stage, as JSON: records of
benchmarks/wide.py, 2 to 20 categories, δ = 10⁻⁹. Every fit runs in a process of its own, whose peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

from rich.console import Console

from benchmarks import wide
from benchmarks.cascade import domain_of, standin
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named
from steps_engine.noise import SeededRandomness

DELTA = Decimal("1e-9")
SHAPES = {"stand-in": (), "50,000 × 100": ("50000", "100")}
FULL = {"1,000,000 × 100": ("1000000", "100")}


def costs(domain: Domain, counts: Counts, epsilon: str = "1") -> dict[str, float]:
    """CPU seconds of each stage and of all, seconds, the peak memory of this process, and what the plan says of both."""
    asked = {"privacy": {"epsilon": Decimal(epsilon), "delta": DELTA}, "method": method_spec(decomposition="pairs")}
    spec = ReleaseSpec.model_validate({"name": "pairs", "dataset": "d", "source": "s", **asked})
    randomness, does = SeededRandomness("pairs benchmark"), method_named("pairs")
    begun, ticks = time.perf_counter(), {"begun": time.process_time()}
    plan = make_plan(Release(spec=spec, domain=domain, folder="."))
    ticks["plan"] = time.process_time()
    tables = {"tree": does.build(domain, plan, counts, randomness)}
    ticks["build"] = time.process_time()
    tables["noisy-counts"] = does.sanitize(domain, plan, counts, tables["tree"], randomness)
    ticks["sanitize"] = time.process_time()
    tables["consistent-counts"] = does.correct(domain, plan, tables["tree"], tables["noisy-counts"], randomness)
    ticks["correct"] = time.process_time()
    made = does.synthesize(domain, plan, tables, 1, randomness)
    ticks["synthesize"] = time.process_time()
    spent = {stage: ticks[stage] - before for stage, before in zip(list(ticks)[1:], ticks.values(), strict=False)}
    status = Path("/proc/self/status").read_text()  # getrusage would inherit the peak of the process that started this one
    peak = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    return {"rows made": made.num_rows, "tables": len([draw for draw in plan.draws if draw.of]), **spent,
            "CPU s": sum(spent.values()), "s": time.perf_counter() - begun, "peak GiB": peak,
            "planned s": plan.seconds, "planned GiB": plan.memory_bytes / 2**30}  # fmt: skip


def of_one(rows: str | None = None, attributes: str = "100", epsilon: str = "1") -> dict[str, float]:
    """Without rows: of the stand-in."""
    if rows is None:
        original = standin()
        return costs(domain_of(original), count_codes(original.codes))
    return costs(wide.domain(int(rows), int(attributes)), wide.table(int(rows), int(attributes)), epsilon)


def measure(full: bool = False) -> dict[str, float]:
    """CPU seconds, seconds and peak memory of every shape."""
    found: dict[str, float] = {}
    for name, shape in {**SHAPES, **(FULL if full else {})}.items():
        command = [sys.executable, "-m", "benchmarks.pairs", "--one", *shape]
        cost = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        found |= {f"{name}: {figure}": cost[figure] for figure in ("CPU s", "s", "peak GiB", "planned s", "planned GiB")}
    return found


def main() -> None:
    asked = sys.argv[1:]
    if not asked or asked == ["--full"]:
        for figure, value in measure(full=bool(asked)).items():
            Console().print(f"{figure:>40}  {value:,.4g}", highlight=False)
    else:
        sys.stdout.write(json.dumps(of_one(*[each for each in asked if each != "--one"]), indent=2) + "\n")


if __name__ == "__main__":
    main()
