"""What the strongest pairs imply of the others: noisy pairs are shrunk towards that, in place of independence.

A pair that goes with a third attribute of each of its two is dependent without a tie of its own. Rows of a spanning tree are
weighted by those pairs of which the measurement says more than rows do by then, and what they say of the rest is where noise
leaves them. Post-processing: which pairs these are follows from noisy numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from steps_engine.inference.contrasts import PAIR, interaction
from steps_engine.inference.evidence import Said
from steps_engine.inference.reweighting import tables_of
from steps_engine.methods.pairs.estimate import Estimate, estimate, evidence
from steps_engine.methods.pairs.structure import Structure, Table, is_posterior
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
    if is_posterior(structure.margins.plan):
        return estimate(structure, noisy, 0, randomness)
    return estimate(structure, noisy, which_set - 1, None, implied(structure, noisy, which_set - 1, randomness))


def implied(structure: Structure, noisy: list[np.ndarray], measurement: int, randomness: Randomness) -> dict[Table, np.ndarray]:
    """Shares of the pairs that are quiet beside what louder ones imply of them."""
    for model in models(structure, noisy, measurement, randomness):
        if not model.louder():
            quiet = set(model.pairs).difference(model.taken)
            return {pair: table for pair, table in zip(model.pairs, model.tables, strict=True) if pair in quiet}
    return {}


def strongest(structure: Structure, noisy: list[np.ndarray], randomness: Randomness, number: int) -> list[Table]:
    """So many pairs: a spanning tree, then those that a model of the ones before lacks most; quiet ones come last."""
    last: Model | None = None
    for last in models(structure, noisy, 0, randomness):
        if len(last.taken) >= number or not last.louder():
            break
    return [*last.taken, *last.by_rows(set(last.pairs).difference(last.taken))][:number] if last else list(structure.tables)


@dataclass(frozen=True)
class Model:
    """Pairs that were taken up so far, and what rows that follow these alone say of all."""

    said: dict[Table, Said]
    total: float
    pairs: Sequence[Table]
    tables: Sequence[np.ndarray]
    taken: Sequence[Table]

    @cached_property
    def beyond(self) -> dict[Table, _Beyond]:
        left = set(self.pairs).difference(self.taken)
        every = zip(self.pairs, self.tables, strict=True)
        return {pair: _beyond(self.said[pair], self.total * table) for pair, table in every if pair in left}

    def by_rows(self, pairs: Iterable[Table]) -> list[Table]:
        """Those that misplace most rows first."""
        return sorted(pairs, key=lambda pair: (-self.beyond[pair].rows, pair))

    def louder(self) -> list[Table]:
        """Pairs with a tie of their own that the model lacks, some at a time."""
        loud = (pair for pair in self.beyond if self.beyond[pair].loudness > LOUD)
        return self.by_rows(loud)[: max(1, len(self.taken) // GROWTH)]


def models(structure: Structure, noisy: list[np.ndarray], measurement: int, randomness: Randomness) -> Iterator[Model]:
    """A spanning tree, then louder pairs as well, as long as there are any; none where a tree is all there is."""
    structure, noisy = _alone(structure, noisy)
    found, said = estimate(structure, noisy, measurement, None), evidence(structure, noisy, measurement)
    pairs = structure.tables
    information = found.information(pairs)
    taken = [pairs[place] for place in spanning_tree(len(structure.sizes), pairs, information)]
    if len(taken) == len(pairs):
        return
    rows = base_rows(structure, found, information, ROWS, randomness)
    model = Model(said, found.total, pairs, tables_of(rows, structure.sizes, pairs, np.ones(len(rows))), taken)
    yield model
    while more := model.louder():
        taken = [*model.taken, *more]
        fitted = tables_of(rows, structure.sizes, pairs, _weights(structure, found, taken, rows))
        model = replace(model, tables=fitted, taken=taken)
        yield model


def _alone(structure: Structure, noisy: list[np.ndarray]) -> tuple[Structure, list[np.ndarray]]:
    """Pairs without larger tables."""
    kept = [i for i, table in enumerate(structure.measured) if len(table) == PAIR]
    pairs = tuple(table for table in structure.tables if len(table) == PAIR)
    return replace(structure, tables=pairs), [noisy[i] for i in kept]


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
