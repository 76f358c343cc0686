"""Tables of counts from what was measured, whatever the method: best linear unbiased estimates with their exact variances.

Nothing here looks at synthetic rows. Variances are those of the noise alone: they say how far an estimate may be from what the
records hold, not from a population of which the records are a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain

MOST_TOGETHER = 1_500  # cells whose covariances are held at once


@dataclass(frozen=True)
class Asked:
    """A table by some attributes, of the rows whose other attributes have one of these codes. Attributes by their number.

    `classes` has, of an attribute by which the table is, for every code the class in which it is counted, −1 for one that is
    not asked for; an attribute without is told category by category.
    """

    attributes: tuple[int, ...]
    kept: Mapping[int, tuple[int, ...]]
    classes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def all(self) -> tuple[int, ...]:
        return (*self.attributes, *self.kept)

    @property
    def is_conditional(self) -> bool:
        """Whether some rows are not asked for."""
        return bool(self.kept) or any(-1 in classes for classes in self.classes.values())

    def class_of(self, attribute: int, domain: Domain) -> np.ndarray:
        """Of every code of an attribute by which the table is."""
        return np.array(self.classes.get(attribute, range(domain.sizes[attribute])))

    def shape(self, domain: Domain) -> tuple[int, ...]:
        return tuple(int(self.class_of(j, domain).max()) + 1 for j in self.attributes)

    def cells(self, domain: Domain) -> int:
        return math.prod(self.shape(domain))

    def cell_of(self, codes: Callable[[int], np.ndarray], rows: int, domain: Domain) -> np.ndarray:
        """The cell of every row, the first attribute slowest; −1 where it is none of the table's."""
        cell, inside = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
        for j, size in zip(self.attributes, self.shape(domain), strict=True):
            found = self.class_of(j, domain)[codes(j)]
            cell, inside = cell * size + found, inside & (found >= 0)
        for j, held in self.kept.items():
            inside &= np.isin(codes(j), held)
        return np.where(inside, cell, -1)


@dataclass(frozen=True)
class Tabulated:
    """Counts of a table's cells (first attribute slowest), with the variance of each, and their sum.

    `group` has of each attribute's categories the row of the table in which it is counted, −1 for none; `possible` the cells
    that the rules allow. Half of a cell's 95 % interval is `reach`, or `factor` standard errors: as many hold 95 %
    of any weighted sum of these noises.
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


def rows_of(classes: np.ndarray, group: np.ndarray) -> np.ndarray | None:
    """Of every category the row in which it is counted, where nothing less than a group was: its class, or its group where
    that holds several classes; −1 where no class does. None where a class, or what none holds, has a part of a group only.

    >>> groups = np.array([0, 0, 1, 2])
    >>> [rows_of(np.array(classes), groups) for classes in ([1, 1, 0, -1], [0, 1, 2, 3], [0, 1, 1, 1])]
    [array([ 1,  1,  0, -1]), array([0, 0, 1, 2]), None]
    """
    both = np.unique(np.stack([group, classes]), axis=1)
    divided = np.bincount(both[0])[group] > 1
    if (divided & ((classes < 0) | (np.bincount(both[1] + 1)[classes + 1] > 1))).any():
        return None
    first = classes[np.flatnonzero(np.diff(group, prepend=-1))][group]
    lead = np.where(divided, first, classes)
    found = np.searchsorted(np.unique(lead[lead >= 0]), lead)
    return np.where(lead >= 0, found, -1)
