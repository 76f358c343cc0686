"""Speed of exact noise, as ratios measured in one run: numpy's float Laplace and normal, OpenDP's vectorised integer ones.

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

from steps_engine.noise import SystemRandomness, discrete_gaussian, two_sided_geometric

SCALE = Fraction(15)  # three layers, five sets, ε = 1
DRAWS = 6_400_000
OPENDP_DRAWS = 20_000
REPEATS = 5
SIGMAS = (1, 10, 1000)


def _opendp(draws: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    laplace, zeros = dp.m.make_laplace(*space, scale=float(SCALE)), [0] * draws
    return lambda: laplace(zeros)


def _opendp_gaussian(sigma: int, draws: int) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    normal, zeros = dp.m.make_gaussian(*space, scale=float(sigma)), [0] * draws
    return lambda: normal(zeros)


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


Samplers = dict[str, tuple[int, Callable[[], object]]]


def measure() -> dict[str, float]:
    """Draws per CPU second of each sampler, and how many times as fast ours is: above 1 is faster."""
    float_laplace, randomness = np.random.default_rng(), SystemRandomness()
    two_sided_geometric(SCALE, 1, randomness)  # the table is made once per scale
    return _compare(
        {
            "exact": (DRAWS, lambda: two_sided_geometric(SCALE, DRAWS, randomness)),
            "numpy": (DRAWS, lambda: float_laplace.laplace(0.0, float(SCALE), DRAWS)),
            "opendp": (OPENDP_DRAWS, _opendp(OPENDP_DRAWS)),
        }
    )


def measure_gaussian(sigma: int) -> dict[str, float]:
    """The same for the discrete Gaussian."""
    float_normal, randomness, variance = np.random.default_rng(), SystemRandomness(), Fraction(sigma**2)
    discrete_gaussian(variance, 1, randomness)
    return _compare(
        {
            "exact": (DRAWS, lambda: discrete_gaussian(variance, DRAWS, randomness)),
            "numpy": (DRAWS, lambda: float_normal.normal(0.0, float(sigma), DRAWS)),
            "opendp": (OPENDP_DRAWS, _opendp_gaussian(sigma, OPENDP_DRAWS)),
        }
    )


def _compare(samplers: Samplers) -> dict[str, float]:
    rounds = [{name: n / _cpu_seconds(work) for name, (n, work) in samplers.items()} for _ in range(REPEATS)]
    speed = {name: statistics.median(each[name] for each in rounds) for name in samplers}
    ratios = {f"exact/{name}": statistics.median(each["exact"] / each[name] for each in rounds) for name in ("numpy", "opendp")}
    return speed | ratios


def main() -> None:
    figures = measure()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp"))
    table = Table(title=f"{DRAWS:,} draws, Laplace at scale {SCALE}, median of {REPEATS}")
    for heading in ("sampler", "million draws per CPU second", "exact noise is … times as fast", "wanted"):
        table.add_column(heading, justify="left" if heading == "sampler" else "right")
    table.add_row("exact two-sided geometric", f"{figures['exact'] / 1e6:.1f}", "", "")
    table.add_row("numpy float Laplace", f"{figures['numpy'] / 1e6:.1f}", f"{figures['exact/numpy']:.2f}", "≥ 0.3")
    table.add_row("OpenDP integer Laplace", f"{figures['opendp'] / 1e6:.3f}", f"{figures['exact/opendp']:.0f}", "≥ 80")
    for sigma in SIGMAS:
        figures = measure_gaussian(sigma)
        table.add_section()
        table.add_row(f"exact discrete Gaussian, σ = {sigma}", f"{figures['exact'] / 1e6:.1f}", "", "")
        table.add_row("numpy float normal", f"{figures['numpy'] / 1e6:.1f}", f"{figures['exact/numpy']:.2f}", "≥ 0.3")
        table.add_row("OpenDP discrete Gaussian", f"{figures['opendp'] / 1e6:.3f}", f"{figures['exact/opendp']:.0f}", "≥ 50")
    console = Console()
    console.print(table)
    console.print(f"Python {platform.python_version()}, {versions}, {platform.machine()}")


if __name__ == "__main__":
    main()
