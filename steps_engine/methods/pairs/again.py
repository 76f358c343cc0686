"""Which pairs are measured a second time: those that the first noisy tables say need it most.

The first measurement is noisy, so that the choice is free of charge: post-processing, after which a second noise is drawn for
the pairs chosen. It has no randomness but a stream that everybody has: whoever has the noisy tables can choose again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.pairs.implied import strongest
from steps_engine.methods.pairs.structure import Structure, Table, again_draws
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.noise import SeededRandomness


def chosen(structure: Structure, noisy: list[np.ndarray], number: int) -> tuple[Table, ...]:
    """Pairs that need a second measurement, in the order of the tables. A function of noisy numbers, of all measurements."""
    if not number:
        return ()
    wanted = set(strongest(*_mean(structure, noisy), SeededRandomness("measured again"), number))
    return tuple(table for table in structure.tables if table in wanted)


def choice_problems(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Iterator[str]:
    """Which pairs were measured again must follow from the first noisy tables: chosen otherwise, the choice would tell."""
    structure, noisy = read_measured(domain, plan, tables)
    first, number = noisy[: len(structure.tables)], len(again_draws(plan))
    if structure.again != chosen(replace(structure, again=()), first, number):
        yield "the pairs that were measured again are not those that the first measurement of all pairs leads to"


def _mean(structure: Structure, noisy: list[np.ndarray]) -> tuple[Structure, list[np.ndarray]]:
    """All measurements as one."""
    margins = structure.margins
    total, contrasts = margins.total.mean(keepdims=True), tuple(each.mean(axis=0, keepdims=True) for each in margins.contrasts)
    one = replace(structure, margins=replace(margins, total=total, contrasts=contrasts))
    return one, [each.mean(axis=0, keepdims=True) for each in noisy]
