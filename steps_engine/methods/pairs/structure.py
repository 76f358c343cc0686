"""What was measured: the number of rows, one-way tables, interactions of larger ones, all as contrasts in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.plan import Draw, Plan
from schemas.plan import Table as Names
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import contrast_variance
from steps_engine.domain.cells import Space
from steps_engine.inference.contrasts import residual, residual_variance

Table = tuple[int, ...]  # two attributes or more, by their number in the domain


@dataclass(frozen=True)
class Margins:
    """Noisy one-way contrasts, measurements × cells of each attribute, and the number of rows. Public."""

    domain: Domain
    plan: Plan
    total: np.ndarray  # per measurement; exact where the number of rows is public or invariant
    contrasts: tuple[np.ndarray, ...]

    def estimates(self, attribute: int) -> np.ndarray:
        """Measurements × categories: a one-way table from its contrast and the number of rows, not yet made nonnegative."""
        size = self.domain.sizes[attribute]
        if size == 1:
            return self.total[:, None].astype(float)
        parts = [residual(each, (size,), self.centred) for each in self.contrasts[attribute]]
        return np.stack(parts) + self.total[:, None] / size

    @property
    def centred(self) -> bool:
        return is_centred(self.plan)

    @cached_property
    def draws(self) -> dict[Names, tuple[Draw, ...]]:
        return draws_of(self.plan)

    def variance(self, attribute: int) -> float:
        """Of the noise in a cell of one measurement, beside that of the number of rows."""
        name, size = self.domain.names[attribute], self.domain.sizes[attribute]
        if size == 1:
            return 0.0
        return contrast_variance(self.draws[name,][0], (size,)) * residual_variance((size,), self.centred)

    @cached_property
    def total_variance(self) -> float:
        return contrast_variance(self.draws[()][0], ()) if () in self.draws else 0.0


@dataclass(frozen=True)
class Structure:
    """Which categories tables are counted in, and which tables: decided after the noise of the margins, or elected."""

    margins: Margins
    group: tuple[np.ndarray, ...]  # of each attribute's categories
    tables: tuple[Table, ...]
    again: tuple[Table, ...] = ()  # pairs that were measured a second time, in the order of the tables

    @property
    def measured(self) -> tuple[Table, ...]:
        """The tables in the order in which their noisy contrasts stand."""
        return self.tables + self.again

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(group[-1]) + 1 for group in self.group)

    def shape(self, table: Table) -> tuple[int, ...]:
        return tuple(self.sizes[j] for j in table)

    def names(self, table: Table) -> Names:
        return tuple(self.margins.domain.names[j] for j in table)

    @cached_property
    def draws(self) -> list[tuple[Draw, ...]]:
        """Of each table its draws, one per measurement: by its attributes, or in the order of the elections; then of those
        that were measured again.
        """
        plan, named = self.margins.plan, self.margins.draws
        unnamed = [table for table in self.tables if self.names(table) not in named]
        elected, again = elected_draws(plan), again_draws(plan)
        if len(unnamed) > len(elected) or len(self.again) > len(again):
            raise ValueError("a table was measured that no draw of the plan accounts for")
        won = dict(zip(unnamed, elected, strict=False))
        return [*(named.get(self.names(table)) or won[table] for table in self.tables), *again[: len(self.again)]]

    @cached_property
    def variances(self) -> list[float]:
        """Of the noise in an entry of each table's contrast."""
        return [contrast_variance(of[0], self.shape(table)) for of, table in zip(self.draws, self.measured, strict=True)]


def is_posterior(plan: Plan) -> bool:
    """Whether sets are draws of a posterior, for intervals: several that share a measurement. Others follow an estimate."""
    return plan.budget == "shared" and plan.sets > 1


def is_centred(plan: Plan) -> bool:
    """Under ρ contrasts of more than two categories are centred; under ε they are counts, in which one row changes one cell."""
    return plan.measure == "zcdp"


def ungrouped(plan: Plan, domain: Domain) -> frozenset[int]:
    """Attributes whose categories are never counted together: those that rules tie to others, and those of analyses."""
    tied = (j for component in Space(domain).components for j in component.attributes)
    needed = (domain.index(name) for each in plan.analyses for table in each.needs if table.measured for name in table.of)
    return frozenset((*tied, *needed))


def draws_of(plan: Plan) -> dict[Names, tuple[Draw, ...]]:
    """Of each table that the plan names its draws, one per measurement; () is the number of rows."""
    found: dict[Names, list[Draw]] = {}
    for draw in plan.draws:
        for table in draw.tables:
            found.setdefault(table, []).append(draw)
    return {table: tuple(draws) for table, draws in found.items()}


def elected_draws(plan: Plan) -> list[tuple[Draw, ...]]:
    """Of each table that is elected its draws, one per measurement, in the order of the elections."""
    return _unnamed(plan, "elected")


def again_draws(plan: Plan) -> list[tuple[Draw, ...]]:
    """Of each pair that is measured again its draws, one per measurement."""
    return _unnamed(plan, "again")


def _unnamed(plan: Plan, of: str) -> list[tuple[Draw, ...]]:
    found: dict[str, list[Draw]] = {}
    for draw in plan.draws:
        if draw.of == of:
            found.setdefault(draw.tree or "", []).append(draw)
    return [tuple(draws) for draws in found.values()]
