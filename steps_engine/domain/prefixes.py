"""What the rules leave below a prefix: cells in which some attributes are fixed and the others stand at 0.

Components share no attribute, so a prefix has the product of its components' completions. Every function takes prefixes
that fix the same attributes; nothing here lists cells, so that domains of any size can be asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from steps_engine.domain.cells import Component, Space


@dataclass(frozen=True)
class _Part:
    """A component's allowed combinations as a matrix: those of its fixed attributes × those of its free ones."""

    fixed: tuple[int, ...]
    free: tuple[int, ...]
    allowed: np.ndarray

    @classmethod
    def of(cls, component: Component, fixed: frozenset[int]) -> _Part:
        axes = sorted(range(len(component.attributes)), key=lambda axis: component.attributes[axis] not in fixed)
        number = sum(j in fixed for j in component.attributes)
        attributes = tuple(component.attributes[axis] for axis in axes)
        shape = math.prod(component.allowed.shape[axis] for axis in axes[:number])
        return cls(attributes[:number], attributes[number:], component.allowed.transpose(axes).reshape(shape, -1))

    def rows(self, space: Space, cells: np.ndarray) -> np.ndarray:
        row = np.zeros(len(cells), dtype=np.int64)
        for j in self.fixed:
            row = row * space.domain.sizes[j] + space.digit(cells, j)
        return row


def _parts(space: Space, fixed: frozenset[int]) -> Iterator[_Part]:
    """One for each component of the rules, and one for each attribute that is free and in no rule."""
    tied = {j for component in space.components for j in component.attributes}
    yield from (_Part.of(component, fixed) for component in space.components)
    for j, size in enumerate(space.domain.sizes):
        if j not in tied and j not in fixed:
            yield _Part((), (j,), np.ones((1, size), dtype=bool))


def completions(space: Space, cells: np.ndarray, fixed: frozenset[int]) -> np.ndarray:
    """How many allowed cells each prefix has."""
    number = np.ones(len(cells), dtype=np.int64)
    for part in _parts(space, fixed):
        number *= part.allowed.sum(axis=1)[part.rows(space, cells)] if part.fixed else int(part.allowed.sum())
    return number


def complete(space: Space, cells: np.ndarray, fixed: frozenset[int], pick: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """An allowed cell of each prefix: `pick` says which of so many, once for each part that the rules tie together."""
    result = cells.copy()
    for part in _parts(space, fixed):
        row, (_, listed) = part.rows(space, cells), np.nonzero(part.allowed)
        number = part.allowed.sum(axis=1)
        code = listed[(np.cumsum(number) - number)[row] + pick(number[row])]
        for j in reversed(part.free):
            result += code % space.domain.sizes[j] * space.strides[j]
            code = code // space.domain.sizes[j]
    return result


def categories_left(space: Space, cells: np.ndarray, fixed: frozenset[int], attribute: int) -> np.ndarray:
    """How many categories of an attribute each prefix has an allowed cell for."""
    if attribute in fixed:
        return np.ones(len(cells), dtype=np.int64)
    for component in space.components:
        if attribute in component.attributes:
            others = tuple(a for a, j in enumerate(component.attributes) if j not in fixed and j != attribute)
            kept = tuple(j for j in component.attributes if j in fixed or j == attribute)
            part = _Part.of(Component(kept, component.completable(others)), fixed)
            left: np.ndarray = part.allowed.sum(axis=1)[part.rows(space, cells)]
            return left
    return np.full(len(cells), space.domain.sizes[attribute])
