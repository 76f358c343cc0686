"""Intervals of a weighted mean from synthetic sets: sampling, rounding and noise together, in many surveys of one population."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from schemas.plan import Plan
from schemas.spec.analyses import TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.analyses.results import results_of
from steps_engine.domain.weights import count_units
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, release

PEOPLE, SAMPLED, TRIALS = 200_000, 800, 100


def population() -> tuple[np.ndarray, np.ndarray]:
    """Everybody's attributes and chance to be asked: those with x0 = 1 are asked less often, and have larger weights."""
    rng = np.random.default_rng(5)
    codes = np.column_stack([rng.random(PEOPLE) < 0.35, rng.integers(0, 2, PEOPLE)]).astype(int)
    weight = np.clip(rng.lognormal(np.where(codes[:, 0] == 1, 5.8, 5.3), 0.4, PEOPLE), 80, 900)
    return codes, weight


CODES, WEIGHT = population()
WEIGHT = WEIGHT * (1 / WEIGHT).sum() / SAMPLED  # so that the chances 1/w add up to the number that is sampled
TRUTH = float(CODES[:, 0].mean())
HIGH, LOW = float(np.ceil(WEIGHT.max())), float(np.floor(WEIGHT.min()))


def surveyed(trial: int) -> tuple[np.ndarray, np.ndarray]:
    asked = np.random.default_rng((11, trial)).random(PEOPLE) < 1 / WEIGHT
    return CODES[asked], WEIGHT[asked]


def surveyed_domain(**more) -> Domain:
    """By a step of an eighth of the highest weight."""
    bounds = (Decimal(str(LOW)), Decimal(str(HIGH)))
    weight = {"column": "w", "bounds": bounds, "total": PEOPLE, "step": Decimal(str(HIGH / 8)), **more}
    return domain(2, 2, expected_rows=SAMPLED, weight=weight)


def planned(of: Domain) -> Plan:
    asked = release(of, method_spec(decomposition="pairs", sets={"count": 5, "budget": "shared"}), "20")
    spec = asked.spec.model_copy(update={"analyses": (TableAnalysis(table=("x0",)),)})
    return make_plan(asked.model_copy(update={"spec": spec}))


@pytest.mark.slow
def test_intervals_cover_whatever_weights_have_to_do_with_answers():
    """By the bound at least as often as they say; by a public design effect as often, and narrower; rows are no sample."""
    weight = surveyed(0)[1]
    effect = len(weight) * float((weight**2).sum() / weight.sum() ** 2)
    of = surveyed_domain()
    plan = planned(of)
    by_effect, naive = surveyed_domain(design_effect=Decimal(f"{effect:.2f}")), of.model_copy(update={"weight": None})
    found = {name: [] for name in ("bound", "effect", "naive")}
    for trial in range(TRIALS):
        made = run_plan(of, plan, count_units(*surveyed(trial), of, trial.to_bytes(32, "big")), SeededRandomness(trial))
        for name, known in zip(found, (of, by_effect, naive), strict=True):
            found[name].append(results_of(plan, known, made.records)[0].estimates[1])
    covered = {name: np.mean([each.low <= TRUTH <= each.high for each in all_]) for name, all_ in found.items()}
    error = np.std([each.estimate for each in found["bound"]])
    width = {name: np.mean([each.high - each.low for each in all_]) / 2 / (1.96 * error) for name, all_ in found.items()}
    assert covered["bound"] >= 0.95 and covered["effect"] >= 0.9 and covered["naive"] < 0.8, (covered, width)
    assert width["effect"] < width["bound"] < 2.5 and width["effect"] < 1.5, (covered, width)
