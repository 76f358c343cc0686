"""Households with survey weights: as files, and the units that each counts as, reckoned one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from schemas.spec.domain import Domain
from schemas.spec.weights import MILLIONTHS, exactly
from tests.steps_engine.methods.households.small import Household, domain

BOUNDS = (1, 12)
WEIGHT = {"column": "w", "bounds": BOUNDS, "total": 2000}
UNITS = 3  # of the highest weight, at a step of 4
TENURE, RELATION, SEX = ("own", "rent"), ("child", "other"), ("f", "m")


def surveyed(step: str | int = 4, weight: dict[str, Any] | None = None, **person: Any) -> Domain:
    return domain({"weight": {**WEIGHT, "step": Decimal(step), **(weight or {})}}, **person)


def weights_of(number: int, seed: int = 0) -> np.ndarray:
    return np.round(np.clip(np.random.default_rng(seed).lognormal(1.4, 0.6, number), *BOUNDS), 3)


def frames(homes: list[Household], weight: Iterable[float], first: int = 7) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Households with the keys `first`, `first` + 1, …, and their persons."""
    households, persons = [], []
    for hid, ((tenure, sex, grade, others), w) in enumerate(zip(homes, weight, strict=True), first):
        households.append((hid, TENURE[tenure], w))
        persons.append((hid, "head", SEX[sex], grade))
        persons += [(hid, RELATION[kind], SEX[s], g) for kind, s, g in others]
    return (
        pd.DataFrame(households, columns=["hid", "tenure", "w"]),
        pd.DataFrame(persons, columns=["hid", "relation", "sex", "grade"]),
    )


def lot(hid: object, key: bytes) -> int:
    return int(hashlib.sha256(f"household|{key.hex()}|{hid}".encode()).hexdigest()[:15], 16) % MILLIONTHS


def units_of(weight: Iterable[float], of: Domain, key: bytes, first: int = 7) -> list[int]:
    """Of every household, in exact fractions."""
    assert of.weighing is not None
    step = of.weighing.step
    found = (int(exactly(w) / step * MILLIONTHS + Fraction(1, 2)) for w in weight)
    return [(each + lot(hid, key)) // MILLIONTHS for hid, each in enumerate(found, first)]


def as_units(homes: list[Household], units: list[int]) -> list[Household]:
    """A household of three units counts as three households do."""
    return [home for home, number in zip(homes, units, strict=True) for _ in range(number)]
