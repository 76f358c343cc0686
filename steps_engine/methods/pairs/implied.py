"""What the strongest pairs imply of the others: noisy pairs are shrunk towards that, in place of independence.

A pair that goes with a third attribute of each of its two is dependent without a tie of its own. Rows of a spanning tree are
weighted by those pairs of which the measurement says more than rows do by then, and what they say of the rest is where noise
leaves them. Post-processing: which pairs these are follows from noisy numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steps_engine.inference.contrasts import PAIR, interaction
from steps_engine.inference.evidence import Said
from steps_engine.inference.reweighting import tables_of
from steps_engine.methods.pairs.estimate import Estimate, estimate, evidence
from steps_engine.methods.pairs.structure import Structure, Table
from steps_engine.methods.pairs.synthesize import base_rows, spanning_tree, weights
from steps_engine.noise import Randomness

ROWS = 2**17  # of which tables are read off
SWEEPS = 10
LOUD = 3.0  # times what noise puts into a pair: so much beyond the model is a tie of the pair's own
GROWTH = 4  # pairs that are taken up together: one for so many before, the strongest first


@dataclass(frozen=True)
class _Beyond:
    """What the measurement of a pair says beyond a model: rows that this misplaces, and how loud it is beside the noise."""

    rows: float
    loudness: float


def estimated(structure: Structure, noisy: list[np.ndarray], which_set: int, randomness: Randomness) -> Estimate:
    """What rows of one set (1…m) follow: an estimate of its measurement; of sets that share one, a draw for each."""
    plan = structure.margins.plan
    if plan.budget == "shared" and plan.sets > 1:
        return estimate(structure, noisy, 0, randomness)
    return estimate(structure, noisy, which_set - 1, None, implied(structure, noisy, which_set - 1, randomness))


def implied(structure: Structure, noisy: list[np.ndarray], measurement: int, randomness: Randomness) -> dict[Table, np.ndarray]:
    """Shares of the pairs that are quiet beside what louder ones imply of them."""
    structure, noisy = _alone(structure, noisy)
    found, said = estimate(structure, noisy, measurement, None), evidence(structure, noisy, measurement)
    pairs = structure.tables
    information = found.information(pairs)
    taken = [pairs[place] for place in spanning_tree(len(structure.sizes), pairs, information)]
    if len(taken) == len(pairs):
        return {}
    rows = base_rows(structure, found, information, ROWS, randomness)
    model = tables_of(rows, structure.sizes, pairs, np.ones(len(rows)))
    while more := louder(said, found.total, pairs, model, taken):
        taken += more
        model = tables_of(rows, structure.sizes, pairs, _weights(structure, found, taken, rows))
    quiet = set(pairs).difference(taken)
    return {pair: table for pair, table in zip(pairs, model, strict=True) if pair in quiet}


def _alone(structure: Structure, noisy: list[np.ndarray]) -> tuple[Structure, list[np.ndarray]]:
    """Pairs without larger tables."""
    kept = [i for i, table in enumerate(structure.tables) if len(table) == PAIR]
    return replace(structure, tables=tuple(structure.tables[i] for i in kept)), [noisy[i] for i in kept]


def louder(
    said: dict[Table, Said], total: float, pairs: Sequence[Table], model: Sequence[np.ndarray], taken: Sequence[Table]
) -> list[Table]:
    """Pairs with a tie of their own that the model lacks, those that misplace most rows first, some at a time."""
    left = set(pairs).difference(taken)
    beyond = {pair: _beyond(said[pair], total * table) for pair, table in zip(pairs, model, strict=True) if pair in left}
    loud = [pair for pair in beyond if beyond[pair].loudness > LOUD]
    return sorted(loud, key=lambda pair: -beyond[pair].rows)[: max(1, len(taken) // GROWTH)]


def _beyond(said: Said, model: np.ndarray) -> _Beyond:
    """Squares of noise are expected to sum to its variance times the dimensions of an interaction."""
    squares = float(((said.value - interaction(model)) ** 2).sum())
    noise = said.variance * float(np.prod([size - 1 for size in model.shape]))
    rows = 0.4 * np.sqrt(max(squares - noise, 0.0) * model.size)
    return _Beyond(round(rows, 3), round(squares / noise - 1, 6))  # alike on every machine, so that their order is


def _weights(structure: Structure, found: Estimate, taken: list[Table], rows: np.ndarray) -> np.ndarray:
    """Rows agree with these pairs alone."""
    place = {table: i for i, table in enumerate(structure.tables)}
    some = replace(
        found,
        tables=[found.tables[place[pair]] for pair in taken],
        variances=[found.variances[place[pair]] for pair in taken],
    )
    return weights(replace(structure, tables=tuple(taken)), some, rows, SWEEPS)
