"""Sanitizing, correcting and synthesizing the voter release against merely drawing that many numpy Laplace numbers.

Also: growth of the cost with the number of cells, and peak memory in a process of its own. `python -m benchmarks.tree`
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from schemas.spec.domain import Domain, load_domain
from schemas.spec.method import MethodSpec, method_spec
from schemas.spec.release import Privacy, Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.blocks import together
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.correct import correct
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.synthesize import synthesize
from steps_engine.noise import SeededRandomness, SystemRandomness, integers_below

VOTER = Path(__file__).parents[1] / "examples" / "youth-voter" / "dataset.yaml"
VOTER_METHOD = method_spec(decomposition="tree", order=("voted", "college"), sets={"count": 5})


def voter_counts() -> tuple[Domain, Counts]:
    from steps_engine.domain.encoding import encode
    from steps_engine.studies.standin import youth_voter

    domain = load_domain(VOTER)
    return domain, count_codes(encode(youth_voter(44_821, SeededRandomness(1)), domain))


def square_domain(cells: int) -> tuple[Domain, Counts]:
    """Two attributes that make about `cells` cells, one record in a hundred cells."""
    side = round(cells**0.5)
    attributes = tuple({"name": name, "kind": "integer", "bounds": (0, side - 1)} for name in ("a", "b"))
    domain = Domain(name="square", population="nobody", attributes=attributes)
    return domain, count_codes(integers_below(side, cells // 100 * 2, SeededRandomness(1)).reshape(-1, 2))


def prepare(domain: Domain, counts: Counts, method: MethodSpec):
    spec = ReleaseSpec(name="bench", dataset="-", source="-", privacy=Privacy(epsilon=1), method=method)
    plan = make_plan(Release(spec=spec, domain=domain, folder="."))
    return plan, build_tree(domain, plan, counts, SystemRandomness()), counts


def release(plan, tree, counts) -> None:
    randomness = SystemRandomness()
    consistent = correct(tree, sanitize(tree, counts, plan, randomness), plan, randomness)
    for which in range(1, plan.sets + 1):
        together(synthesize(tree, consistent, which, randomness))


def cpu(work, repeats: int = 5) -> float:
    """Median CPU seconds: the machine is shared."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def growth(sizes: tuple[int, ...] = (10**4, 10**5, 10**6, 10**7)) -> tuple[float, dict[int, float]]:
    """Exponent of cost in cells (1: linear), fitted over all sizes, and seconds per size."""
    seconds = {}
    for cells in sizes:
        ready = prepare(*square_domain(cells), method_spec(decomposition="tree", order=("a",)))
        seconds[cells] = cpu(lambda ready=ready: release(*ready), repeats=3)
    return float(np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]), seconds


def peak_memory() -> float:
    """MiB at the peak of one voter release, in a process of its own."""
    code = "from benchmarks.tree import *; release(*prepare(*voter_counts(), VOTER_METHOD)); print(memory())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def memory() -> float:
    """Peak of this process in MiB. (getrusage would inherit the parent's peak.)"""
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(peak.split()[1]) / 1024


def measure() -> dict[str, float]:
    ready = prepare(*voter_counts(), VOTER_METHOD)
    plan, tree, _ = ready
    draws = plan.sets * sum(tree.widths()[1:])
    ours = cpu(lambda: release(*ready))
    laplace = cpu(lambda: np.random.default_rng(0).laplace(scale=15.0, size=draws))
    exponent, seconds = growth()
    return {
        "voter release / numpy Laplace of as many numbers (at most 8)": ours / laplace,
        "voter release, CPU seconds": ours,
        "peak memory, MiB (below 1024)": peak_memory(),
        "exponent of cost in cells, 10^4 to 10^7 (1: linear)": exponent,
        **{f"CPU seconds at {cells:,} cells": value for cells, value in seconds.items()},
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
