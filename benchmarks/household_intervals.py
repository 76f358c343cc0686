"""How often intervals of linked tables cover, from samples of a generated population: tables and models of household rows,
tables of persons.

Run with `python -m benchmarks.household_intervals [--households 2000] [--epsilon 4] [--delta 1e-9] [--repeats 30]`. The truth
is what a population of 400,000 households says, its numbers spread evenly within bins, as those of synthetic rows are. Beside
it stands how often the samples' own intervals cover, without any noise: a model that is no straight line covers less.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from benchmarks.households import domain_of, flattened, release_of
from schemas.plan import Plan
from schemas.results import AnalysisResult
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release
from steps_engine.analyses.results import results_of
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.linked import joined
from steps_engine.domain.linked_records import everybody_table, linked_tables
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import homes

EVERYBODY, SETS = 400_000, 5
OF_HOUSEHOLDS = (("tenure", "region"), ("tenure", "n_child"), ("reference_education", "reference_sex"))
MODELS = (
    "n_person ~ reference_age + tenure",
    "reference_age ~ tenure + reference_education",
    "reference_sex ~ reference_education + n_child",
)
OF_PERSONS = (("relation", "sex"), ("sex", "education"), ("tenure", "sex"))
ASKED = (
    *(TableAnalysis(table=each) for each in OF_HOUSEHOLDS),
    *(ModelAnalysis(model=each) for each in MODELS),
    *(TableAnalysis(table=each) for each in OF_PERSONS),
)
Truth = dict[tuple[str, str], float | None]  # of an analysis and one of its numbers
Covered = dict[str, list[bool]]


def asking(domain: Domain, epsilon: str, delta: str | None) -> Release:
    method = method_spec(decomposition="households", sets={"count": SETS, "budget": "shared"})
    release = release_of(domain, method, epsilon, delta)
    return release.model_copy(update={"spec": release.spec.model_copy(update={"analyses": ASKED})})


def without_noise(domain: Domain, plan: Plan, number: int, seed: tuple[object, ...]) -> tuple[AnalysisResult, ...]:
    """What so many households say themselves, as one set would."""
    household, person = homes(number, SeededRandomness(seed))
    rows, members = flattened(domain, household, person)
    randomness = SeededRandomness(("within bins", *seed))
    made = decode(rows, domain, randomness)
    own = decode(members[:, len(domain.names) :], domain.own, randomness)
    home = person.hid[person.relation != "reference"].to_numpy() - 1
    persons = everybody_table(domain, made, linked_tables(domain, made, home, own)["person"])
    return results_of(plan.model_copy(update={"sets": 1}), domain, [made], [persons])


def released(release: Release, plan: Plan, number: int, seed: tuple[object, ...]) -> tuple[AnalysisResult, ...]:
    domain = release.domain
    counts = joined(domain, *map(count_codes, flattened(domain, *homes(number, SeededRandomness(seed)))))
    privacy = release.spec.privacy
    found = run(release, counts, SeededRandomness(("released", privacy.epsilon, str(privacy.delta), *seed)))
    numbers = range(1, SETS + 1)
    persons: list[pa.Table] = [
        everybody_table(domain, found.tables[f"synthetic-{i}"], found.tables[f"person-{i}"]) for i in numbers
    ]
    return results_of(plan, domain, found.records, persons)


def note(covered: Covered, results: Iterable[AnalysisResult], truth: Truth) -> None:
    for each in results:
        for told in each.estimates:
            exact = truth[each.name, told.name]
            if told.low is not None and told.high is not None and exact is not None:
                covered.setdefault(each.name, []).append(told.low <= exact <= told.high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--households", type=int, default=2000)
    parser.add_argument("--epsilon", default="4")
    parser.add_argument("--delta")
    parser.add_argument("--repeats", type=int, default=30)
    asked = parser.parse_args()
    domain = domain_of(asked.households)
    release = asking(domain, asked.epsilon, asked.delta)
    plan = make_plan(release)
    whole = without_noise(domain, plan, EVERYBODY, ("everybody",))
    truth: Truth = {(each.name, told.name): told.estimate for each in whole for told in each.estimates}
    noisy, own = Covered(), Covered()
    for repeat in range(asked.repeats):
        note(noisy, released(release, plan, asked.households, ("cover", repeat)), truth)
        note(own, without_noise(domain, plan, asked.households, ("cover", repeat)), truth)
        print(f"{repeat + 1} of {asked.repeats}", flush=True)
    for name in noisy:
        print(
            f"{name:50s} {np.mean(noisy[name]):.3f}   the samples' own {np.mean(own[name]):.3f}   {len(noisy[name]):,} numbers"
        )


if __name__ == "__main__":
    main()
