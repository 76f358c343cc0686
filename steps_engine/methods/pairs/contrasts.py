"""What the noisy contrasts of pairs say twice: sums that are nought but for noise, the number of rows, several measurements.

Noise by the largest coordinate is drawn for many tables at once; its coordinates are not independent, and are not tested here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.plan import Draw
from steps_engine.accounting.mechanisms import CountNoise, contrast_noise
from steps_engine.inference.noise_test import Contrasts, Groups, NoiseTest, noise_test
from steps_engine.methods.pairs.structure import Structure

AGAIN = ", again"  # after the name of a table that was measured a second time


@dataclass(frozen=True)
class _Measured:
    """A table's noisy contrast, measurements first; its noise, where entries are independent."""

    name: str
    sizes: tuple[int, ...]
    values: np.ndarray
    noise: CountNoise | None


def tested(structure: Structure, noisy: list[np.ndarray]) -> NoiseTest:
    return noise_test(*families(structure, noisy))


def families(structure: Structure, noisy: list[np.ndarray]) -> tuple[list[Groups], list[str]]:
    """Contrasts that are independent within each, and what was measured."""
    every = list(_measured(structure, noisy))
    centred = structure.margins.centred
    within = _sums(every) if centred else _rows(structure, every)
    return [within, _between_measurements(every), _first_against_second(every)], [each.name for each in every]


def _measured(structure: Structure, noisy: list[np.ndarray]) -> Iterator[_Measured]:
    margins, domain = structure.margins, structure.margins.domain
    if () in margins.draws:
        yield _one("the number of rows", (), margins.total, margins.draws[()][0])
    for j, (name, size) in enumerate(zip(domain.names, domain.sizes, strict=True)):
        if size > 1:
            yield _one(name, (size,), margins.contrasts[j], margins.draws[name,][0])
    for i, (table, values, draws) in enumerate(zip(structure.measured, noisy, structure.draws, strict=True)):
        name = " × ".join(structure.names(table)) + (AGAIN if i >= len(structure.tables) else "")
        yield _one(name, structure.shape(table), values, draws[0])


def _one(name: str, sizes: tuple[int, ...], values: np.ndarray, draw: Draw) -> _Measured:
    return _Measured(name, sizes, values, None if draw.is_joint else contrast_noise(draw, sizes))


def _sums(every: list[_Measured]) -> Groups:
    """K·count − Σ counts sums to nought along its axis; what the noisy ones sum to is K noises."""
    found = Groups()
    for each in every:
        axis = next((i for i, size in enumerate(each.sizes) if size > 2), None)
        if axis is not None and each.noise is not None:
            laws = ((each.noise, each.sizes[axis]),)
            found[f"{each.name}, summed"] = [Contrasts(each.values.sum(axis=axis + 1).ravel(), laws, (each.name,))]
    return found


def _rows(structure: Structure, every: list[_Measured]) -> Groups:
    """Counts of one attribute sum to the number of rows: to the exact one, or as those of another attribute do."""
    counted = [each for each in every if len(each.sizes) == 1 and each.sizes[0] > 2 and each.noise is not None]
    laws = {each.name: ((each.noise, each.sizes[0]),) for each in counted if each.noise is not None}
    sums = {each.name: each.values.sum(axis=1) for each in counted}
    if () not in structure.margins.draws:
        total = structure.margins.total
        return {f"rows, by {name}": [Contrasts(sums[name] - total, laws[name], (name,))] for name in sums}
    names = list(sums)
    return {
        f"rows, by {a} and {b}": [Contrasts(sums[a] - sums[b], (*laws[a], *laws[b]), (a, b))]
        for a, b in zip(names[::2], names[1::2], strict=False)
    }


def _between_measurements(every: list[_Measured]) -> Groups:
    """The first measurement less the second, the third less the fourth, …"""
    found = Groups()
    for each in every:
        pairs = len(each.values) // 2
        if pairs and each.noise is not None:
            apart = each.values[: 2 * pairs : 2] - each.values[1 : 2 * pairs : 2]
            found[f"{each.name}, one measurement against another"] = [
                Contrasts(apart.ravel(), ((each.noise, 2),), (each.name,))
            ]
    return found


def _first_against_second(every: list[_Measured]) -> Groups:
    """A table that was measured twice: both say the same but for their noise."""
    named, found = {each.name: each for each in every}, Groups()
    for second in (each for each in every if each.name.endswith(AGAIN)):
        first = named[second.name.removesuffix(AGAIN)]
        if first.noise is not None and second.noise is not None:
            apart, laws = second.values - first.values, ((first.noise, 1), (second.noise, 1))
            found[second.name] = [Contrasts(apart.ravel(), laws, (first.name, second.name))]
    return found
