"""How often 95% intervals from the sets of a release of places hold the truth, by analysis.

Run with `python -m benchmarks.place_intervals [--repeats N] [--rho R | --epsilon E] [--sets M] [--together]`. A country of 3
regions, 12 counties and 96 tracts is fixed, and 20,000 of its people are drawn anew in every repeat. Of tables the cells in
which 20 people or more are to be expected; of the model all coefficients. `--together` asks for two attributes by county too.
"""

from __future__ import annotations

import argparse
from decimal import Decimal

import numpy as np
from rich.console import Console
from rich.table import Table

from schemas.results import AnalysisResult
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.analyses.questions import model_of, question_of
from steps_engine.analyses.results import results_of
from steps_engine.analyses.seen import frame_of
from steps_engine.domain.columns import with_derived
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.places import places_of
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.regression import fit
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness

REGIONS, COUNTIES, TRACTS = 3, 12, 96
PEOPLE, DRAWN, LEAST = 1_000_000, 20_000, 20
OTHERS = {"sex": 2, "age": 4, "work": 6}
TABLES = (
    ("region",), ("county",), ("tract",), ("age", "region"), ("age", "county"), ("sex", "county"), ("work", "county"),
    ("sex", "tract"), ("age", "work"),
)  # fmt: skip
TOGETHER = ("county", "age", "work")
MODEL = "sex ~ age + region"


def country() -> tuple[Domain, np.ndarray]:
    """Counties differ in age, work follows age, sex follows age, region and county; every eighth tract is empty."""
    county = np.arange(TRACTS) * COUNTIES // TRACTS
    table = tuple((f"r{c * REGIONS // COUNTIES}", f"c{c}", f"t{t}") for t, c in enumerate(county))
    named = {name: tuple(f"{name}{k}" for k in range(size)) for name, size in OTHERS.items()}
    attributes = [{"name": name, "kind": "categorical", "categories": each} for name, each in named.items()]
    geography = {"levels": ("region", "county", "tract"), "table": table}
    attributes.insert(1, {"name": "tract", "kind": "categorical", "geography": geography})
    known = {"name": "country", "population": "people", "expected_rows": DRAWN, "attributes": tuple(attributes)}
    rng = np.random.default_rng(0)
    weight = rng.lognormal(0, 0.5, TRACTS) * (np.arange(TRACTS) % 8 != 7)
    tract = rng.choice(TRACTS, PEOPLE, p=weight / weight.sum())
    kind = rng.normal(0, 0.7, COUNTIES)[county[tract]]
    age = np.clip(np.floor(2 + kind + rng.normal(0, 1, PEOPLE)), 0, 3).astype(int)
    work = np.clip(age + rng.integers(0, 3, PEOPLE), 0, 5)
    place = np.array([0, 0.5, -0.6])[county[tract] * REGIONS // COUNTIES] + rng.normal(0, 0.25, COUNTIES)[county[tract]]
    sex = rng.random(PEOPLE) < 1 / (1 + np.exp(0.8 - 0.4 * age - place))
    return Domain.model_validate(known), np.stack([sex, tract, age, work], axis=1).astype(np.int64)


def truth(domain: Domain, codes: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of every analysis what is true of the country, and of which of it intervals are looked at."""
    places, found = places_of(domain), dict[str, tuple[np.ndarray, np.ndarray]]()
    for table in (*TABLES, TOGETHER):
        levels = {name: places.levels.index(name) + 1 for name in table if name in places.levels}
        columns = [places.at(levels[name])[codes[:, 1]] if name in levels else codes[:, domain.index(name)] for name in table]
        sizes = [places.sizes[levels[name]] if name in levels else domain.sizes[domain.index(name)] for name in table]
        shares = np.bincount(np.ravel_multi_index(columns, sizes), minlength=int(np.prod(sizes))) / len(codes)
        found[" × ".join(table)] = shares, shares * DRAWN >= LEAST
    asked, seen = question_of(ModelAnalysis(model=MODEL), domain), with_derived(domain)
    records = decode(codes, domain, SeededRandomness("country"))
    value = fit(model_of(asked), frame_of(asked, seen, records, codes_of(records, seen))).value
    return found | {asked.name: (value, np.ones(len(value), dtype=bool))}


def release(domain: Domain, privacy: dict[str, Decimal], sets: int, together: bool) -> Release:
    tables = (*TABLES, TOGETHER) if together else TABLES
    analyses = (*(TableAnalysis(table=table) for table in tables), ModelAnalysis(model=MODEL))
    method = method_spec("places", sets={"count": sets, "budget": "shared"})
    said = {"name": "country", "dataset": "-", "source": "-", "privacy": privacy, "method": method, "analyses": analyses}
    return Release(spec=ReleaseSpec.model_validate(said), domain=domain, folder=".")


def held(told: AnalysisResult, true: np.ndarray, seen: np.ndarray) -> float:
    """The part of the intervals that hold what is true."""
    ends = np.array([[each.low, each.high] for each in told.estimates], dtype=float)
    return float(((ends[:, 0] <= true) & (true <= ends[:, 1]))[seen].mean())


def measure(repeats: int, privacy: dict[str, Decimal], sets: int, together: bool) -> dict[str, tuple[float, float]]:
    """Coverage and its standard error over the repeats."""
    domain, codes = country()
    true, asked = truth(domain, codes), release(domain, privacy, sets, together)
    found: dict[str, list[float]] = {}
    for repeat in range(repeats):
        drawn = codes[np.random.default_rng(repeat).choice(PEOPLE, DRAWN)]
        made = run(asked, count_codes(drawn), SeededRandomness((str(privacy), repeat)))
        for told in results_of(made.plan, domain, made.records):
            found.setdefault(told.name, []).append(held(told, *true[told.name]))
    return {name: (float(np.mean(each)), float(np.std(each) / len(each) ** 0.5)) for name, each in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--rho", type=Decimal, default=Decimal("0.02"))
    parser.add_argument("--epsilon", type=Decimal)
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--together", action="store_true")
    given = parser.parse_args()
    paid = {"epsilon": given.epsilon} if given.epsilon else {"rho": given.rho, "delta": Decimal("1e-9")}
    shown = Table("analysis", "held", "standard error")
    for name, (share, error) in measure(given.repeats, paid, given.sets, given.together).items():
        shown.add_row(name, f"{share:.3f}", f"{error:.3f}")
    Console().print(shown)
