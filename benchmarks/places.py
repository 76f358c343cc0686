"""A generated country of three levels and 10,000 tracts, some of them empty: levels joined, against a flat release and a top-
down pass with equal shares.

Run with `python -m benchmarks.places [--rows N] [--tracts N] [--repeats N] [--pure] [--shares equal]`. Errors are the
part of all rows that lies in another cell, per level: of places alone (rows) and in the mean over attributes by place
(tables). Flat: tracts as categories of a plain attribute, by pairs at the same budget. Top-down: the same budget in equal
shares over all tables and all levels, and from the nation down every place's children are moved alike until they sum to it.
Coverage: how many of the published 95% intervals hold the true count.

`--blocks N` makes sets of the same counts in one block and in blocks of at most N rows, and compares both with the records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain import blocks as domain_blocks
from steps_engine.domain.blocks import ends_of_blocks
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.places import Places, places_of
from steps_engine.domain.records import codes_of
from steps_engine.inference.place_tables import is_of_places
from steps_engine.inference.reach import standard_errors
from steps_engine.methods.pairs import synthesize
from steps_engine.methods.pairs.estimate import one_way_with_errors
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.places.estimate import joined
from steps_engine.methods.places.tables import cells_of
from steps_engine.methods.places.tables import read_measured as read_places
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named
from steps_engine.methods.run_in_memory import Synthetic, run_plan
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.noise import Randomness, SeededRandomness

REGIONS, COUNTIES, TRACTS = 10, 300, 10_000
SIZES = {"sex": 2, "age": 8, "education": 5, "work": 6, "tenure": 3, "income": 10}
EMPTY = 0.1
LEVELS = ("nation", "region", "county", "tract")


def country(rows: int, tracts: int, shares: str = "least_error", seed: int = 0) -> tuple[Domain, np.ndarray]:
    """A domain of places within places and rows of codes: places differ in size and in whom they hold, at every level."""
    rng = np.random.default_rng(seed)
    county = np.arange(tracts) * COUNTIES // tracts
    region = county * REGIONS // COUNTIES
    table = tuple((f"r{a}", f"c{b}", f"t{c}") for a, b, c in zip(region, county, range(tracts), strict=True))
    place = {"name": "tract", "kind": "categorical", "geography": {"levels": LEVELS[1:], "table": table, "shares": shares}}
    others = ({"name": name, "kind": "categorical", "categories": tuple(map(str, range(k)))} for name, k in SIZES.items())
    known = {"name": "country", "population": "people", "expected_rows": rows, "attributes": (place, *others)}
    weight = rng.lognormal(0, 1, tracts) * (rng.random(tracts) >= EMPTY)
    tract = rng.choice(tracts, rows, p=weight / weight.sum())
    kind = rng.normal(size=REGIONS)[region] + rng.normal(size=COUNTIES)[county] + rng.normal(size=tracts)
    person = 0.3 * kind[tract] + rng.normal(size=rows)
    traits = [np.floor((0.6 * person + 0.8 * rng.normal(size=rows) + 2) / 4 * k).clip(0, k - 1) for k in SIZES.values()]
    return Domain.model_validate(known), np.stack([tract, *traits], axis=1).astype(np.int64)


def flat(domain: Domain) -> Domain:
    """The same with tracts as categories of a plain attribute."""
    plain = domain.attributes[0].model_copy(update={"geography": None})
    return domain.model_copy(update={"attributes": (plain, *domain.attributes[1:])})


def release(domain: Domain, decomposition: str, pure: bool, rho: str = "0.1") -> Release:
    privacy = {"epsilon": Decimal(1)} if pure else {"rho": Decimal(rho), "delta": Decimal("1e-9")}
    said = {"name": "country", "dataset": "-", "source": "-", "privacy": privacy, "method": method_spec(decomposition)}
    return Release(spec=ReleaseSpec.model_validate(said), domain=domain, folder=".")


def exact(places: Places, codes: np.ndarray, level: int, *of: int) -> np.ndarray:
    """Places of a level × columns."""
    sizes = [places.sizes[level], *(places.domain.sizes[j] for j in of)]
    cell = np.ravel_multi_index((places.at(level)[codes[:, 0]], *(codes[:, j] for j in of)), sizes)
    return np.bincount(cell, minlength=int(np.prod(sizes))).reshape(sizes[0], -1).astype(float)


def misplaced(true: np.ndarray, found: np.ndarray) -> float:
    kept = np.maximum(found, 0)
    return float(np.abs(true / true.sum() - kept / kept.sum()).sum() / 2)


def by_level(places: Places, true: np.ndarray, found: Any) -> Iterator[tuple[str, str, float]]:
    """(level, what, error) of something that has counts for a level and an attribute."""
    for level, name in enumerate(LEVELS):
        if level:
            yield name, "rows", misplaced(exact(places, true, level), found(level))
        errors = [misplaced(exact(places, true, level, j), found(level, j)) for j in places.others]
        yield name, "tables", float(np.mean(errors))


def of_estimates(made: Synthetic, places: Places, codes: np.ndarray) -> Iterator[tuple[str, str, float]]:
    """The same of published estimates, where an attribute was counted at a level."""
    measured = read_places(made.domain, made.plan, made.tables)
    found = joined(measured, None)
    for level in range(1, places.finest + 1):
        tables = [table for table in measured.tables if table.level == level]
        error = [misplaced(exact(places, codes, level, *each.of), cells_of(places, found, each)[0]) for each in tables]
        yield LEVELS[level], "rows", error[0]
        if error[1:]:
            yield LEVELS[level], "tables", float(np.mean(error[1:]))


def top_down(places: Places, codes: np.ndarray, asked: Release, randomness: Randomness) -> Any:
    """Counts of every table at every level, from equal shares and one pass down."""
    allowance, tables = allowance_of(asked), [(), *((j,) for j in places.others)]
    draw = allowance.count("", allowance.total / (len(tables) * places.finest), layer=1, set_=None)
    found: dict[tuple[int, ...], np.ndarray] = {}
    for of in tables:
        above = exact(places, codes, 0, *of)
        above = above + noise_of(draw).draw(above.size, randomness).reshape(above.shape)
        found[0, *of] = above
        for level in range(1, places.finest + 1):
            noisy = exact(places, codes, level, *of)
            noisy = noisy + noise_of(draw).draw(noisy.size, randomness).reshape(noisy.shape)
            layer = places.tree.layers[level - 1]
            left = above - np.add.reduceat(noisy, layer.first, axis=0)
            above = noisy + np.repeat(left / layer.fanout[:, None], layer.fanout, axis=0)
            found[level, *of] = above
    return lambda level, *of: found[level, *of]


def covered(made: Synthetic, places: Places, codes: np.ndarray) -> Iterator[tuple[str, str, int, int]]:
    """(level, what, intervals that hold the truth, all): rows of places, and attributes by place where they were counted."""
    for level in range(1, places.finest + 1):
        classes = {0: tuple(places.at(level).tolist())}
        for of in ((), *((j,) for j in places.others)):
            found = made.method.tabulate(made.domain, made.plan, made.tables, Asked((0, *of), {}, classes))
            if isinstance(found, Tabulated):
                inside = np.abs(found.estimate - exact(places, codes, level, *of).ravel()) <= found.half
                yield LEVELS[level], "tables" if of else "rows", int(inside.sum()), len(inside)


def covered_flat(made: Synthetic, places: Places, codes: np.ndarray) -> Iterator[tuple[str, str, int, int]]:
    """Of tracts alone, whose margin is published; sums of thousands of them have no interval of their own there."""
    structure, _ = read_measured(made.domain, made.plan, made.tables)
    estimate, error = one_way_with_errors(structure.margins, 0)
    inside = np.abs(estimate - exact(places, codes, places.finest).ravel()) <= standard_errors(made.plan) * error
    yield LEVELS[-1], "rows", int(inside.sum()), len(inside)


def measured_only(domain: Domain, asked: Release, counts: Counts, randomness: Randomness) -> Synthetic:
    """Without rows: what intervals need."""
    plan, method = make_plan(asked), method_named(asked.spec.method.decomposition)
    structure = method.build(domain, plan, counts, randomness)
    noisy = method.sanitize(domain, plan, counts, structure, randomness)
    return Synthetic(domain, method, plan, {"tree": structure, "noisy-counts": noisy})


def measure(
    rows: int = 1_000_000,
    tracts: int = TRACTS,
    repeats: int = 2,
    covering: int = 8,
    pure: bool = False,
    shares: str = "least_error",
) -> dict:
    domain, codes = country(rows, tracts, shares)
    places, counts, errors, held = places_of(domain), count_codes(codes), dict[tuple, list[float]](), dict[tuple, list[int]]()
    seconds: dict[str, list[float]] = {}
    ways = {"levels": (release(domain, "places", pure), domain), "flat": (release(flat(domain), "pairs", pure), flat(domain))}
    for repeat in range(repeats):
        for way, (asked, of) in ways.items():
            begun = time.process_time()
            made = run_plan(of, make_plan(asked), counts, SeededRandomness((way, repeat)))
            seconds.setdefault(way, []).append(time.process_time() - begun)
            drawn = codes_of(made.records[0], of)
            for level, what, error in by_level(places, codes, lambda at, *of, drawn=drawn: exact(places, drawn, at, *of)):
                errors.setdefault((level, what, way), []).append(error)
            if way == "levels":
                for level, what, error in of_estimates(made, places, codes):
                    errors.setdefault((level, what, "estimates"), []).append(error)
        found = top_down(places, codes, ways["levels"][0], SeededRandomness(("top-down", repeat)))
        for level, what, error in by_level(places, codes, found):
            errors.setdefault((level, what, "top-down"), []).append(error)
    for repeat in range(covering):
        for way, (asked, of) in ways.items():
            made = measured_only(of, asked, counts, SeededRandomness(("covering", way, repeat)))
            holding = covered if way == "levels" else covered_flat
            for level, what, inside, all_ in holding(made, places, codes):
                told = held.setdefault((level, what, way), [0, 0])
                told[0], told[1] = told[0] + inside, told[1] + all_
    plan = make_plan(ways["levels"][0])
    return {
        "errors": {" ".join(key): float(np.mean(each)) for key, each in errors.items()},
        "coverage": {" ".join(key): round(inside / all_, 4) for key, (inside, all_) in held.items()},
        "seconds": {way: round(float(np.mean(each)), 1) for way, each in seconds.items()},
        "measured": [d.name for d in plan.draws if is_of_places(d)],
        "ratio flat/levels": {
            f"{level} {what}": round(np.mean(errors[level, what, "flat"]) / np.mean(each), 2)
            for (level, what, way), each in errors.items()
            if way == "levels"
        },
    }


def in_blocks(rows: int, tracts: int, repeats: int, most: int, rho: str) -> Table:
    """One measurement; sets in one block and in several, and CPU seconds of each. Bases are as large as a block, as those of
    2²⁰ rows are.
    """
    domain, codes = country(rows, tracts)
    places, asked = places_of(domain), release(domain, "places", False, rho)
    made = measured_only(domain, asked, count_codes(codes), SeededRandomness("blocks"))
    shown, errors = Table("level", "of"), dict[tuple[str, str], list[str]]()
    for block in (rows + rows // 10, most):
        seconds, found = [], dict[tuple[str, str], list[float]]()
        with patch.object(domain_blocks, "BLOCK", block), patch.object(synthesize, "LARGEST_BASE", most):
            for repeat in range(repeats):
                begun = time.process_time()
                tables, stream = made.tables, SeededRandomness(("blocks", repeat))
                drawn = codes_of(made.method.synthesize(domain, made.plan, tables, 1, stream), domain)
                seconds.append(time.process_time() - begun)
                for level, what, error in by_level(places, codes, lambda at, *of, drawn=drawn: exact(places, drawn, at, *of)):
                    found.setdefault((level, what), []).append(error)
            number = len(ends_of_blocks(len(drawn))) - 1
        shown.add_column(f"{number} block{'s' * (number > 1)}, {np.mean(seconds):.1f} s")
        for key, each in found.items():
            errors.setdefault(key, []).append(f"{np.mean(each):.5f}")
    for key, each in errors.items():
        shown.add_row(*key, *each)
    return shown


def shown(found: dict) -> Iterator[Table]:
    table = Table(
        "level",
        "of",
        "levels: rows",
        "levels: estimates",
        "flat: rows",
        "top-down: counts",
        "coverage, levels",
        "coverage, flat",
    )
    for key in [key.removesuffix(" levels") for key in found["errors"] if key.endswith(" levels")]:
        ways = (found["errors"].get(f"{key} {way}") for way in ("levels", "estimates", "flat", "top-down"))
        errors = ("–" if error is None else f"{error:.5f}" for error in ways)
        table.add_row(*key.split(), *errors, *(str(found["coverage"].get(f"{key} {way}", "–")) for way in ("levels", "flat")))
    yield table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tracts", type=int, default=TRACTS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--covering", type=int, default=8)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--shares", default="least_error", choices=("equal", "least_error"))
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--rho", default="0.1")
    given = vars(parser.parse_args())
    most, rho = given.pop("blocks"), given.pop("rho")
    if most:
        Console(width=140).print(in_blocks(given["rows"], given["tracts"], given["repeats"], most, rho))
    else:
        figures = measure(**given)
        for each in shown(figures):
            Console(width=140).print(each)
        Console(width=140).print(figures["seconds"], figures["measured"])
