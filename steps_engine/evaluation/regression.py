"""Linear, ridge and logistic regressions from a formula, on distinct rows of the predictors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from schemas.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

_TOKEN = re.compile(r"\s*([^\W\d]\w*|[01]|[-+:*~()])")
_FACTOR = re.compile(r"\bC\s*\(\s*([^\W\d]\w*)")
MOST_COEFFICIENTS = 2_000
MOST_TOKENS = 400  # what reads formulas calls itself for each of them
INTERCEPT = "Intercept"  # as patsy names it
_STEPS, _PRECISION = 25, 1e-8  # relative change of the deviance, as in R's glm
_SURE = 1e-6  # p(1 − p) below which a row no longer tells coefficients apart


Kind = Literal["linear", "ridge", "logistic"]


@dataclass(frozen=True)
class Model:
    """`outcome ~ predictors` in Wilkinson's notation: names, C(name), + - : * and 0 or 1; nothing else is run."""

    name: str
    formula: str
    kind: Kind
    penalty: float = 1.0


# The difference-in-differences model of Holbein and Hillygus (2016) as fitted by Bowen, Liu and Su: 32 coefficients.
MODELS = {
    "did_voter": Model(
        "did_voter",
        "voted ~ prereg_state * registered + age + married + female + family_income + college + white + hispanic"
        " + metro + residence + business_farm + in_person + dmv_registration",
        "logistic",
    )
}


@dataclass(frozen=True)
class Estimates:
    """Coefficients with their variances; NaN where the data do not determine one.

    `separated`: the likelihood grows without bound in this coefficient; its number is where the iteration stopped.
    """

    names: tuple[str, ...]
    value: np.ndarray
    variance: np.ndarray
    freedom: float
    separated: np.ndarray
    converged: bool


@dataclass(frozen=True)
class Groups:
    """For each distinct row x of the predictors: how many records and Σy; Σy² of all. No fit needs more."""

    x: np.ndarray
    names: tuple[str, ...]
    count: np.ndarray
    total: np.ndarray
    square: float


def fit(model: Model, frame: pd.DataFrame, weight: np.ndarray | None = None) -> Estimates:
    """The model on one table. Categorical columns are coded by all their categories, observed or not.

    `weight` says how many rows each row counts as; its sum is taken for the number of rows (`effective_weights`).
    """
    groups = _group(model, frame, weight)
    with threadpool_limits(1, user_api="blas"):  # threads only spin on matrices this narrow
        if model.kind == "logistic":
            return _logistic(groups)
        return linear(groups, model.penalty if model.kind == "ridge" else 0.0)


def variables(model: Model) -> tuple[str, tuple[str, ...]]:
    """Outcome and predictors. The formula is read here before anything evaluates it.

    >>> variables(Model("m", "y ~ a * C(b) - 1", "linear"))
    ('y', ('a', 'b'))
    """
    tokens, end = [], 0
    while match := _TOKEN.match(model.formula, end):
        tokens.append(match[1])
        end = match.end()
    calls = [a for a, b in zip(tokens, tokens[1:], strict=False) if b == "(" and a[0].isalpha() and a != "C"]
    unread = model.formula[end:].strip()
    if unread or calls or tokens.count("~") != 1 or tokens.index("~") != 1:
        why = f"; {unread[:20]!r} cannot be read: names here are of letters, digits and _" if unread else ""
        raise SpecError(f"formula {model.formula!r} must be: name ~ names with + - : * C( ) 0 1{why}")
    if len(tokens) == 2:
        raise SpecError(f"formula {model.formula!r} names nothing after ~; write {tokens[0]} ~ a + b, or {tokens[0]} ~ 1")
    if len(tokens) > MOST_TOKENS:
        found = f"{len(tokens) - 2:,} names and signs after ~"
        raise SpecError(f"formula {model.formula[:80]!r} has {found}; at most {MOST_TOKENS - 2} can be read")
    names = [t for t, after in zip(tokens[2:], [*tokens[3:], ""], strict=True) if t[0].isidentifier() and after != "("]
    if tokens[0] in names:
        raise SpecError(f"formula {model.formula!r}: {tokens[0]!r} stands on both sides; take it out of the predictors")
    return tokens[0], tuple(dict.fromkeys(names))


def with_same_categories(model: Model, frames: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The model's columns, words and C(numbers) as categoricals over every category of every frame: one coding for all."""

    import pandas as pd

    outcome, predictors = variables(model)
    wanted = [outcome, *predictors]
    for number, frame in enumerate(frames):
        if missing := sorted(set(wanted) - set(frame.columns)):
            raise SpecError(f"model {model.name!r} needs {missing}, not found in table {number} (0: the original)")
    prepared = [frame[wanted].copy() for frame in frames]
    factors = _FACTOR.findall(model.formula)
    for name in wanted:
        if name not in factors and all(pd.api.types.is_numeric_dtype(frame[name]) for frame in frames):
            continue
        columns = [frame[name].astype("category") for frame in frames]
        categories = list(dict.fromkeys(category for column in columns for category in column.cat.categories))
        if all(pd.api.types.is_numeric_dtype(column.cat.categories) for column in columns):
            categories.sort()
        for frame, column in zip(prepared, columns, strict=True):
            frame[name] = column.cat.set_categories(categories)
    return prepared


def effective_weights(weights: np.ndarray) -> np.ndarray:
    """Weights that add up to Kish's effective number of rows, (Σw)²/Σw² (1965): so many equal ones vary as much.

    >>> effective_weights(np.array([1.0, 1.0, 2.0])).sum().round(3).item()
    2.667
    """
    return np.asarray(weights * (weights.sum() / (weights @ weights)))


def _group(model: Model, frame: pd.DataFrame, weight: np.ndarray | None) -> Groups:
    (prepared,) = with_same_categories(model, [frame])
    outcome, predictors = variables(model)
    if prepared.empty or prepared.isna().any(axis=None):
        raise SpecError(f"model {model.name!r} cannot be fitted: a table is empty or has missing values")
    y = _outcome(model, prepared[outcome])
    if predictors:
        place = prepared.groupby(list(predictors), observed=True, sort=False).ngroup().to_numpy()
    else:
        place = np.zeros(len(y), np.int64)
    first = np.unique(place, return_index=True)[1]
    x = _design(model, prepared.iloc[first])
    count, counted = (np.bincount(place), y) if weight is None else (np.bincount(place, weight), weight * y)
    return Groups(np.asarray(x), tuple(x.design_info.column_names), count, np.bincount(place, counted), counted @ y)


def _design(model: Model, rows: pd.DataFrame) -> Any:
    """The rows' design matrix; one row already shows how wide it is."""
    import patsy

    predictors = model.formula.partition("~")[2]
    try:
        one = patsy.dmatrix(predictors, rows.iloc[:1])
        width = one.shape[1]
        if 0 < width <= MOST_COEFFICIENTS:
            return patsy.build_design_matrices([one.design_info], rows)[0]
    except (patsy.PatsyError, SyntaxError):  # an attribute may be called `class`
        raise SpecError(f"formula {model.formula!r} cannot be read; look at its signs and names") from None
    raise SpecError(f"formula {model.formula!r} has {width:,} coefficients; 1 to {MOST_COEFFICIENTS:,} can be fitted")


def _outcome(model: Model, column: pd.Series) -> np.ndarray:
    """Numbers as they are; of two categories the second is 1."""

    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        if len(column.cat.categories) > 2 or model.kind != "logistic":
            raise SpecError(f"model {model.name!r}: {column.name!r} must be a number, or have 2 categories (logistic)")
        return column.cat.codes.to_numpy(float)
    y = column.to_numpy(float)
    if model.kind == "logistic" and not np.isin(y, (0, 1)).all():
        raise SpecError(f"model {model.name!r}: {column.name!r} must be 0 or 1 for a logistic model")
    return y


def linear(groups: Groups, penalty: float) -> Estimates:
    """β = (XᵀX + penalty)⁻¹Xᵀy, variance σ²(XᵀX + penalty)⁻¹XᵀX(XᵀX + penalty)⁻¹; the intercept is not penalised."""
    x, gram = groups.x, groups.x.T @ (groups.count[:, None] * groups.x)
    ridge = penalty * np.array([name != INTERCEPT for name in groups.names], float)
    inverse, unknown = _inverse(gram + np.diag(ridge))
    beta = inverse @ (x.T @ groups.total)
    fitted = x @ beta
    residual = groups.square - 2 * groups.total @ fitted + groups.count @ fitted**2
    freedom = groups.count.sum() - np.trace(inverse @ gram)
    sigma2 = max(residual, 0.0) / freedom if freedom > 1e-6 else np.nan
    variance = sigma2 * np.diag(inverse @ gram @ inverse)
    return _estimates(groups, beta, variance, unknown, float(freedom), np.zeros(len(beta), bool), True)


def _logistic(groups: Groups) -> Estimates:
    """Newton's method from 0 until the deviance stands still (McCullagh and Nelder 1989)."""
    x, beta = groups.x, np.zeros(groups.x.shape[1])
    before, converged = float("inf"), False
    for _ in range(_STEPS):
        eta = x @ beta
        p = expit(eta)
        deviance = float(2 * (groups.count @ np.logaddexp(0, eta) - groups.total @ eta))
        converged = bool(abs(deviance - before) < _PRECISION * (deviance + 0.1))
        curvature = groups.count * p * (1 - p)
        inverse, unknown = _inverse(x.T @ (curvature[:, None] * x))
        if converged:
            break
        beta, before = beta + inverse @ (x.T @ (groups.total - groups.count * p)), deviance
    # Where every fitted probability is 0 or 1 the likelihood is flat: what only those rows determine has no estimate.
    open_rows = p * (1 - p) > _SURE
    _, adrift = _inverse(x[open_rows].T @ (groups.count[open_rows, None] * x[open_rows]))
    _, aliased = _inverse(x.T @ (groups.count[:, None] * x))
    return _estimates(groups, beta, np.diag(inverse), aliased, np.inf, adrift & ~aliased, converged)


def _inverse(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pseudo-inverse, and which coefficients it leaves undetermined: those that some null vector touches."""
    scale = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    null = values < 1e-10 * max(values.max(initial=0.0), 1e-300)
    inverse = (vectors[:, ~null] / values[~null]) @ vectors[:, ~null].T / np.outer(scale, scale)
    return inverse, (np.abs(vectors[:, null]) > 1e-6).any(axis=1)


def _estimates(
    groups: Groups,
    beta: np.ndarray,
    variance: np.ndarray,
    unknown: np.ndarray,
    freedom: float,
    separated: np.ndarray,
    converged: bool,
) -> Estimates:
    beta, variance = (np.where(unknown, np.nan, array) for array in (beta, variance))
    return Estimates(groups.names, beta, variance, freedom, separated, converged)
