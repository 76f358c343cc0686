"""Households in places within places: rows misplaced at every level, beside linked tables whose tract is a plain attribute.

Run with `python -m benchmarks.census [--households 20000] [--epsilon 1 4] [--repeats 3]`. Households of a generated population
lie in 4 regions of 10 counties of 10 tracts, some tracts large and some empty; younger ones in some counties, larger ones in
some regions. `levels` is the release with a geography, `plain` the same one with tracts as categories. Figures are parts of all
households, or persons, that lie in another place: half the sum of absolute differences, over the number of them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.households import flattened, release_of
from schemas.spec.domain import Domain, load_domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.linked import joined
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes

DELTA = "1e-9"
TRACTS = 400
PLACES = [(f"r{t // 100}", f"c{t // 10}", f"t{t}") for t in range(TRACTS)]
LEVELS = ("region", "county", "tract")
REGION = "      - {name: region, kind: categorical, categories: [north, south, east, west]}\n"
WAYS = {
    "levels": "geography: {levels: [region, county, tract], table: places.csv}",
    "plain": f"kind: categorical, categories: [{', '.join(tract for _, _, tract in PLACES)}]",
}


def domain_of(number: int, way: str) -> Domain:
    with tempfile.TemporaryDirectory() as folder:
        lines = [LEVELS, *PLACES]
        (Path(folder) / "places.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        text = dataset(number).replace(REGION, f"      - {{name: tract, {WAYS[way]}}}\n")
        (path := Path(folder) / "dataset.yaml").write_text(text)
        return load_domain(path)


def country(number: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Where a household lies follows its size, the age of its reference person and chance; a tenth of the tracts is empty."""
    household, person = homes(number, SeededRandomness(("census", seed)))
    rng = np.random.default_rng(seed)
    size = person.groupby("hid").size().to_numpy()
    age = person[person.relation == "reference"].sort_values("hid").age.to_numpy()
    weight = rng.lognormal(0, 1, TRACTS) * (rng.random(TRACTS) > 0.1)
    region, county = np.arange(TRACTS) // 100, np.arange(TRACTS) // 10
    pull = 0.3 * np.outer(np.minimum(size, 5) - 2.5, region - 1.5) / 1.5 + 0.5 * np.outer((age > 50) - 0.5, county % 3 - 1)
    chance = weight * np.exp(pull)
    reached = np.cumsum(chance, axis=1)
    tract = (reached < (rng.random(number) * reached[:, -1])[:, None]).sum(axis=1)
    return household.drop(columns="region").assign(tract=[PLACES[t][2] for t in tract]), person


def by_level(tract: pd.Series, weight: np.ndarray) -> dict[str, np.ndarray]:
    code = tract.astype(str).map({place[2]: t for t, place in enumerate(PLACES)}).to_numpy()
    finest = np.bincount(code, weight, TRACTS)
    return {"region": finest.reshape(4, -1).sum(axis=1), "county": finest.reshape(40, -1).sum(axis=1), "tract": finest}


def figures(rows: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
    found = {}
    for what, weight in (
        ("households", lambda each: np.ones(len(each))),
        ("persons", lambda each: each["n_person"].to_numpy()),
    ):
        one, other = (by_level(each["tract"], weight(each)) for each in (rows, truth))
        found |= {
            f"{what} {level}": float(np.abs(one[level] - other[level]).sum() / 2 / other[level].sum()) for level in LEVELS
        }
    return found


def measured(number: int, way: str, epsilon: str, seed: int) -> dict[str, float]:
    domain, (household, person) = domain_of(number, way), country(number, seed)
    counts = joined(domain, *map(count_codes, flattened(domain, household, person)))
    method = method_spec(decomposition="households", sets={"count": 1})
    found = run(release_of(domain, method, epsilon, DELTA), counts, SeededRandomness((way, seed)))
    truth = household.assign(n_person=person.groupby("hid").size().to_numpy())
    return figures(found.tables["synthetic-1"].to_pandas(), truth)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--households", type=int, default=20_000)
    asked.add_argument("--epsilon", nargs="+", default=["1", "4"])
    asked.add_argument("--repeats", type=int, default=3)
    given = asked.parse_args()
    names = [f"{what} {level}" for what in ("households", "persons") for level in LEVELS]
    print("| ε | release |", " | ".join(names), "|")
    for epsilon in given.epsilon:
        for way in WAYS:
            found = [measured(given.households, way, epsilon, seed) for seed in range(given.repeats)]
            print(f"| {epsilon} | {way} |", " | ".join(f"{np.mean([each[name] for each in found]):.4f}" for name in names), "|")


if __name__ == "__main__":
    main()
