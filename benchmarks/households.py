"""Linked tables on a generated population: distances of person and within-household tables, against households and ε.

Run with `python -m benchmarks.households [--households 2000 8000] [--epsilon 1 4] [--repeats 3]`. Beside `households` stands a
flat release of persons by pairs that ignores households, with the same unit and budget: what it has of a household is what
persons drawn apart from each other have in common, which is nothing but their relation. `chance` is the distance of a second
population of as many households from the first. Figures are also written to .cache/households.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

import steps_engine.methods  # noqa: F401  registers the methods
from schemas.spec.domain import Domain, load_domain
from schemas.spec.method import MethodSpec, method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.domain.linked import joined
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import AT_MOST, dataset, homes

DELTA = "1e-9"
PERSON = ("relation", "sex", "age", "education")
WITHIN = (("spouse", "education"), ("spouse", "age"), ("child", "age"), ("child", "education"))
FIGURES = ("size", "person 1-way", "person 2-way", "within household")


def domain_of(number: int) -> Domain:
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "dataset.yaml").write_text(dataset(number))
        return load_domain(path)


def release_of(domain: Domain, method: MethodSpec, epsilon: str, delta: str | None) -> Release:
    source = {"household": "h", "person": "p"} if domain.tables is not None else "p"
    privacy = {"epsilon": Decimal(epsilon)} | ({"delta": Decimal(delta)} if delta else {})
    spec = {"name": "homes", "dataset": "d", "source": source, "privacy": privacy, "method": method}
    return Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")


def flattened(domain: Domain, household: pd.DataFrame, person: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Codes of household rows and of members' rows, as the counting query joins them."""
    reference = person[person.relation == "reference"].set_index("hid")
    rows = household.set_index("hid")
    kinds = pd.crosstab(person.hid, person.relation).reindex(columns=["spouse", "child"], fill_value=0)
    rows = rows.assign(n_person=person.groupby("hid").size(), n_spouse=kinds.spouse, n_child=kinds.child)
    rows = rows.join(reference[["sex", "age", "education"]].add_prefix("reference_"))
    others = person[person.relation != "reference"].reset_index(drop=True)
    wide = pd.concat([rows.loc[others.hid].reset_index(drop=True), others[list(PERSON)]], axis=1)
    plain, members = domain.as_published(), domain.counted.as_published()
    return encode(rows.reset_index(drop=True)[list(domain.names)], plain), encode(wide[list(domain.counted.names)], members)


def linked(
    number: int, household: pd.DataFrame, person: pd.DataFrame, epsilon: str, delta: str | None, seed: int
) -> pd.DataFrame:
    domain = domain_of(number)
    counts = joined(domain, *map(count_codes, flattened(domain, household, person)))
    method = method_spec(decomposition="households", sets={"count": 1})
    found = run(release_of(domain, method, epsilon, delta), counts, SeededRandomness(("linked", seed)))
    persons: pd.DataFrame = found.tables["person-1"].to_pandas()
    return persons.rename(columns={"household": "hid"})


def flat(
    number: int, household: pd.DataFrame, person: pd.DataFrame, epsilon: str, delta: str | None, seed: int
) -> pd.DataFrame:
    """Persons alone, a household being the unit; put together at random, a reference person each."""
    tables = domain_of(number).tables
    assert tables is not None
    unit = {"who": "household", "rows_per_person": AT_MOST}
    attributes = tuple(each.as_published().model_dump() for each in tables.person.attributes)
    said = {"name": "homes", "population": "p", "expected_rows": round(2.5 * number), "unit": unit, "attributes": attributes}
    domain = Domain.model_validate(said)
    counts = count_codes(encode(person[list(PERSON)], domain.as_published()))
    method = method_spec(decomposition="pairs", sets={"count": 1})
    found = run(release_of(domain, method, epsilon, delta), counts, SeededRandomness(("flat", seed))).frames[0]
    heads = max(int((found.relation == "reference").sum()), 1)
    place = np.random.default_rng(seed).integers(heads, size=len(found))
    place[(found.relation == "reference").to_numpy()] = np.arange((found.relation == "reference").sum())
    return found.assign(hid=place)


def distances(original: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """Half the sum of absolute differences of shares, in the mean over tables."""
    one, other = _prepared(original), _prepared(made)
    pairs = [(a, b) for i, a in enumerate(PERSON) for b in PERSON[i + 1 :]]
    sizes = [frame.groupby("hid").size().value_counts(normalize=True) for frame in (one, other)]
    within = [_distance(*(_beside(frame, kind, name) for frame in (one, other))) for kind, name in WITHIN]
    ways = ([(name,) for name in PERSON], pairs)
    person = [np.mean([_distance(*(_shares(frame, names) for frame in (one, other))) for names in tables]) for tables in ways]
    return dict(zip(FIGURES, [_distance(*sizes), *map(float, person), float(np.mean(within))], strict=True))


def _prepared(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(age=frame.age // 10, **{name: frame[name].astype(str) for name in PERSON if name != "age"})


def _shares(frame: pd.DataFrame, names: tuple[str, ...]) -> pd.Series:
    return frame.groupby(list(names)).size() / len(frame)


def _beside(frame: pd.DataFrame, kind: str, name: str) -> pd.Series:
    """Shares of a reference person's and a member's category, of members of one kind."""
    reference = frame[frame.relation == "reference"].drop_duplicates("hid").set_index("hid")[name]
    members = frame[frame.relation == kind]
    both = pd.DataFrame({"reference": members.hid.map(reference).to_numpy(), "member": members[name].to_numpy()})
    return both.groupby(["reference", "member"]).size() / max(len(both), 1)


def _distance(one: pd.Series, other: pd.Series) -> float:
    return float(one.sub(other, fill_value=0).abs().sum() / 2)


def measure(numbers: list[int], epsilons: list[str], repeats: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number in numbers:
        household, person = homes(number, SeededRandomness(("homes", 0)))
        again = distances(person, homes(number, SeededRandomness(("homes", 1)))[1])
        found.append({"households": number, "release": "chance", "epsilon": "", "measure": ""} | again)
        for epsilon in epsilons:
            for measure_, delta in (("ε", None), ("ρ", DELTA)):
                for name, made in (("households", linked), ("persons alone", flat)):
                    start = time.process_time()
                    each = [distances(person, made(number, household, person, epsilon, delta, i)) for i in range(repeats)]
                    row = {"households": number, "release": name, "epsilon": epsilon, "measure": measure_, "repeats": repeats}
                    row |= {figure: float(np.mean([one[figure] for one in each])) for figure in FIGURES}
                    found.append(row | {"CPU s": (time.process_time() - start) / repeats})
                    print(json.dumps(found[-1], ensure_ascii=False), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, nargs="+", default=[2000, 8000, 32000])
    parser.add_argument("--epsilon", nargs="+", default=["1", "4"])
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    found = measure(asked.households, asked.epsilon, asked.repeats)
    out = Path(".cache/households.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(found, ensure_ascii=False, indent=1))
    print(pd.DataFrame(found).to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main()
