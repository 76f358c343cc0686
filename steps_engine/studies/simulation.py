"""The simulation study: two linear models, their samples, and what one grid point measures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtri

from schemas.spec.domain import Domain
from steps_engine.evaluation.combining import combine, interval
from steps_engine.evaluation.regression import Estimates, Model, fit
from steps_engine.noise import Randomness, SeededRandomness, integers_below, uniform
from steps_engine.studies.methods import Original, StudyMethod, draw_sets

EPSILONS = ("0.5", "2", "5", "10")
SIZES = (4_000, 10_000)
MODELS = (1, 2)
SETS, REPEATS, TEST_ROWS, BINS = 4, 200, 100, 15
CATEGORIES = {"x1": 2, "x2": 3, "x3": 4, "x4": 5}
SATURATED_SEED = ("simulation", "model 2")  # the 120 coefficients are drawn once and stay

Figures = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Truth:
    """A model with its coefficients, in the order in which the regression names them, and Y's public bounds."""

    number: int
    regression: Model
    coefficients: tuple[float, ...]
    bounds: tuple[int, int]

    @cached_property
    def domain(self) -> Domain:
        """X1 to X4, and Y in 15 bins of public edges; what lies beyond goes into the outermost bins."""
        x = [{"name": n, "kind": "categorical", "categories": tuple(map(str, range(k)))} for n, k in CATEGORIES.items()]
        y = {"name": "y", "kind": "numeric", "bounds": self.bounds, "bins": BINS, "outside": "clamp"}
        said = {"name": f"model-{self.number}", "population": "simulated", "expected_rows": 10_000, "attributes": (*x, y)}
        return Domain.model_validate(said)

    @property
    def analyses(self) -> tuple[dict[str, str], ...]:
        """What a release would declare: the regression, whose tables a ridge penalty does not change."""
        return ({"model": self.regression.formula, "kind": "linear"},)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One row of every combination names all coefficients."""
        return self.fit(every_combination().assign(y=0.0)).names

    def fit(self, frame: pd.DataFrame) -> Estimates:
        return fit(self.regression, frame)

    def mean(self, frame: pd.DataFrame, coefficients: np.ndarray) -> np.ndarray:
        """E(Y) of each row: the sum of the coefficients whose categories the row has."""
        codes = {name: frame[name].cat.codes.to_numpy() for name in CATEGORIES}
        total = np.zeros(len(frame))
        for name, value in zip(self.names, coefficients, strict=True):
            parts = re.findall(r"(x\d)\[(?:T\.)?(\d)\]", name)
            total += value * np.logical_and.reduce([codes[x] == int(k) for x, k in parts] or [np.ones(len(frame), bool)])
        return total


def every_combination() -> pd.DataFrame:
    codes = np.indices(tuple(CATEGORIES.values())).reshape(len(CATEGORIES), -1)
    return _frame(list(codes))


def _frame(codes: Sequence[np.ndarray]) -> pd.DataFrame:
    """Code columns as categories, unobserved ones included."""
    pairs = zip(CATEGORIES.items(), codes, strict=True)
    return pd.DataFrame(
        {name: pd.Categorical.from_codes(code, pd.Index(list(map(str, range(k))))) for (name, k), code in pairs}
    )


def normal(n: int, randomness: Randomness) -> np.ndarray:
    """Standard normal numbers: quantiles of uniform ones, taken from the middle of their steps of 2^−53."""
    quantiles: np.ndarray = ndtri(uniform(n, randomness) + 2.0**-54)
    return quantiles


TRUTHS = {
    1: Truth(
        1, Model("main effects", "y ~ x1 + x2 + x3 + x4", "linear"),
        (0, 0.5, 0.5, -0.8, 1, 0.5, 0.5, 0.5, 0.7, 0.8, 0.5), (-5, 7),
    ),
    2: Truth(
        2, Model("saturated", "y ~ 0 + x1:x2:x3:x4", "ridge"),
        tuple(normal(120, SeededRandomness(SATURATED_SEED)).tolist()), (-6, 6),
    ),
}  # fmt: skip


def simulate(truth: Truth, rows: int, randomness: Randomness) -> pd.DataFrame:
    """X uniform on its categories, Y = E(Y|X) + a standard normal error."""
    frame = _frame([integers_below(k, rows, randomness) for k in CATEGORIES.values()])
    return frame.assign(y=truth.mean(frame, np.array(truth.coefficients)) + normal(rows, randomness))


def simulation_figures(
    method: StudyMethod, truth: Truth, rows: int, epsilon: str, sets: int, sample: SeededRandomness, randomness: Randomness
) -> Figures:
    """Estimate and 95% interval of each coefficient from m sets, and the squared error of predicting 100 new rows.

    `sample` seeds the original and the test rows: every method and ε sees the same data in the same repeat.
    """
    original = Original(truth.domain, simulate(truth, rows, sample.child("original")), truth.analyses)
    fits = [truth.fit(with_all_categories(frame)) for frame in draw_sets(method, original, epsilon, sets, randomness)]
    value, low, high = _combined(fits, method)
    test = simulate(truth, TEST_ROWS, sample.child("test"))
    error = test["y"].to_numpy() - truth.mean(test, np.nan_to_num(value))
    figures: Figures = {("prediction", "squared error"): float(np.mean(error**2))}
    for name, *numbers in zip(truth.names, value, low, high, strict=True):
        figures |= {(what, name): float(x) for what, x in zip(("estimate", "low", "high"), numbers, strict=True)}
    return figures


def _combined(fits: list[Estimates], method: StudyMethod) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Combining rules; a coefficient that some set does not determine stays NaN."""
    together = combine(np.array([f.value for f in fits]), np.array([f.variance for f in fits]), method.combining)
    freedom = np.minimum(together.freedom, min(f.freedom for f in fits))
    return together.value, *interval(together.value, together.variance, freedom)


def with_all_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """X1 to X4 as categories, unobserved ones included."""
    return frame.assign(**{n: pd.Categorical(frame[n], list(map(str, range(k)))) for n, k in CATEGORIES.items()})


def summarize(coefficients: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    """Bias, RMSE and coverage of each coefficient over repeats; `coefficients` has estimate, low and high per repeat."""
    true = coefficients["which"].map(dict(zip(truth.names, truth.coefficients, strict=True)))
    errors = coefficients.assign(
        truth=true,
        error=coefficients["estimate"] - true,
        covered=((coefficients["low"] <= true) & (true <= coefficients["high"])).where(coefficients["low"].notna()),
    )
    groups = errors.groupby("which", sort=False)
    return pd.DataFrame(
        {
            "truth": groups["truth"].first(),
            "bias": groups["error"].mean(),
            "rmse": groups["error"].agg(lambda e: math.sqrt(np.mean(e.dropna() ** 2)) if e.notna().any() else math.nan),
            "coverage": groups["covered"].mean(),
            "repeats": groups["error"].count(),
        }
    ).reset_index(names="coefficient")
