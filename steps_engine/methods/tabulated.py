"""Tables of counts from what was measured, whatever the method: best linear unbiased estimates with their exact variances.

Nothing here looks at synthetic rows. Variances are those of the noise alone: they say how far an estimate may be from what the
records hold, not from a population of which the records are a sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space

MOST_TOGETHER = 1_500  # cells whose covariances are held at once


@dataclass(frozen=True)
class Asked:
    """A table by some attributes, of the rows whose other attributes have one of these codes. Attributes by their number."""

    attributes: tuple[int, ...]
    kept: Mapping[int, tuple[int, ...]]

    @property
    def all(self) -> tuple[int, ...]:
        return (*self.attributes, *self.kept)


@dataclass(frozen=True)
class Tabulated:
    """Counts of a table's cells (first attribute slowest), with the variance of each, and their sum.

    `group` has of each attribute's categories the row of the table in which it is counted; `possible` the cells that the rules
    allow. Half of a cell's 95 % interval is `reach`, or `factor` standard errors: as many hold 95 % of any weighted sum of
    these noises.
    """

    group: tuple[np.ndarray, ...]
    estimate: np.ndarray
    variance: np.ndarray
    cross: np.ndarray  # covariance of each with the sum
    whole: float
    whole_variance: float
    possible: np.ndarray
    factor: float
    reach: np.ndarray | None = None

    @property
    def half(self) -> np.ndarray:
        half: np.ndarray = self.factor * np.sqrt(self.variance) if self.reach is None else self.reach
        return half


@runtime_checkable
class Tabulating(Protocol):
    """A method whose noisy counts tell of tables. One that does not say is asked nothing: answers come from its sets."""

    def lacking(
        self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], asked: Sequence[Sequence[int]]
    ) -> list[tuple[str, ...]]:
        """Of each table what was not measured of it; nothing where all of it was, category by category."""
        ...

    def tabulate(self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], asked: Asked) -> Tabulated | str:
        """The table; or why what was measured does not tell."""
        ...


def possible_cells(domain: Domain, attributes: Sequence[int]) -> np.ndarray:
    """Which combinations of these attributes, in their order, have an allowed completion: one axis each."""
    found = np.ones(tuple(domain.sizes[j] for j in attributes), dtype=bool)
    for component in Space(domain).components:
        inside = [j for j in component.attributes if j in attributes]
        allowed = component.completable(tuple(a for a, j in enumerate(component.attributes) if j not in attributes))
        allowed = allowed.transpose([inside.index(j) for j in attributes if j in inside])
        found &= allowed.reshape([domain.sizes[j] if j in inside else 1 for j in attributes])
    return found


@dataclass(frozen=True)
class Joint:
    """Estimates of some numbers with all their covariances."""

    value: np.ndarray
    covariance: np.ndarray

    def given(self, rows: np.ndarray, known: np.ndarray) -> Joint:
        """The same once `rows @ numbers` is known exactly: the best linear update, which leaves no variance along these."""
        gain = self.covariance @ rows.T @ np.linalg.pinv(rows @ self.covariance @ rows.T, hermitian=True)
        return Joint(self.value + gain @ (known - rows @ self.value), self.covariance - gain @ rows @ self.covariance)

    def summed(self, rows: np.ndarray) -> Joint:
        return Joint(rows @ self.value, rows @ self.covariance @ rows.T)


def cells(domain: Domain, attributes: Sequence[int]) -> int:
    return math.prod(domain.sizes[j] for j in attributes)
