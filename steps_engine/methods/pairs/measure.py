"""Measure: margins first; from their noisy values, which are public, groups of categories and an election of pairs; then pairs.

Nothing here branches on an exact count: counts become contrasts, to which noise is added, and scores, which only an election
reads.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import contrast_noise, elect, noise_of
from steps_engine.domain.cells import Space
from steps_engine.domain.contingency import in_parallel
from steps_engine.domain.counting import Counts, most_rows
from steps_engine.inference.contrasts import contrast, contrast_shape
from steps_engine.inference.one_way import joined, smoothed
from steps_engine.methods.pairs.plan import FEWEST_GROUPS, SIGMAS_PER_GROUP, SMALL, pair_error
from steps_engine.methods.pairs.structure import Margins, Pair, Structure, is_centred, one_way_draws, pair_draws, total_draws
from steps_engine.noise import Randomness
from steps_engine.scores import MOST_ROWS


def build(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> Structure:
    """Margins with their noise, groups that follow from them, and the pairs of the plan or of its elections."""
    margins = measure_margins(domain, plan, counts, randomness)
    group = groups(margins)
    structure = Structure(margins, group, ())
    possible = tuple(pair for pair in combinations(range(len(group)), 2) if min(structure.shape(pair)) > 1)
    elections = [draw for draw in plan.draws if draw.kind == "election"]
    if not elections:
        return Structure(margins, group, possible)
    return Structure(margins, group, elect_pairs(structure, counts, possible, randomness))


def measure_margins(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> Margins:
    """The number of rows and every one-way contrast plus its noise, in every measurement."""
    rows = int(counts.count.sum())
    drawn = [rows + int(noise_of(draw).draw(1, randomness)[0]) for draw in total_draws(plan)]
    total = np.clip(drawn or [rows] * plan.measurements, 0, most_rows(domain))
    contrasts = []
    for j, size in enumerate(domain.sizes):
        exact = contrast(_table(counts, (j,), domain.sizes), is_centred(plan)) if size > 1 else np.zeros(0, dtype=np.int64)
        noises = (contrast_noise(draw, (size,)) for draw in one_way_draws(plan, domain.names[j]))
        noisy = [exact + noise.draw(exact.size, randomness) for noise in noises]
        contrasts.append(np.stack(noisy) if noisy else np.zeros((plan.measurements, 0), dtype=np.int64))
    return Margins(domain, plan, total, tuple(contrasts))


def _table(counts: Counts, attributes: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """CONFIDENTIAL. Exact counts of every combination of categories."""
    cell = np.zeros(len(counts.count), dtype=np.int64)
    for j in attributes:
        cell = cell * sizes[j] + counts.codes[:, j]
    shape = tuple(sizes[j] for j in attributes)
    return np.bincount(cell, weights=counts.count, minlength=int(np.prod(shape))).astype(np.int64).reshape(shape)


def groups(margins: Margins) -> tuple[np.ndarray, ...]:
    """Neighbouring categories together, until a group has enough rows to be told from the noise of a pair.

    Attributes with few categories, and those that rules tie to others, stay as they are.
    """
    domain, plan = margins.domain, margins.plan
    tied = {j for component in Space(domain).components for j in component.attributes}
    total = max(float(margins.total.mean()), 1.0)
    least = min(SIGMAS_PER_GROUP * pair_error(plan), total / FEWEST_GROUPS)
    found = []
    for j, size in enumerate(domain.sizes):
        if size <= SMALL or j in tied:
            found.append(np.arange(size))
        else:
            table = smoothed(margins.estimates(j).mean(axis=0), margins.variance(j) / plan.measurements, total)
            found.append(joined(table, least))
    return tuple(found)


def elect_pairs(structure: Structure, counts: Counts, possible: tuple[Pair, ...], randomness: Randomness) -> tuple[Pair, ...]:
    """One pair after the other, by the rows that independence would misplace: ½ Σ |count − whole number from noisy margins|.

    The margins are public by now, so one row changes a score by at most ½: whatever the candidates, within an interval of 1.
    """
    plan, left, won = structure.margins.plan, list(possible), list[Pair]()
    scores = dict(zip(possible, misfits(structure, counts, possible), strict=True))
    for draw in (draw for draw in plan.draws if draw.kind == "election"):
        if not left:
            break
        ballot = np.array([[scores[pair] for pair in left]])
        won.append(left.pop(int(elect(draw, ballot, np.ones(ballot.shape, dtype=bool), randomness)[0])))
    return tuple(won)


def misfits(structure: Structure, counts: Counts, pairs: tuple[Pair, ...]) -> list[float]:
    """CONFIDENTIAL. Of each pair its score, less what its noise would cost: exact, halves of whole numbers."""
    shares = [one_way_shares(structure, j) for j in range(len(structure.sizes))]
    total, error = float(structure.margins.total.mean()), pair_error(structure.margins.plan)
    grouped = _grouped(structure, counts)

    def score(pair: Pair) -> float:
        a, b = pair
        model = np.rint(total * np.outer(shares[a], shares[b])).astype(np.int64)
        price = min(round(0.8 * error * (len(shares[a]) - 1) * (len(shares[b]) - 1)), MOST_ROWS)
        return float(np.abs(_table(grouped, pair, structure.sizes) - model).sum() - price) / 2

    return in_parallel(score, pairs)


def one_way_shares(structure: Structure, attribute: int) -> np.ndarray:
    """Of the groups of an attribute, from all measurements."""
    margins, total = structure.margins, max(float(structure.margins.total.mean()), 1.0)
    table = smoothed(margins.estimates(attribute).mean(axis=0), margins.variance(attribute) / margins.plan.measurements, total)
    shares: np.ndarray = np.bincount(structure.group[attribute], weights=table) / total
    return shares


def _grouped(structure: Structure, counts: Counts) -> Counts:
    codes = np.stack([group[counts.codes[:, j]] for j, group in enumerate(structure.group)], axis=1)
    return Counts(codes, counts.count)


def sanitize(structure: Structure, counts: Counts, randomness: Randomness) -> list[np.ndarray]:
    """Of every pair its contrast plus noise: measurements × the contrast's shape. Every cell gets noise, empty ones too."""
    margins, noisy = structure.margins, []
    grouped = _grouped(structure, counts)
    draws = pair_draws(margins.plan, margins.domain, structure.pairs)
    exact = in_parallel(lambda pair: contrast(_table(grouped, pair, structure.sizes), margins.centred), structure.pairs)
    for pair, table, of_pair in zip(structure.pairs, exact, draws, strict=True):
        shape = contrast_shape(structure.shape(pair))
        noises = [contrast_noise(draw, structure.shape(pair)).draw(table.size, randomness).reshape(shape) for draw in of_pair]
        noisy.append(np.stack([table + noise for noise in noises]))
    return noisy
