"""Regressions: the libraries' numbers, honest gaps, and formulas that run nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from schemas.errors import SpecError
from steps_engine.evaluation.comparison import compare
from steps_engine.evaluation.regression import MODELS, Model, fit, variables
from tests.steps_engine.evaluation.tables import voters

LINEAR = Model("line", "y ~ a * b + x", "linear")
LOGISTIC = Model("logit", "hit ~ a + b + x", "logistic")


def frame(rows: int = 800, seed: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    a, b, x = draw.choice(list("uvw"), rows), draw.choice(["p", "q"], rows), draw.integers(0, 5, rows)
    signal = (a == "v") + 0.5 * (b == "q") + 0.3 * x
    hit = np.where(draw.random(rows) < 1 / (1 + np.exp(1 - signal)), "yes", "no")
    return pd.DataFrame({"a": a, "b": b, "x": x, "y": signal + draw.normal(0, 1, rows), "hit": hit})


def test_linear_fits_equal_statsmodels():
    from statsmodels.formula.api import ols

    data = frame()
    ours, theirs = fit(LINEAR, data), ols(LINEAR.formula, data).fit()
    assert ours.names == tuple(theirs.params.index)
    assert ours.value == pytest.approx(theirs.params.to_numpy(), abs=1e-9)
    assert np.sqrt(ours.variance) == pytest.approx(theirs.bse.to_numpy(), abs=1e-9)
    assert ours.freedom == pytest.approx(theirs.df_resid)


def test_logistic_fits_equal_statsmodels():
    from statsmodels.formula.api import logit

    data = frame()
    theirs = logit("hit ~ a + b + x", data.assign(hit=(data["hit"] == "yes") * 1)).fit(disp=False, tol=1e-12)
    ours = fit(LOGISTIC, data)
    assert ours.value == pytest.approx(theirs.params.to_numpy(), abs=1e-6)
    assert np.sqrt(ours.variance) == pytest.approx(theirs.bse.to_numpy(), abs=1e-6)
    assert ours.converged and not ours.separated.any()


def test_ridge_fits_equal_scikit_learn():
    from sklearn.linear_model import Ridge

    data = frame()
    ours = fit(Model("ridge", "y ~ a + b + x", "ridge", penalty=7.0), data)
    x = np.column_stack([data["a"] == "v", data["a"] == "w", data["b"] == "q", data["x"]])
    theirs = Ridge(alpha=7.0).fit(x, data["y"])
    assert dict(zip(ours.names, ours.value, strict=True)) == pytest.approx(
        {"Intercept": theirs.intercept_}
        | dict(zip(["a[T.v]", "a[T.w]", "b[T.q]", "x"], theirs.coef_, strict=True)), abs=1e-8,
    )  # fmt: skip
    assert (ours.variance < fit(Model("line", "y ~ a + b + x", "linear"), data).variance).all()


def test_a_saturated_model_has_one_coefficient_per_cell():
    draw = np.random.default_rng(1)
    sizes = {"a": 2, "b": 3, "c": 4, "d": 5}
    data = pd.DataFrame({name: draw.integers(0, size, 3000).astype(str) for name, size in sizes.items()})
    data["y"] = draw.normal(0, 1, 3000)
    found = fit(Model("saturated", "y ~ 0 + a:b:c:d", "ridge"), data)
    assert len(found.names) == 120


def test_the_voter_model_has_32_coefficients():
    people, _ = voters(3000, 1)
    assert len(fit(MODELS["did_voter"], people).names) == 32


def test_the_structural_zero_separates_registration_and_is_reported():
    people, _ = voters(6000, 1)
    found = fit(MODELS["did_voter"], people)
    separated = {name for name, out in zip(found.names, found.separated, strict=True) if out}
    assert separated == {
        "Intercept", "prereg_state[T.yes]", "registered[T.yes]", "prereg_state[T.yes]:registered[T.yes]",
    }  # fmt: skip


def test_a_category_that_does_not_occur_leaves_only_its_own_coefficient_unknown():
    data = frame()
    data["a"] = pd.Categorical(data["a"], categories=["u", "v", "w", "never"])
    found = dict(zip(*(lambda e: (e.names, e.value))(fit(LOGISTIC, data)), strict=True))
    plain = fit(LOGISTIC, frame())
    assert np.isnan(found.pop("a[T.never]"))
    assert list(found.values()) == pytest.approx(plain.value.tolist(), abs=1e-6)


def test_columns_that_repeat_each_other_are_unknown_together():
    found = fit(Model("twice", "y ~ x + z + b", "linear"), frame().assign(z=lambda d: 2 * d["x"]))
    unknown = {name for name, value in zip(found.names, found.value, strict=True) if np.isnan(value)}
    assert unknown == {"x", "z"}


def test_fewer_records_than_coefficients_leave_no_variance():
    assert np.isnan(fit(LINEAR, frame(3)).variance).all()


def test_an_outcome_that_never_varies_is_separated():
    found = fit(LOGISTIC, frame().assign(hit=pd.Categorical(["no"] * 800, categories=["no", "yes"])))
    assert found.separated.all()


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ __import__('os').getcwd()",
        "y ~ open(x)",
        "y ~ np.log(x)",
        "y ~ a; b",
        "y ~ a[0]",
        "y ~ a ~ b",
        "~ a",
        "y",
        "",
        "y ~ I(x)",
        "eval(y) ~ x",
    ],
)
def test_a_formula_runs_nothing_but_names(formula):
    with pytest.raises(SpecError, match="must be: name ~ names"):
        fit(Model("hostile", formula, "linear"), frame())


def test_names_in_a_formula_must_be_columns():
    with pytest.raises(SpecError, match="'lambda'"):
        fit(Model("hostile", "y ~ lambda", "linear"), frame())
    assert variables(Model("m", "y ~ 0 + C(x) + a:b", "linear")) == ("y", ("x", "a", "b"))


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (LINEAR, frame()[:0], "empty or has missing"),
        (LINEAR, frame().assign(x=np.nan), "empty or has missing"),
        (Model("m", "a ~ x", "linear"), frame(), "must be a number"),
        (Model("m", "a ~ x", "logistic"), frame(), "2 categories"),
        (Model("m", "y ~ x", "logistic"), frame(), "0 or 1"),
        (Model("m", "y ~ x +", "linear"), frame(), "cannot be read"),
        (Model("m", "y ~", "linear"), frame(), "names nothing after ~; write y ~ a"),
        (Model("m", f"y ~ {'a:' * 500}a", "linear"), frame(), "has 1,001 names and signs after ~"),
        (Model("m", f"y ~ {' + '.join('a' * 300)}", "linear"), frame(), "has 599 names and signs after ~"),
    ],
)
def test_what_cannot_be_fitted_is_said_clearly(model, data, message):
    with pytest.raises(SpecError, match=message):
        fit(model, data)


def test_the_original_against_itself_overlaps_fully():
    found = compare(LOGISTIC, frame(), [frame()])
    assert found.mean_overlap == pytest.approx(1.0)
    assert not found.between_variance_known


def test_another_sample_overlaps_more_than_broken_data():
    original = frame()
    broken = original.assign(hit=original["hit"].sample(frac=1, random_state=1).to_numpy())
    honest = compare(LOGISTIC, original, [frame(seed=s) for s in (2, 3, 4)], "shared")
    assert honest.mean_overlap > 0.6 > compare(LOGISTIC, original, [broken] * 3).mean_overlap
    assert honest.between_variance_known and honest.m == 3


def test_a_category_missing_from_one_set_makes_one_coefficient_incomparable():
    original = frame()
    found = compare(LOGISTIC, original, [original[original["a"] != "w"], original])
    by_name = {coefficient.name: coefficient for coefficient in found.coefficients}
    assert by_name["a[T.w]"].synthetic is None and by_name["a[T.w]"].overlap is None
    assert by_name["x"].overlap > 0.5


def test_separated_coefficients_do_not_flatter_the_second_mean():
    people, _ = voters(6000, 1)
    found = compare(MODELS["did_voter"], people, [voters(6000, 2)[0]])
    kept = [c.overlap for c in found.coefficients if not c.separated]
    assert found.mean_overlap_without_separated == pytest.approx(np.mean(kept))
    assert sum(c.separated for c in found.coefficients) >= 4


def test_missing_columns_and_missing_sets_are_refused():
    with pytest.raises(SpecError, match=r"\['x'\], not found in table 1"):
        compare(LINEAR, frame(), [frame().drop(columns="x")])
    with pytest.raises(SpecError, match="no synthetic set"):
        compare(LINEAR, frame(), [])
