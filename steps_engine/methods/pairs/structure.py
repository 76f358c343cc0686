"""What was measured: the number of rows, one-way tables, and interactions of pairs, all as contrasts in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import CountNoise, contrast_noise
from steps_engine.inference.contrasts import residual, residual_variance

Pair = tuple[int, int]
ROWS = "(rows)"  # the tree of the number of rows; no attribute is named so


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

    def variance(self, attribute: int) -> float:
        """Of the noise in a cell of one measurement, beside that of the number of rows."""
        size = self.domain.sizes[attribute]
        if size == 1:
            return 0.0
        return one_way_noise(self.plan, self.domain, attribute).variance * residual_variance((size,), self.centred)

    @cached_property
    def total_variance(self) -> float:
        found = [draw for draw in self.plan.draws if draw.of == ()]
        return contrast_noise(found[0], ()).variance if found else 0.0


@dataclass(frozen=True)
class Structure:
    """Which categories pairs are counted in, and which pairs: decided after the noise of the margins, or elected."""

    margins: Margins
    group: tuple[np.ndarray, ...]  # of each attribute's categories
    pairs: tuple[Pair, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(group[-1]) + 1 for group in self.group)

    def shape(self, pair: Pair) -> tuple[int, int]:
        return self.sizes[pair[0]], self.sizes[pair[1]]


def is_centred(plan: Plan) -> bool:
    """Under ρ contrasts of more than two categories are centred; under ε they are counts, in which one row changes one cell."""
    return plan.measure == "zcdp"


def one_way_draws(plan: Plan, name: str) -> tuple[Draw, ...]:
    """Of one attribute, one per measurement."""
    return tuple(draw for draw in plan.draws if draw.of == (name,))


def one_way_noise(plan: Plan, domain: Domain, attribute: int) -> CountNoise:
    return contrast_noise(one_way_draws(plan, domain.names[attribute])[0], (domain.sizes[attribute],))


def total_draws(plan: Plan) -> tuple[Draw, ...]:
    return tuple(draw for draw in plan.draws if draw.of == ())


def pair_draws(plan: Plan, domain: Domain, pairs: tuple[Pair, ...]) -> list[tuple[Draw, ...]]:
    """Of each pair its draws, one per measurement: by its attributes, or in the order of the elections."""
    elected: dict[str, list[Draw]] = {}
    named: dict[tuple[str, ...], list[Draw]] = {}
    for draw in plan.draws:
        if draw.of == "elected":
            elected.setdefault(draw.tree or "", []).append(draw)
        elif draw.of is not None and len(draw.of) == 2:
            named.setdefault(draw.of, []).append(draw)
    if elected:
        return [tuple(draws) for draws in elected.values()][: len(pairs)]
    return [tuple(named[domain.names[a], domain.names[b]]) for a, b in pairs]
