"""Rules that name places, kept in rows: who may not be in a place changes places with somebody who may.

Rows agree with tables that are nought where a rule allows nobody, so that few rows are left to move: those that were moved
between places afterwards, and combinations of which no table was measured. A change of places leaves every place its rows and
every table without places as it is.
"""

from __future__ import annotations

import numpy as np

from steps_engine.domain.cells import Component
from steps_engine.domain.places import Places
from steps_engine.noise import Randomness, uniform

ROUNDS = 20  # in which each looks for somebody to change places with, in one place of every coarser level


def keep_rules(places: Places, codes: np.ndarray, randomness: Randomness) -> None:
    """Rows of codes, in place: changes within the nearest place above, then further and further away.

    Whoever finds nobody in all the nation becomes like somebody else in everything that rules tie to places.
    """
    tied = places.tied
    if tied is None or _allowed(tied, codes).all():
        return
    for level in range(places.finest - 1, -1, -1):
        _change_places(places, tied, codes, places.at(level)[codes[:, places.attribute]], randomness)
    kept = _allowed(tied, codes)
    if not kept.all():
        broken = np.flatnonzero(~kept)[:, None]
        codes[broken, tied.attributes] = _allowed_ones(tied, codes[kept], len(broken), randomness)


def _allowed(tied: Component, codes: np.ndarray) -> np.ndarray:
    """Which rows keep the rules of places."""
    kept: np.ndarray = tied.allowed[tuple(codes[:, j] for j in tied.attributes)]
    return kept


def _change_places(places: Places, tied: Component, codes: np.ndarray, lies: np.ndarray, randomness: Randomness) -> None:
    """Rows that break a rule take the place of a row chosen at random where they lie, if then neither breaks one."""
    kept, order = _allowed(tied, codes), np.argsort(lies, kind="stable")
    there = np.bincount(lies)
    first = np.cumsum(there) - there
    for _ in range(ROUNDS):
        broken = np.flatnonzero(~kept)
        if not len(broken):
            return
        chosen = uniform(len(broken), randomness) * there[lies[broken]]
        beside = order[first[lies[broken]] + chosen.astype(np.int64)]
        once = np.unique(beside, return_index=True)[1]
        broken, beside = broken[once], beside[once]
        broken, beside = broken[kept[beside]], beside[kept[beside]]
        both = np.concatenate([broken, beside])
        moved = codes[both]
        moved[:, places.attribute] = codes[np.concatenate([beside, broken]), places.attribute]
        fine = np.tile(_allowed(tied, moved).reshape(2, -1).all(axis=0), 2)
        codes[both[fine]] = moved[fine]
        kept[both[fine]] = True


def _allowed_ones(tied: Component, known: np.ndarray, number: int, randomness: Randomness) -> np.ndarray:
    """Combinations of what is tied, of rows that keep the rules; where there are none, of all that are allowed."""
    every = known[:, tied.attributes] if len(known) else np.argwhere(tied.allowed)
    found: np.ndarray = every[(uniform(number, randomness) * len(every)).astype(np.int64)]
    return found
