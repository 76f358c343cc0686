"""Intervals from shared sets: they hold the truth about as often as they say, and would not if sets hid what noise leaves open."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.combining import combine, interval
from steps_engine.evaluation.regression import Model, fit
from steps_engine.methods.pairs import implied
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import release

MODEL = Model("slopes", "y ~ a + b", "linear")
TRUTH = {"a[T.y]": 0.6, "b[T.q]": -0.5, "b[T.r]": 0.8}
ROWS, REPEATS, SETS = 3000, 24, 4
PEOPLE = Domain.model_validate(
    {
        "name": "people",
        "population": "simulated",
        "expected_rows": ROWS,
        "attributes": (
            {"name": "a", "kind": "categorical", "categories": ("x", "y")},
            {"name": "b", "kind": "categorical", "categories": ("p", "q", "r")},
            {"name": "y", "kind": "numeric", "bounds": (-4, 5), "bins": 9, "outside": "clamp"},
        ),
    }
)


def sample(repeat: int) -> pd.DataFrame:
    rng = np.random.default_rng(repeat)
    a, b = rng.choice(["x", "y"], ROWS), rng.choice(["p", "q", "r"], ROWS)
    mean = 0.6 * (a == "y") - 0.5 * (b == "q") + 0.8 * (b == "r")
    return pd.DataFrame({"a": a, "b": b, "y": mean + rng.normal(size=ROWS)})


def covered(epsilon: str) -> float:
    """The part of the true coefficients that combined 95% intervals hold."""
    inside = []
    for repeat in range(REPEATS):
        asked = release(PEOPLE, method_spec(decomposition="pairs", sets={"count": SETS, "budget": "shared"}), epsilon)
        made = run(asked, count_codes(encode(sample(repeat), PEOPLE)), SeededRandomness(("intervals", repeat)))
        fits = [fit(MODEL, frame) for frame in made.frames]
        together = combine(np.array([f.value for f in fits]), np.array([f.variance for f in fits]), "shared")
        low, high = interval(together.value, together.variance, together.freedom)
        place = [fits[0].names.index(name) for name in TRUTH]
        inside.append([low[i] <= true <= high[i] for i, true in zip(place, TRUTH.values(), strict=True)])
    return float(np.mean(inside))


@pytest.mark.parametrize("epsilon", ["0.25", "5"])
@pytest.mark.whole
def test_intervals_of_a_regression_hold_the_truth_about_as_often_as_they_say(epsilon):
    assert covered(epsilon) >= 0.88  # 0.95 of 72, less three standard errors


@pytest.mark.whole
def test_sets_that_are_all_the_estimate_would_hide_the_noise(monkeypatch):
    """The control: the same measurement, but every set made from its estimate in place of a draw."""
    estimate = implied.estimate
    monkeypatch.setattr(implied, "estimate", lambda *of: estimate(*of[:3], None))
    assert covered("0.25") < 0.8
