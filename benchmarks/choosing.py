"""What `decomposition: auto` takes beside flat, tree, cascade and pairs really run: utility of one set, mean over repeats.

Run with `python -m benchmarks.choosing [FILE SIZES.json] [--repeats N] [--attributes NAME,…] [--rows N]
[--delta 1e-9] [--twin]`: the arguments of benchmarks/cascade.py; attributes and rows may be fewer than the file has, which
moves where the best changes hands. A twin has the same domain and as many rows: all that is public is the same, so that auto
takes the same, and another method may be the best. The tree is the one that auto would take. With δ the table is that of
zero-concentrated privacy. Ratios have a standard error, of the sets that both sides made: one of 1.1 that is as uncertain as
0.1 is no miss.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cascade import domain_of, read, standin
from schemas.errors import SpecError
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec, method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.methods.choosing import candidates
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness

EPSILONS = tuple(math.exp(k) for k in (-2, -1, 0, 1, 2))


def release(domain: Domain, method: MethodSpec, epsilon: float, delta: str | None) -> Release:
    privacy = {"epsilon": Decimal(f"{epsilon:.6f}"), **({"delta": Decimal(delta)} if delta else {})}
    spec = {"name": "b", "dataset": "d", "source": "s", "privacy": privacy, "method": method}
    return Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")


def one_set(asked: Release, counts: Counts, repeat: int) -> np.ndarray:
    """Codes of one set, through the stages of `steps run`."""
    return encode(run(asked, counts, SeededRandomness(("choosing", repeat))).frames[0], asked.domain)


@dataclass(frozen=True)
class Figures:
    """2-way and 3-way distance and KS of every set; infinite where the plan refuses the method, or a set has no rows."""

    of_sets: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.of_sets.mean(axis=0)

    @property
    def error(self) -> np.ndarray:
        """The standard error of the mean, as a part of it."""
        sets = len(self.of_sets)
        if sets < 2 or not np.isfinite(self.of_sets).all():
            return np.full(3, np.nan)
        return self.of_sets.std(axis=0, ddof=1) / math.sqrt(sets) / np.maximum(self.mean, 1e-300)

    def over(self, best: Figures, which: int) -> str:
        """A ratio with its standard error."""
        if self is best:
            return "1"
        error = math.hypot(self.error[which], best.error[which])
        return f"{self.mean[which] / max(best.mean[which], 1e-300):.2f}" + (f"±{error:.2f}" if math.isfinite(error) else "")


def figures(original: Coded, counts: Counts, asked: Release, repeats: int) -> Figures:
    found = []
    for repeat in range(repeats):
        try:
            rows = one_set(asked, counts, repeat)
            made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
            ks = specks(original, made, SeededRandomness(0), null=0).ks
        except SpecError:
            return Figures(np.full((repeats, 3), np.inf))
        found.append((*(margins(original, made, min(ways, len(original.names))).mean for ways in (2, 3)), ks))
    return Figures(np.array(found))


def compare(original: Coded, repeats: int, delta: str | None = None) -> list[dict[str, object]]:
    """Per ε: the figures of all four, what auto takes with its predictions, and how far that is from the best in each."""
    domain, counts, rows = domain_of(original), count_codes(original.codes), []
    for epsilon in EPSILONS:
        asked = release(domain, method_spec(), epsilon, delta)
        plan = make_plan(asked)
        specs = {each.spec.decomposition: each.spec for each in candidates(asked)}
        measured = {name: figures(original, counts, asked.asking(spec), repeats) for name, spec in specs.items()}
        best = [min(measured.values(), key=lambda each, which=which: each.mean[which]) for which in range(3)]
        ratio = [measured[plan.decomposition].over(best[which], which) for which in range(3)]
        predicted = {each.decomposition: each.predicted_error for each in plan.considered}
        found = {"epsilon": epsilon, "taken": plan.decomposition, "ratio": ratio}
        rows.append(found | {"measured": measured, "predicted": predicted})
    return rows


def some_of(table: Coded, attributes: str | None, rows: int | None) -> Coded:
    names = tuple(attributes.split(",")) if attributes else table.names
    chosen = [table.names.index(name) for name in names]
    kept = table.codes[:: max(1, len(table.codes) // rows)][:rows] if rows else table.codes
    return Coded(names, tuple(table.sizes[j] for j in chosen), kept[:, chosen])


def twin_of(table: Coded) -> Coded:
    """As many rows of the same domain, whose categories are about equally frequent and every pair somewhat dependent."""
    rng, logit = np.random.default_rng(1), np.zeros(table.sizes)
    for pair in combinations(range(len(table.sizes)), 2):
        logit += rng.normal(0, 0.3, [size if j in pair else 1 for j, size in enumerate(table.sizes)])
    chance = np.exp(logit).ravel()
    cells = rng.choice(chance.size, table.total, p=chance / chance.sum())
    return Coded(table.names, table.sizes, np.stack(np.unravel_index(cells, table.sizes), axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="FILE and SIZES.json")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--attributes")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--delta", help="of zero-concentrated privacy; without it, pure")
    parser.add_argument("--twin", action="store_true", help="other rows of the same domain, as many")
    asked = parser.parse_args()
    original = some_of(read(*asked.files) if asked.files else standin(), asked.attributes, asked.rows)
    original = twin_of(original) if asked.twin else original
    title = f"{original.total:,} rows × {len(original.names)} attributes, mean of {asked.repeats} sets"
    title += f", zCDP at δ = {asked.delta}" if asked.delta else ""
    table = Table(title=f"{title}: 2-way · 3-way TVD · KS (√(2-way·3-way) predicted), ratios to the best")
    found = compare(original, asked.repeats, asked.delta)
    for heading in ("ε", *found[0]["measured"], "auto takes", "ratio"):
        table.add_column(heading)
    for row in found:
        cells = (
            f"{two:.4f} · {three:.4f} · {ks:.3f} ({row['predicted'][name]:.3g})"
            for name, (two, three, ks) in ((name, each.mean) for name, each in row["measured"].items())
        )
        table.add_row(f"{row['epsilon']:.4g}", *cells, row["taken"], " · ".join(row["ratio"]))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
