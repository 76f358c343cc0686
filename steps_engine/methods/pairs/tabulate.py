"""Tables from margins and interactions: the sum of everything that was measured of their parts, joined by precision.

A table is the sum of its parts θ_S, one for every set S of its attributes, each spread evenly over the other axes. Noise is
independent between parts and alike in every direction of one, so that what all tables say of a part, joined by precision, is
least squares over everything that was measured. A sum of cells that is a product of u_j over the axes has the variance
    Σ_S σ_S² · Π_{j∈S} u_jᵀP_j u_j · Π_{j∉S} (Σu_j/K_j)²,          P = I − 11ᵀ/K,
and covariances are the same with u_j, v_j. Where categories are counted in groups (G sums them, s are the groups' sizes), the
part of one attribute is P·G·n = P·G·x + N·P·s/K of its own finer table n = x + N/K: it depends on the number of rows N too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import possible_cells
from steps_engine.inference.evidence import Said
from steps_engine.inference.reach import standard_errors
from steps_engine.methods.pairs.estimate import told
from steps_engine.methods.pairs.structure import Structure, Table
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.protocol import Tables
from steps_engine.methods.tabulated import MOST_TOGETHER, Asked, Joint, Tabulated, rows_of

MOST_NAMED = 3
MOST_ATTRIBUTES = 12  # of a table: beyond, nobody measured all 2^d of its parts


def lacking(domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """Parts that no draw tells of, and attributes that were counted in groups of categories."""
    structure, noisy = read_measured(domain, plan, tables)
    said = told(structure, noisy)
    return [(*_untold(structure, said, of), *_grouped(structure, of)) for of in asked]


def _grouped(structure: Structure, of: Sequence[int]) -> list[str]:
    domain = structure.margins.domain
    several = len(_with_choice(domain, of)) > 1
    grouped = [j for j in of if several and structure.sizes[j] < domain.sizes[j]]
    return [f"{domain.names[j]} category by category" for j in grouped]


def _with_choice(domain: Domain, of: Sequence[int]) -> Table:
    return tuple(sorted(j for j in of if domain.sizes[j] > 1))


def _untold(structure: Structure, said: dict[Table, Said], of: Sequence[int]) -> tuple[str, ...]:
    """The smallest parts of a table that nothing tells of."""
    chosen, found = _with_choice(structure.margins.domain, of), list[Table]()
    for size in range(1, len(chosen) + 1):
        parts = [part for part in combinations(chosen, size) if part not in said] if size <= MOST_ATTRIBUTES else [chosen]
        found += parts if not found else []
    return tuple(" × ".join(structure.names(part)) for part in found)


@dataclass(frozen=True)
class _Axis:
    """Sums along one axis of a table: `rows` of weights over its groups, each of which holds some of its categories."""

    attribute: int
    group: np.ndarray
    rows: np.ndarray
    row: np.ndarray  # in which each category is counted, −1: in none

    @classmethod
    def whole(cls, structure: Structure, attribute: int, several: bool) -> _Axis:
        """Every group by itself; an attribute that stands alone is told category by category."""
        size = structure.margins.domain.sizes[attribute]
        group = structure.group[attribute] if several else np.arange(size)
        return cls(attribute, group, np.eye(int(group[-1]) + 1), group)

    @property
    def firsts(self) -> np.ndarray:
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    @property
    def mean(self) -> np.ndarray:
        mean: np.ndarray = self.rows.mean(axis=1, keepdims=True)
        return mean

    @property
    def centred(self) -> np.ndarray:
        centred: np.ndarray = self.rows - self.mean
        return centred

    @property
    def fine(self) -> np.ndarray:
        """As weights over the categories, less their mean."""
        weights: np.ndarray = self.centred[:, self.group] - self.slope
        return weights

    @property
    def slope(self) -> np.ndarray:
        """What a row more in all is to the part of this attribute alone: nothing where groups are of one size."""
        slope: np.ndarray = self.centred[:, self.group].mean(axis=1, keepdims=True)
        return slope

    def counted(self, classes: np.ndarray) -> _Axis | None:
        """A row for each class, or for each group where classes are finer; None where a class has a part of one."""
        row = rows_of(classes, self.group)
        if row is None:
            return None
        rows = np.zeros((int(row.max()) + 1, self.rows.shape[1]))
        rows[row[row >= 0], self.group[row >= 0]] = 1.0
        return _Axis(self.attribute, self.group, rows, row)

    @property
    def summed(self) -> _Axis:
        """All rows as one."""
        return replace(self, rows=self.rows.sum(axis=0, keepdims=True))


@dataclass(frozen=True)
class _Sums:
    """All products of sums along the axes of a table."""

    axes: Sequence[_Axis]
    said: dict[Table, Said]

    @property
    def parts(self) -> list[tuple[int, ...]]:
        """Axes with a choice, in all combinations of two and more."""
        free = [i for i, axis in enumerate(self.axes) if len(axis.group) > 1]
        return [part for size in range(2, len(free) + 1) for part in combinations(free, size)]

    def _product(self, at: dict[int, np.ndarray]) -> np.ndarray:
        """Over all axes: what is given at some of them, the mean at the others."""
        return reduce(np.kron, [at.get(i, axis.mean) for i, axis in enumerate(self.axes)], np.ones((1, 1)))

    @property
    def slopes(self) -> np.ndarray:
        """What each is per row in all."""
        return sum((self._product({i: axis.slope}) for i, axis in enumerate(self.axes)), self._product({}))

    @property
    def estimate(self) -> np.ndarray:
        value = float(self.said[()].value) * self.slopes
        for i, axis in enumerate(self.axes):
            if len(axis.group) > 1:
                value = value + self._product({i: axis.fine @ self.said[axis.attribute,].value[:, None]})
        return value.ravel() + sum(map(self._added, self.parts), np.zeros(value.size))

    def _added(self, part: tuple[int, ...]) -> np.ndarray:
        """By the interaction of some axes."""
        attributes = [self.axes[i].attribute for i in part]
        value = self.said[tuple(sorted(attributes))].value.transpose(np.argsort(np.argsort(attributes)))
        for place, i in enumerate(part):
            value = np.moveaxis(np.tensordot(self.axes[i].centred, value, (1, place)), 0, place)
        for i, axis in enumerate(self.axes):
            if i not in part:
                value = np.expand_dims(value, i) * axis.mean.reshape([-1 if k == i else 1 for k in range(value.ndim + 1)])
        return value.ravel()

    def covariance(self, other: _Sums, kernel: Kernel) -> np.ndarray:
        """Of each with its counterpart, or of all with all: as the kernel says."""
        found = self.said[()].variance * kernel(self.slopes, other.slopes)
        both = list(zip(self.axes, other.axes, strict=True))
        means = [kernel(a.mean, b.mean) for a, b in both]
        spread = [kernel(a.centred, b.centred) for a, b in both]
        for i, (a, b) in enumerate(both):
            if len(a.group) > 1:
                alone = [*means[:i], kernel(a.fine, b.fine), *means[i + 1 :]]
                found = found + self.said[a.attribute,].variance * reduce(np.kron, alone)
        for part in self.parts:
            variance = self.said[tuple(sorted(self.axes[i].attribute for i in part))].variance
            found = found + variance * reduce(np.kron, [spread[i] if i in part else means[i] for i in range(len(both))])
        return found


Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _each(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    products: np.ndarray = (a * b).sum(axis=1)
    return products


def _all(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    product: np.ndarray = a @ b.T
    return product


def tabulate(domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
    structure, noisy = read_measured(domain, plan, tables)
    return tabulated(structure, told(structure, noisy), asked)


def tabulated(structure: Structure, said: dict[Table, Said], asked: Asked) -> Tabulated | str:
    """A table by what all measurements say of its parts."""
    domain = structure.margins.domain
    several = len(_with_choice(domain, asked.all)) > 1
    if untold := _untold(structure, said, asked.all):
        more = f" and {len(untold) - MOST_NAMED} more" if len(untold) > MOST_NAMED else ""
        return f"not measured: {'; '.join(untold[:MOST_NAMED])}{more}"
    axes = [_Axis.whole(structure, j, several) for j in asked.all]
    classes = [asked.class_of(j, domain) for j in asked.attributes]
    classes += [np.isin(np.arange(domain.sizes[j]), held) - 1 for j, held in asked.kept.items()]
    counted = [axis.counted(of) for axis, of in zip(axes, classes, strict=True)]
    if divided := [domain.names[j] for j, axis in zip(asked.all, counted, strict=True) if axis is None]:
        return f"{divided[0]} was counted in groups of categories, and what is asked divides one of them"
    wanted, listed = [axis for axis in counted if axis is not None], len(asked.attributes)
    allowed = possible_cells(domain, asked.all)[np.ix_(*(axis.firsts for axis in axes))]
    together = not allowed.all() and allowed.size <= MOST_TOGETHER
    numbers = (_given_rules if together else _as_measured)(axes, wanted, said, allowed.ravel())
    return Tabulated(tuple(axis.row for axis in wanted[:listed]), *numbers, factor=standard_errors(structure.margins.plan))


Numbers = tuple[np.ndarray, np.ndarray, np.ndarray, float, float, np.ndarray]


def _as_measured(axes: list[_Axis], wanted: list[_Axis], said: dict[Table, Said], allowed: np.ndarray) -> Numbers:
    """Cells that no record can have are nought, whatever was measured of them; they tell nothing of the others here."""
    cells, whole = _Sums(wanted, said), _Sums([axis.summed for axis in wanted], said)
    there = allowed.reshape([axis.rows.shape[1] for axis in axes])
    for place, axis in enumerate(wanted):
        there = np.moveaxis(np.tensordot(axis.rows, there, (1, place)), 0, place)
    there = there.ravel() > 0
    numbers = (cells.estimate, cells.covariance(cells, _each), cells.covariance(whole, _each))
    estimate, variance, cross = (np.where(there, each, 0.0) for each in numbers)
    return estimate, variance, cross, float(whole.estimate[0]), float(whole.covariance(whole, _each)[0]), there


def _given_rules(axes: list[_Axis], wanted: list[_Axis], said: dict[Table, Said], allowed: np.ndarray) -> Numbers:
    """All cells together, given that those which no record can have are nought."""
    every = _Sums(axes, said)
    joint = Joint(every.estimate, every.covariance(every, _all))
    picked: np.ndarray = np.ones((1, 1))
    for axis in wanted:
        picked = np.kron(picked, axis.rows)
    found = joint.given(np.eye(len(allowed))[~allowed], np.zeros(int((~allowed).sum()))).summed(picked)
    there = picked @ allowed > 0
    variance = np.where(there, np.maximum(np.diag(found.covariance), 0.0), 0.0)
    cross, value = found.covariance.sum(axis=1), np.where(there, found.value, 0.0)
    return value, variance, cross, float(value.sum()), max(float(cross.sum()), 0.0), there
