"""Speed of exact noise, as ratios measured in one run: numpy's float Laplace and OpenDP's vectorised integer Laplace.

Run with `python -m benchmarks.noise`. CPU seconds of the process, median of five.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version

import numpy as np
from rich.console import Console
from rich.table import Table

from steps_engine.noise import SystemRandomness, two_sided_geometric

SCALE = Fraction(15)  # three layers, five sets, ε = 1
DRAWS = 6_400_000
OPENDP_DRAWS = 20_000
REPEATS = 5


def _opendp(draws: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    laplace, zeros = dp.m.make_laplace(*space, scale=float(SCALE)), [0] * draws
    return lambda: laplace(zeros)


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def measure() -> dict[str, float]:
    """Draws per CPU second of each sampler, and how many times as fast ours is: above 1 is faster."""
    float_laplace, randomness = np.random.default_rng(), SystemRandomness()
    samplers = {
        "exact": (DRAWS, lambda: two_sided_geometric(SCALE, DRAWS, randomness)),
        "numpy": (DRAWS, lambda: float_laplace.laplace(0.0, float(SCALE), DRAWS)),
        "opendp": (OPENDP_DRAWS, _opendp(OPENDP_DRAWS)),
    }
    two_sided_geometric(SCALE, 1, randomness)  # the table is made once per scale
    rounds = [{name: n / _cpu_seconds(work) for name, (n, work) in samplers.items()} for _ in range(REPEATS)]
    speed = {name: statistics.median(each[name] for each in rounds) for name in samplers}
    ratios = {f"exact/{name}": statistics.median(each["exact"] / each[name] for each in rounds) for name in ("numpy", "opendp")}
    return speed | ratios


def main() -> None:
    figures = measure()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp"))
    table = Table(title=f"{DRAWS:,} draws at scale {SCALE}, median of {REPEATS}")
    for heading in ("sampler", "million draws per CPU second", "exact noise is … times as fast", "wanted"):
        table.add_column(heading, justify="left" if heading == "sampler" else "right")
    table.add_row("exact two-sided geometric", f"{figures['exact'] / 1e6:.1f}", "", "")
    table.add_row("numpy float Laplace", f"{figures['numpy'] / 1e6:.1f}", f"{figures['exact/numpy']:.2f}", "≥ 0.3")
    table.add_row("OpenDP integer Laplace", f"{figures['opendp'] / 1e6:.3f}", f"{figures['exact/opendp']:.0f}", "≥ 80")
    console = Console()
    console.print(table)
    console.print(f"Python {platform.python_version()}, {versions}, {platform.machine()}")


if __name__ == "__main__":
    main()
