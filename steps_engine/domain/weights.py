"""Weights as whole units of a public step: added up exactly, and rounded by lots that know the cell alone."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from schemas.spec.weights import MILLIONTHS, Weighing
from steps_engine.domain.counting import Counts


def millionths(weights: np.ndarray, weighing: Weighing) -> np.ndarray:
    """Every record's weight in whole millionths of a unit; refuses what is not within the bounds, and names no value."""
    low, high = float(weighing.low), float(weighing.high)
    if not ((weights >= low) & (weights <= high)).all():
        raise DataInvalid(f"some weights are missing, or not from {low:.12g} to {high:.12g}; mend the records or the bounds.")
    units: np.ndarray = np.floor(weights * weighing.per_weight + 0.5).astype(np.int64)
    return np.asarray(np.minimum(units, weighing.most_millionths))


def count_units(codes: np.ndarray, weights: np.ndarray, domain: Domain, key: bytes) -> Counts:
    """Distinct rows of codes with their whole units of weight, rounded up or down by each cell's own lot."""
    assert domain.weighing is not None
    distinct, place = np.unique(np.asarray(codes, dtype=np.int32), axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, place.reshape(-1), millionths(weights, domain.weighing))
    whole = (total + lots(distinct, key)) // MILLIONTHS
    return Counts(distinct[whole > 0], whole[whole > 0])


def lots(codes: np.ndarray, key: bytes) -> np.ndarray:
    """Of each cell a number from 0 to 999,999 by SHA-256 of weight|key|codes, as in tasks/reading/weights_sql.py."""
    begin = f"weight|{key.hex()}|"
    hashed = [hashlib.sha256((begin + "|".join(map(str, row))).encode()).hexdigest() for row in codes.tolist()]
    return np.array([int(each[:15], 16) % MILLIONTHS for each in hashed], dtype=np.int64)


def weight_columns(rows: int, domain: Domain) -> list[pa.Array]:
    """The column of synthetic rows that says for how many people each stands."""
    if not domain.published_weight or domain.weighing is None:
        return []
    return [pa.array(np.full(rows, float(domain.weighing.step)))]


def not_weighing(records: pa.Table, domain: Domain) -> list[str]:
    """The weight's column, where some row has another one than the domain says."""
    found = domain.weighing
    wrong = [name for name in domain.published_weight if found and (records[name].to_numpy() != float(found.step)).any()]
    return wrong
