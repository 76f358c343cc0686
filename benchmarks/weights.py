"""What step to choose: errors of weighted totals by the step, beside a release that leaves weights out. Generated surveys.

Run with `python -m benchmarks.weights [--repeats N] [--rows N] [--epsilon E]`. Errors are root mean squares over all cells of
margins and of pairs of attributes, in percent of the population, against the weighted totals of the records: noise and
rounding, no sampling. The last column is half of the 95 % interval of a margin's cell that `steps table` gives, on average.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

import steps_engine.methods  # noqa: F401  registers the methods
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.answers.table import question_of, table_of
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.weights import count_units
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness

SIZES = (2, 3, 5, 2, 8, 4)
LOW, HIGH, MEAN = 5.0, 100.0, 25.0
PARTS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Survey:
    """Records whose weights are larger where the first attribute is 1."""

    codes: np.ndarray
    weight: np.ndarray

    def total(self, attributes: tuple[int, ...]) -> np.ndarray:
        sizes = [SIZES[j] for j in attributes]
        cell = np.ravel_multi_index(tuple(self.codes[:, j] for j in attributes), sizes)
        return np.bincount(cell, self.weight, int(np.prod(sizes)))


def survey(rows: int, seed: int) -> Survey:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.choice(size, rows, p=rng.dirichlet(np.full(size, 3.0))) for size in SIZES])
    weight = np.clip(rng.lognormal(np.where(codes[:, 0] == 1, 3.3, 2.8), 0.5, rows), LOW, HIGH)
    return Survey(codes, weight)


def domain(rows: int, parts: int | None) -> Domain:
    """With a step of so many parts of the highest weight; None: without weights."""
    step = Decimal(str(HIGH / (parts or 1)))
    weight = {"column": "w", "bounds": (Decimal(str(LOW)), Decimal(str(HIGH))), "total": int(rows * MEAN), "step": step}
    attributes = tuple({"name": f"x{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(SIZES))
    known = {"name": "survey", "population": "people", "expected_rows": rows, "attributes": attributes}
    return Domain.model_validate(known | ({"weight": weight} if parts else {}))


def planned(of: Domain, epsilon: str) -> Plan:
    spec = {"name": "r", "dataset": "d", "source": "s", "privacy": {"epsilon": Decimal(epsilon)}}
    asked = ReleaseSpec.model_validate(spec | {"method": method_spec(decomposition="pairs")})
    return make_plan(Release(spec=asked, domain=of, folder="."))


def errors(of: Domain, plan: Plan, of_records: Survey, counts: Counts, seed: int) -> tuple[float, float, float]:
    """Of margins and of pairs, and half of a margin's interval; without weights a row is taken for the mean weight."""
    made = run_plan(of, plan, counts, SeededRandomness(("weights", seed)))
    scale, people = 1.0 if of.weight else float(of_records.weight.mean()), of_records.weight.sum()
    found: dict[int, list[np.ndarray]] = {1: [], 2: []}
    halves = []
    for size in found:
        for attributes in combinations(range(len(SIZES)), size):
            question = question_of([of.names[j] for j in attributes], {}, of)
            table = table_of(question, of, plan, made.tables, lambda: made.records)
            found[size].append((scale * table.counts.value - of_records.total(attributes)) / people)
            if size == 1:
                halves.append(scale * (table.counts.high - table.counts.low) / 2 / people)
    one, two = (100 * float(np.sqrt(np.mean(np.concatenate(each) ** 2))) for each in found.values())
    return one, two, 100 * float(np.concatenate(halves).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--epsilon", default="1")
    asked = parser.parse_args()
    shown = Table("step", "units of a row", "synthetic rows", "margins, %", "pairs, %", "half a margin's interval, %")
    for parts in (None, *PARTS):
        of = domain(asked.rows, parts)
        plan, tried = planned(of, asked.epsilon), []
        for repeat in range(asked.repeats):
            records = survey(asked.rows, repeat)
            key = repeat.to_bytes(32, "big")
            counts = count_units(records.codes, records.weight, of, key) if parts else count_codes(records.codes)
            tried.append(errors(of, plan, records, counts, repeat))
        figures = [f"{figure:.2f}" for figure in np.mean(tried, axis=0)]
        step = f"{float(of.weighing.step):.4g}" if of.weighing else "no weights"
        shown.add_row(step, str(of.units_per_person), f"{of.expected_units:,}", *figures)
    Console().print(shown)


if __name__ == "__main__":
    main()
