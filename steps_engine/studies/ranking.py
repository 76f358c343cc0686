"""Ranks and overall score as in the paper's table of utility."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from steps_engine.studies.paper import METHODS

DIGITS = 3  # figures that print alike share a rank


def ranks(figures: pd.DataFrame) -> pd.Series:
    """1 + how many of the paper's methods are strictly better, at equal ε and measure.

    So the paper's six are ranked among themselves, as in print, and any further method as if it had entered alone.
    """
    groups = figures.groupby(["log_epsilon", "measure"], dropna=False)
    found: pd.Series = pd.concat([_ranks(group) for _, group in groups]).reindex(figures.index)
    return found


def _ranks(group: pd.DataFrame) -> pd.Series:
    smaller_is_better = group["measure"].iloc[0] == "ks"
    value = group["value"].round(DIGITS).to_numpy() * (1 if smaller_is_better else -1)
    rivals = value[group["method"].isin(METHODS).to_numpy()]
    better = (rivals < value[:, None]).sum(axis=1)
    return pd.Series(1.0 + better, group.index).where(np.isfinite(value) & (len(rivals) > 0))


def scores(figures: pd.DataFrame) -> pd.DataFrame:
    """Σ of a method's ranks at one ε: the smaller, the better."""
    summed = figures.groupby(["log_epsilon", "method"], dropna=False, sort=False)["rank"]
    return summed.sum(min_count=1).rename("score").reset_index()


def log_epsilon(epsilon: str) -> float:
    """ln ε to 6 decimals, as the paper's tables have it; none for what spends nothing.

    >>> log_epsilon("7.389056")
    2.0
    """
    return round(math.log(float(epsilon)), 6) if epsilon else math.nan
