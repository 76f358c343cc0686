"""Places with survey weights: totals of every level are unbiased, told in people, with what rounding to whole units may add."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from schemas.spec.domain import Domain
from schemas.spec.weights import Weight
from steps_engine.domain.columns import column_of
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.domain.places import places_of
from steps_engine.domain.weights import count_units
from steps_engine.methods.places.estimate import joined
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import run
from steps_engine.methods.tabulated import Asked
from steps_engine.methods.weighted import in_people, table_in_people
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.places.test_places import asked, country, people

ROWS, BOUNDS, TRIALS = 6000, (1, 12), 120


def surveyed() -> tuple[Domain, np.ndarray, np.ndarray]:
    """The older somebody is, the more people they stand for: counties differ in age, and so in weight."""
    weight = Weight.model_validate({"column": "w", "bounds": BOUNDS, "total": 30_000, "step": Decimal(5)})
    codes = people(ROWS)
    found = np.clip((1 + codes[:, 2]) * np.random.default_rng(1).lognormal(0.4, 0.4, ROWS), *BOUNDS)
    return country(ROWS).model_copy(update={"weight": weight}), codes, found


def truth(of: Domain, codes: np.ndarray, weight: np.ndarray, level: int) -> np.ndarray:
    places = places_of(of)
    return np.bincount(places.at(level)[codes[:, places.attribute]], weight, places.sizes[level])


def measured(of: Domain, plan, counts, trial: int) -> dict:
    """Structure and noisy counts, without rows."""
    method, noise = method_of(plan), SeededRandomness(("weighted places", trial))
    tree = method.build(of, plan, counts, noise)
    return {"tree": tree, "noisy-counts": method.sanitize(of, plan, counts, tree, noise)}


def told_by_level(of: Domain, codes: np.ndarray, weight: np.ndarray, **privacy) -> list[list]:
    """Of every level its table in people, over many keys and noises."""
    places, plan = places_of(of), make_plan(asked(of, **privacy))
    asks = [Asked((places.attribute,), {}, {places.attribute: tuple(places.at(level).tolist())}) for level in (1, 2, 3)]
    found = []
    for trial in range(TRIALS):
        tables = measured(of, plan, count_units(codes, weight, of, trial.to_bytes(32, "big")), trial)
        found.append([(method_of(plan).tabulate(of, plan, tables, each), each) for each in asks])
    return found


@pytest.mark.whole
def test_weighted_totals_of_every_level_are_unbiased():
    of, codes, weight = surveyed()
    found = told_by_level(of, codes, weight, rho=Decimal(2))
    for level in (1, 2, 3):
        told = np.stack([table_in_people(*trial[level - 1], of).estimate for trial in found])
        exact, error = truth(of, codes, weight, level), told.std(axis=0, ddof=1) / np.sqrt(TRIALS)
        assert (np.abs(told.mean(axis=0) - exact) < 4.5 * error).all()
        records = truth(of, codes, np.full(ROWS, weight.mean()), level)
        assert (np.abs(records - exact) > 4.5 * error).any()  # records, each of the mean weight, are other numbers
        in_units = np.stack([trial[level - 1][0].estimate for trial in found]).mean(axis=0)
        assert (np.abs(in_units - exact) > 4.5 * error).any()  # and so are units


@pytest.mark.whole
def test_intervals_of_places_hold_what_rounding_adds():
    """With hardly any noise rounding is what errs: intervals of noise alone would miss it."""
    of, codes, weight = surveyed()
    held, without = [], []
    for trial in told_by_level(of, codes, weight, rho=Decimal(2000)):
        for level, (table, asks) in enumerate(trial, start=1):
            people_of, exact = table_in_people(table, asks, of), truth(of, codes, weight, level)
            apart = np.abs(people_of.estimate - exact)
            held.append((apart <= people_of.half).mean())
            without.append((apart <= 5 * table.half).mean())
    assert np.mean(held) > 0.95 > 0.6 > np.mean(without)


@pytest.mark.whole
def test_levels_on_the_page_are_those_of_tables_in_people():
    of, codes, weight = surveyed()
    made = run(asked(of, rho=Decimal(5)), count_units(codes, weight, of, PUBLIC_KEY), SeededRandomness("page"))
    in_units = made.method.view(of, made.plan, made.tables)
    shown = in_people(in_units, of)
    margins = {margin.attribute: margin for margin in (*shown.margins, *shown.derived)}
    for number, level in enumerate(shown.levels, start=1):
        column = column_of(level.level, of)
        alone = Asked((column.source,), {}, {column.source: tuple(column.codes.tolist())})
        table = table_in_people(made.method.tabulate(of, made.plan, made.tables, alone), alone, of)
        for each in (level, margins[level.level]):
            assert each.estimate == pytest.approx(table.estimate) and each.half == pytest.approx(table.half)
            assert each.error == pytest.approx(np.sqrt(table.variance))
        assert level.synthetic.sum() == pytest.approx(shown.total.rows[0] * 5)
        assert level.estimate.sum() == pytest.approx(shown.total.estimate)
        assert np.abs(level.synthetic - truth(of, codes, weight, number)).sum() < 0.1 * weight.sum()
        assert np.abs(in_units.levels[number - 1].estimate - level.estimate).sum() > 0.5 * weight.sum()  # units are fewer
    assert made.method.check(of, made.plan, made.tables).findings == ()


def test_rows_of_places_have_the_step_as_weight_and_keep_what_least_squares_gives_them():
    of, codes, weight = surveyed()
    made = run(asked(of, rho=Decimal(5)), count_units(codes, weight, of, PUBLIC_KEY), SeededRandomness("rows"))
    (rows,) = made.frames
    assert {"tract", "region", "county", "w"} <= set(rows.columns) and (rows["w"] == 5).all()
    levels = joined(read_measured(of, made.plan, made.tables), 0).rows
    drawn = rows.groupby("county")["w"].sum().reindex([f"c{c}" for c in range(12)], fill_value=0)
    assert np.abs(drawn.to_numpy() - 5 * np.maximum(levels.value[2][:, 0], 0)).max() <= 5 * 3
