"""A stand-in for the CPS youth voter file of Bowen, Liu and Su: its margins (their Table 1), plausible dependence.

Each attribute is drawn once: a score (pulls of earlier attributes plus logistic noise) is ranked, and the ranks are cut
where the printed percentages say. So every margin is exact to one row, whatever the dependence.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from schemas.errors import SpecError
from steps_engine.noise import Randomness, uniform

ROWS = 44_821
INCOMES = (
    "under 5000", "5000-7499", "7500-9999", "10000-12499", "12500-14999", "15000-19999", "20000-24999", "25000-29999",
    "30000-34999", "35000-39999", "40000-49999", "50000-59999", "60000-74999", "75000 or more",
)  # fmt: skip
INCOME_PERCENTS = (6.3, 3.7, 3.1, 4.1, 3.3, 5.1, 6.0, 5.8, 6.8, 4.6, 8.2, 7.6, 8.9, 26.5)  # least 3.1, median 5.9
RESIDENCES = ("<1 month", "1-6 months", "7-11 months", "1-2 years", "3-4 years", ">=5 years")
RESIDENCE_PERCENTS = (2.7, 20.0, 6.9, 15.0, 9.8, 45.6)


@dataclass(frozen=True)
class Trait:
    """An attribute, its percentages, and what pulls its score up: weight × (code of the other scaled to 0..1)."""

    name: str
    categories: tuple[int, ...] | tuple[str, ...]
    percents: tuple[float, ...]
    pulls: dict[str, float] = field(default_factory=dict)
    only_if: str | None = None


def _flag(name: str, percent: float, only_if: str | None = None, **pulls: float) -> Trait:
    return Trait(name, ("no", "yes"), (100 - percent, percent), pulls, only_if)


# `wealth` and `rooted` (lives with the parents) are never released: they tie their dependants together beyond pairs.
# Percentages that do not add up in print (voted, female, white, registered, business): the first one counts.
TRAITS = (
    Trait("age", (18, 19, 20, 21, 22), (20.5, 19.7, 20.0, 20.0, 19.8), {"rooted": -1.5}),
    _flag("female", 50.7, rooted=-0.4),
    _flag("hispanic", 14.6, wealth=-2.5),
    _flag("white", 69.3, hispanic=-3.5, wealth=2.0),
    _flag("metro", 77.9, hispanic=1.2, white=-1.2, wealth=0.8),
    _flag("prereg_state", 10.5, metro=0.8, hispanic=0.9, white=-0.6, wealth=0.6),
    _flag("married", 7.5, age=3.2, rooted=-4.0, hispanic=0.6, female=1.1, white=0.4),
    _flag("college", 3.1, age=7.0, wealth=2.5, female=0.5, hispanic=-0.7, married=-0.3),
    Trait("residence", RESIDENCES, RESIDENCE_PERCENTS, {"rooted": 6.0, "married": -1.0, "college": -0.8}),
    Trait("family_income", INCOMES, INCOME_PERCENTS, {"wealth": 7.0, "rooted": 3.0, "married": -0.4, "white": 0.5}),
    _flag("business_farm", 12.6, metro=-1.4, white=1.0, wealth=1.8, residence=0.6, female=-0.2),
    _flag("in_person", 36.7, residence=-1.3, family_income=-0.5, metro=-0.3, married=0.4, hispanic=0.4),
    _flag("registered", 52.4, age=1.0, college=1.6, residence=0.9, hispanic=-0.8, family_income=0.8, female=0.3),
    _flag("dmv_registration", 12.7, registered=3.5, age=-0.5, residence=0.4, prereg_state=-0.3, in_person=-0.2),
    _flag("voted", 34.7, "registered", college=1.3, family_income=0.8, residence=0.5, female=0.3, dmv_registration=-0.6,
          prereg_state=0.2, age=0.3, white=-0.2),
)  # fmt: skip
COLUMNS = (
    "voted", "prereg_state", "age", "married", "female", "family_income", "college", "white", "hispanic", "registered",
    "metro", "residence", "business_farm", "in_person", "dmv_registration",
)  # fmt: skip


def youth_voter(rows: int, randomness: Randomness) -> pd.DataFrame:
    """`rows` people × 15 attributes with readable categories; nobody has voted without being registered."""
    if rows < 1:
        raise SpecError(f"the stand-in was asked for {rows} rows; ask for at least 1")
    scaled = {"wealth": uniform(rows, randomness), "rooted": uniform(rows, randomness)}
    columns = {}
    for trait in TRAITS:
        codes = _cut(_score(trait, scaled, rows, randomness), trait.percents)
        scaled[trait.name] = codes / (len(trait.categories) - 1)
        columns[trait.name] = pd.Series(trait.categories)[codes].to_numpy()
    return pd.DataFrame({name: columns[name] for name in COLUMNS})


def _score(trait: Trait, scaled: dict[str, np.ndarray], rows: int, randomness: Randomness) -> np.ndarray:
    luck = uniform(rows, randomness)
    score = np.log((luck + 1e-12) / (1 - luck + 1e-12))
    score += sum(weight * scaled[name] for name, weight in trait.pulls.items())
    return score if trait.only_if is None else np.where(scaled[trait.only_if] > 0, score, -np.inf)


def _cut(score: np.ndarray, percents: tuple[float, ...]) -> np.ndarray:
    """Codes whose shares are `percents`, rounded to whole rows: the lowest scores get the first category.

    >>> _cut(np.array([3.0, 1.0, 2.0, 9.0]), (25.0, 50.0, 25.0)).tolist()
    [1, 0, 1, 2]
    """
    rank = np.empty(len(score), np.int64)
    rank[np.argsort(score, kind="stable")] = np.arange(len(score))
    ends = np.rint(np.cumsum(percents) / sum(percents) * len(score))
    return np.searchsorted(ends[:-1], rank, side="right")
