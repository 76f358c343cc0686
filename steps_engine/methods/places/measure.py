"""Counts plus noise: the nation's as pairs has them, then every cell of every table of places. Nothing branches on a count."""

from __future__ import annotations

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.places import Places
from steps_engine.inference.place_tables import PlaceTable, exact_tables, place_tables
from steps_engine.methods.pairs.measure import sanitize as sanitize_nation
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.places.estimate import Measured
from steps_engine.methods.places.nation import NationCounts
from steps_engine.noise import Randomness


def sanitize(places: Places, plan: Plan, nation: Structure, counts: Counts, randomness: Randomness) -> Measured:
    nation, of_nation = sanitize_nation(nation, NationCounts(places, counts), randomness)
    tables = place_tables(places, plan)
    exact = exact_tables(places, tables, counts)
    noisy = [_noised(table, each, randomness) for table, each in zip(tables, exact, strict=True)]
    return Measured(places, nation, of_nation, tables, noisy)


def _noised(table: PlaceTable, exact: np.ndarray, randomness: Randomness) -> np.ndarray:
    """Measurements × places × columns: every place gets noise, empty ones too."""
    drawn = [noise_of(draw).draw(exact.size, randomness).reshape(exact.shape) for draw in table.draws]
    noisy: np.ndarray = exact + np.stack(drawn)
    return noisy
