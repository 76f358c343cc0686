"""Everything after the noise follows from what was drawn: on any machine, by any way of reading it, and as it did before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.contents import content_hash
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.noise import SeededRandomness
from tests.tasks.publishing.making import some_counts
from tests.tasks.verify.methods import release_of, tables_of

SPLIT, SHARED = {"count": 2, "budget": "split"}, {"count": 2, "budget": "shared"}
RHO = {"rho": "0.05", "delta": "1e-9"}

# Of consistent counts and both sets. Whoever changes one changes what published bundles are compared with: bundles that were
# made with these rows name them by their rule, so another way to make rows needs another rule (schemas/manifest.py).
ROWS = {
    "given/split/eps": "68dccb0e4711 43b390d079f2",
    "given/split/rho": "e71462e24303 fba202021c0b",
    "given/shared/eps": "d0e27c0241b4 f8a76aeac710",
    "given/shared/rho": "4a81146d3353 60e2298226c8",
    "stopping/split/eps": "3d74a0c72eb1 4685800f786b",
    "stopping/shared/eps": "1220f771e050 11fd1d071b08",
    "flat/split/eps": "08f30bd49f80 a3badee0af2f",
    "flat/shared/eps": "3fbc727bb472 74787eadabec",
    "uh/split/eps": "2634a411112b 46887ee5666f",
    "uh/shared/eps": "5fabddf8bb2e bcfac0b89f30",
    "cascade/split/eps": "33bee835c43f e9925b399b68",
    "cascade/split/rho": "39acbfb8b13f 8dbe1e0d0185",
    "cascade/shared/eps": "f4416bfd2722 30999821ac27",
    "cascade/shared/rho": "b36d050fc6a2 9c2f8adf4d6a",
    "privbayes/split/eps": "b6607efa7726 62c78d48e126",
    "privbayes/split/rho": "b7d7876ffbff 1f5c403d6e18",
    "privbayes/shared/eps": "88360a4eaaf3 1cf66951e759",
    "privbayes/shared/rho": "ae9db60ee690 2dbf4daaa926",
    "pairs/split/eps": "ecc237ff6752 360c5a96cfde",
    "pairs/split/rho": "05b4cd591c8d 10160ed8e4d9",
    "pairs/shared/eps": "8420a65d8f5c 911384573102",
    "pairs/shared/rho": "49c2be38e2fb ee619c99e72f",
}


def drawn_of(name: str, sets: dict[str, Any], privacy: dict[str, str] | None = None) -> Drawn:
    release = release_of(name, sets=sets, **(privacy or {}))
    plan = make_plan(release, SeededRandomness(1))
    made = tables_of(release.domain, plan, some_counts(release.domain, 4003))
    return Drawn(release.domain, plan, made["tree"], made["noisy-counts"])


def rows_of(drawn: Drawn) -> list[pa.Table]:
    method = method_of(drawn.plan)
    return [drawn.synthesize(method, drawn.correct(method), number) for number in (1, 2)]


def hash_of(name: str, budget: str, measure: str) -> str:
    rows = rows_of(drawn_of(name, {"count": 2, "budget": budget}, RHO if measure == "rho" else None))
    return " ".join(content_hash(table)[:12] for table in rows)


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.whole
def test_rows_are_those_that_the_rule_has_always_made(case: str):
    assert hash_of(*case.split("/")) == ROWS[case]


def test_a_seed_follows_from_everything_that_was_sealed_before():
    drawn = drawn_of("given", SPLIT)
    noisy = drawn.noisy.set_column(2, "noisy_1", pa.array(drawn.noisy["noisy_1"].to_numpy() + 1))
    others = [
        Drawn(drawn.domain, drawn.plan.model_copy(update={"release": "other"}), drawn.structure, drawn.noisy),
        Drawn(drawn.domain, drawn.plan, drawn.structure.slice(1), drawn.noisy),
        Drawn(drawn.domain, drawn.plan, drawn.structure, noisy),
    ]
    seeds = {drawn.seed("synthetic", 1), drawn.seed("synthetic", 2), drawn.seed("consistent-counts")}
    assert len(seeds | {other.seed("synthetic", 1) for other in others}) == 6
    assert drawn.seed("synthetic", 1) == drawn.seed("synthetic", 1) and len(drawn.seed("synthetic", 1)) == 32


def shaken(function: Callable[..., Any], rng: np.random.Generator, by: float) -> Callable[..., Any]:
    """The function as another machine would round it."""

    def other(*arguments: Any, **named: Any) -> Any:
        value = function(*arguments, **named)
        is_array = isinstance(value, np.ndarray) and value.dtype == np.float64
        return value * (1 + by * rng.integers(-1, 2, size=value.shape)) if is_array else value

    return other


def turned(function: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """A decomposition whose columns point the other way: any sign of them is right."""

    def other(matrix: np.ndarray, **named: Any) -> tuple[np.ndarray, ...]:
        columns, *rest = function(matrix, **named)
        return columns * rng.choice([-1.0, 1.0], size=columns.shape[1]), *rest

    return other


def on_another_machine(drawn: Drawn, by: float) -> list[str]:
    """The rows where functions are rounded otherwise, and directions point the other way."""
    rng = np.random.default_rng(1)
    with pytest.MonkeyPatch.context() as machine:
        for function in ("exp", "log", "sqrt", "bincount", "tensordot"):
            machine.setattr(np, function, shaken(getattr(np, function), rng, by))
        for function in ("svd", "qr"):
            machine.setattr(np.linalg, function, turned(getattr(np.linalg, function), rng))
        return [content_hash(table) for table in rows_of(drawn)]


@pytest.mark.parametrize(
    ("name", "sets"),
    [("pairs", SPLIT), ("pairs", SHARED), ("cascade", SHARED), ("given", SHARED), ("flat", SPLIT), ("privbayes", SPLIT)],
)
@pytest.mark.whole
def test_rows_are_the_same_on_a_machine_that_rounds_otherwise(name, sets):
    drawn = drawn_of(name, sets, RHO)
    assert on_another_machine(drawn, by=2.3e-16) == [content_hash(table) for table in rows_of(drawn)]


def test_a_machine_that_rounds_badly_would_be_noticed():
    drawn = drawn_of("cascade", SHARED, RHO)
    assert on_another_machine(drawn, by=1e-3) != [content_hash(table) for table in rows_of(drawn)]


SCRIPT = """
import json, sys
from tests.steps_engine.methods.test_after_noise import hash_of
made = (("pairs", "shared"), ("cascade", "shared"), ("flat", "split"))
print(json.dumps([hash_of(name, sets, measure) for name, sets in made for measure in ("eps", "rho")]))
"""


def elsewhere(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_rows_depend_neither_on_the_processor_nor_on_the_threads_of_blas():
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    fast = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    here = elsewhere(OPENBLAS_NUM_THREADS="2")
    assert here == elsewhere(OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE="Prescott", NPY_DISABLE_CPU_FEATURES=fast)
