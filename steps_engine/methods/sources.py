"""More rows from what was published: a method's plausible table as a source of rows, of any number, under any condition.

A source stands for one set: its plausible table is drawn once, so that what differs between sets is what the noise leaves open,
however many rows each has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.noise import Randomness

Kept = Mapping[int, tuple[int, ...]]  # codes that rows must have, by the attribute's number


class Source(Protocol):
    """Rows × attributes of codes, as often as one asks."""

    @property
    def selects(self) -> bool:
        """Whether rows are drawn under the condition, as many as asked or none; else rows are drawn, and some kept."""
        ...

    def rows(self, number: int, kept: Kept, randomness: Randomness) -> np.ndarray:
        """What fulfils the condition."""
        ...


@runtime_checkable
class Sourcing(Protocol):
    """A method that can make more rows."""

    def source(self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], number: int, randomness: Randomness) -> Source:
        """That of set 1, 2, …; there may be more of them than were published. `tables` are the structure and noisy counts."""
        ...


class Inhabited(Protocol):
    """Who lives in household rows, as often as one asks."""

    def link(self, rows: pa.Table, before: int, randomness: Randomness) -> dict[str, pa.Table]:
        """Households and persons of these rows, by the names of their tables; so many households came before them."""
        ...


@runtime_checkable
class Inhabiting(Protocol):
    """A method of linked tables that can make more households."""

    def members(
        self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], number: int, randomness: Randomness
    ) -> Inhabited:
        """Whom the household rows of set 1, 2, … live with."""
        ...


def measurement_of(plan: Plan, number: int) -> int:
    """Which measurement, from 0 on, a set is made from: its own, and beyond the published sets the first again."""
    return (number - 1) % plan.measurements


def plausible_plan(plan: Plan, sets: int) -> Plan:
    """A plan of one measurement, read as one that all sets share: each set is then a plausible table behind it."""
    if plan.measurements > 1:
        return plan
    draws = tuple(draw.model_copy(update={"set": None}) for draw in plan.draws)
    return plan.model_copy(update={"budget": "shared", "sets": sets, "draws": draws})


def fulfilling(codes: np.ndarray, kept: Kept) -> np.ndarray:
    for j, held in kept.items():
        codes = codes[np.isin(codes[:, j], held)]
    return codes


@dataclass(frozen=True)
class Drawn:
    """A source that draws rows and keeps those that fulfil a condition."""

    draw: Draw
    selects: bool = False

    def rows(self, number: int, kept: Kept, randomness: Randomness) -> np.ndarray:
        return fulfilling(self.draw(number, randomness), kept)


class Draw(Protocol):
    def __call__(self, number: int, randomness: Randomness) -> np.ndarray: ...
