"""A generated population of households and the persons in them, for examples, tests and figures. Nobody in it exists.

Spouses are alike in age and education, children are at least sixteen years younger than their parent, and education follows the
parent's; tenure and region go with the age and education of the reference person.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from schemas.errors import SpecError
from steps_engine.noise import Randomness, uniform

AT_MOST = 8
RELATIONS = ("reference", "spouse", "child", "other")
EDUCATION = ("low", "middle", "high")
TENURE, REGIONS = ("owned", "rented", "other"), ("north", "south", "east", "west")


def homes(number: int, randomness: Randomness) -> tuple[pd.DataFrame, pd.DataFrame]:
    """So many households (hid, tenure, region), and their persons (pid, hid, relation, sex, age, education)."""
    if number < 1:
        raise SpecError(f"{number} households were asked for; ask for at least 1")
    age = np.minimum(18 + np.floor(70 * _between(number, randomness)), 92).astype(np.int64)
    education = _graded(0.3 + 0.4 * (age < 55) + uniform(number, randomness))
    household = _households(age, education, randomness)
    spouse = uniform(number, randomness) < np.where(age < 28, 0.3, 0.6)
    young = np.clip((age - 20) / 15, 0, 1) * np.clip((62 - age) / 15, 0, 1)
    children = np.floor(4.4 * young * uniform(number, randomness) ** 1.3).astype(np.int64)
    other = np.floor(2.0 * uniform(number, randomness) ** 6 + 0.25 * (age > 75)).astype(np.int64)
    counts = np.stack([np.ones(number, dtype=np.int64), spouse.astype(np.int64), children, other], axis=1)
    home = np.repeat(np.arange(number), counts.sum(axis=1))
    relation = np.repeat(np.tile(np.arange(4), number), counts.ravel())
    return household, _persons(home, relation, age, education, randomness)


def _between(number: int, randomness: Randomness) -> np.ndarray:
    """Numbers in [0, 1) with more in the middle."""
    return np.asarray((uniform(number, randomness) + uniform(number, randomness)) / 2)


def _graded(score: np.ndarray) -> np.ndarray:
    return np.asarray(np.digitize(score, [0.62, 1.15]))


def _households(age: np.ndarray, education: np.ndarray, randomness: Randomness) -> pd.DataFrame:
    owns = uniform(len(age), randomness) < 0.15 + 0.008 * (age - 18) + 0.1 * education
    other = uniform(len(age), randomness) < 0.06
    region = np.minimum(np.floor(4 * uniform(len(age), randomness) ** (1.3 - 0.25 * education)), 3).astype(np.int64)
    return pd.DataFrame(
        {
            "hid": np.arange(1, len(age) + 1),
            "tenure": np.array(TENURE)[np.where(other, 2, np.where(owns, 0, 1))],
            "region": np.array(REGIONS)[region],
        }
    )


def _persons(
    home: np.ndarray, relation: np.ndarray, age: np.ndarray, education: np.ndarray, randomness: Randomness
) -> pd.DataFrame:
    number, luck = len(home), uniform(len(home), randomness)
    of_spouse = np.clip(age[home] - 2 + np.floor(12 * (_between(number, randomness) - 0.5)), 18, 95)
    of_child = np.clip(age[home] - 16 - np.floor(22 * _between(number, randomness)), 0, 70)
    of_other = np.floor(18 + 75 * uniform(number, randomness))
    found = np.choose(relation, [age[home], of_spouse, np.maximum(of_child, 0), of_other]).astype(np.int64)
    alike = np.where(luck < 0.55, education[home], _graded(0.2 + 1.4 * uniform(number, randomness)))
    grade = np.where(relation == 0, education[home], np.where(found < 16, 0, alike))
    female = uniform(number, randomness) < 0.51
    of_home = np.full(home.max() + 1, False)
    of_home[home[relation == 0]] = female[relation == 0]
    differs = (relation == 1) & (uniform(number, randomness) < 0.97)
    female = np.where(differs, ~of_home[home], female)
    return pd.DataFrame(
        {
            "pid": np.arange(1, number + 1),
            "hid": home + 1,
            "relation": np.array(RELATIONS)[relation],
            "sex": np.where(female, "female", "male"),
            "age": found,
            "education": np.array(EDUCATION)[grade],
        }
    )


DATASET = """name: homes
population: homes-2026
expected_rows: {households}
tables:
  household:
    key: hid
    attributes:
      - {{name: tenure, kind: categorical, categories: [owned, rented, other]}}
      - {{name: region, kind: categorical, categories: [north, south, east, west]}}
  person:
    parent: household
    column: hid
    key: pid
    at_most: 8
    expected_rows: {persons}
    reference: {{relation: reference}}
    kinds: relation
    most: {{spouse: 1, child: 5}}
    attributes:
      - {{name: relation, kind: categorical, categories: [reference, spouse, child, other]}}
      - {{name: sex, kind: categorical, categories: [female, male]}}
      - {{name: age, kind: integer, bounds: [0, 99], bins: 10}}
      - {{name: education, kind: ordinal, categories: [low, middle, high]}}
    rules:
      - never: {{relation: [reference, spouse], age: {{below: 10}}}}
      - {{always: age < reference_age, when: {{relation: child}}}}
"""


def dataset(households: int) -> str:
    """dataset.yaml of so many households."""
    return DATASET.format(households=households, persons=round(2.5 * households))
