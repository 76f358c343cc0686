"""Cells of the full cross-tabulation as whole numbers (mixed radix, first attribute slowest), and which the rules allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.domain.rules import allowed_pairs

LARGEST_COMPONENT = 10**7  # combinations of the attributes that a chain of rules ties together


@dataclass(frozen=True)
class Component:
    """Attributes tied together by rules, and which of their combinations are allowed."""

    attributes: tuple[int, ...]
    allowed: np.ndarray  # bool, one axis per attribute

    def completable(self, free: tuple[int, ...]) -> np.ndarray:
        """Which combinations of the other attributes have an allowed completion on the free axes."""
        return np.asarray(self.allowed.any(axis=free))


@dataclass(frozen=True)
class Space:
    """The cells of a domain. A cell that breaks a rule does not exist: no node, no noise, no synthetic row."""

    domain: Domain

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """cell = Σ code_j · stride_j."""
        sizes = self.domain.sizes
        return tuple(math.prod(sizes[j + 1 :]) for j in range(len(sizes)))

    @cached_property
    def components(self) -> tuple[Component, ...]:
        groups: list[set[int]] = []
        for zero in self.domain.zeros:
            tied = [group for group in groups if group & set(zero.places)]
            groups = [group for group in groups if not group & set(zero.places)] + [set(zero.places).union(*tied)]
        return tuple(self._component(tuple(sorted(group))) for group in groups)

    def _component(self, attributes: tuple[int, ...]) -> Component:
        shape = tuple(self.domain.sizes[j] for j in attributes)
        if math.prod(shape) > LARGEST_COMPONENT:
            names = ", ".join(self.domain.names[j] for j in attributes)
            raise SpecError(
                f"the rules tie {names} together: {math.prod(shape):,} combinations, at most {LARGEST_COMPONENT:,} can be "
                "checked. Write rules over fewer attributes, or give them fewer categories."
            )
        allowed = np.ones(shape, dtype=bool)
        for rule in self.domain.forbidden:
            if rule.keys() <= set(attributes):
                breaks = (rule.get(j, range(size)) for j, size in zip(attributes, shape, strict=True))
                allowed[np.ix_(*(np.fromiter(codes, dtype=np.intp) for codes in breaks))] = False
        for compared in self.domain.comparisons:
            if set(compared.places) <= set(attributes):
                view = [size if j in compared.places else 1 for j, size in zip(attributes, shape, strict=True)]
                pairs = allowed_pairs(self.domain, compared)
                allowed &= (pairs if compared.first < compared.second else pairs.T).reshape(view)
        if not allowed.any():
            raise SpecError("the rules leave no allowed combination of categories; check them against each other.")
        return Component(attributes, allowed)

    def count(self, attributes: tuple[int, ...] | None = None) -> int:
        """How many combinations of these attributes have an allowed completion (default: allowed cells).

        Components share no attribute, so their allowed combinations multiply.
        """
        wanted = set(range(len(self.domain.sizes)) if attributes is None else attributes)
        total = 1
        for component in self.components:
            elsewhere = tuple(axis for axis, j in enumerate(component.attributes) if j not in wanted)
            total *= int(component.completable(elsewhere).sum())
            wanted -= set(component.attributes)
        return total * math.prod(self.domain.sizes[j] for j in wanted)

    def singles(self, attributes: tuple[int, ...]) -> int:
        """How many combinations of these attributes leave a single allowed cell: there a branch ends early."""
        wanted, total = set(attributes), 1
        for component in self.components:
            elsewhere = tuple(axis for axis, j in enumerate(component.attributes) if j not in wanted)
            total *= int((component.allowed.sum(axis=elsewhere) == 1).sum())
            wanted -= set(component.attributes)
        tied = {j for component in self.components for j in component.attributes}
        free = [size for j, size in enumerate(self.domain.sizes) if j not in tied and j not in attributes]
        return total * math.prod(self.domain.sizes[j] for j in wanted) * all(size == 1 for size in free)

    def allowed(self) -> np.ndarray:
        """All allowed cells, increasing. Only for domains small enough to hold (the plan says)."""
        shape = tuple(size for size in self.domain.sizes if size > 1)
        axis_of = dict(zip((j for j, size in enumerate(self.domain.sizes) if size > 1), range(len(shape)), strict=True))
        mask = np.ones(shape, dtype=bool)
        for component in self.components:
            kept = [j for j in component.attributes if j in axis_of]
            view = np.ones(len(shape), dtype=int)
            view[[axis_of[j] for j in kept]] = [self.domain.sizes[j] for j in kept]
            mask &= component.allowed.reshape(view)
        return np.flatnonzero(mask)

    def digit(self, cells: np.ndarray, attribute: int) -> np.ndarray:
        """The category code of one attribute in each cell."""
        return (cells // self.strides[attribute]) % self.domain.sizes[attribute]

    def codes(self, cells: np.ndarray) -> np.ndarray:
        """Cells as rows of category codes."""
        codes = np.empty((len(cells), len(self.strides)), dtype=np.int32)
        for j in range(len(self.strides)):
            codes[:, j] = self.digit(cells, j)
        return codes

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Rows of category codes as cells."""
        return codes.astype(np.int64) @ np.array(self.strides, dtype=np.int64)


def possible_cells(domain: Domain, attributes: Sequence[int]) -> np.ndarray:
    """Which combinations of these attributes, in their order, have an allowed completion: one axis each."""
    found = np.ones(tuple(domain.sizes[j] for j in attributes), dtype=bool)
    for component in Space(domain).components:
        inside = [j for j in component.attributes if j in attributes]
        allowed = component.completable(tuple(a for a, j in enumerate(component.attributes) if j not in attributes))
        allowed = allowed.transpose([inside.index(j) for j in attributes if j in inside])
        found &= allowed.reshape([domain.sizes[j] if j in inside else 1 for j in attributes])
    return found
