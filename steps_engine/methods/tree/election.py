"""Which attribute splits a node: elected from exact counts with a share of ε. The draw itself is in noise.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schemas.plan import ElectionPlan, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import elect, noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Split
from steps_engine.methods.tree.growth import Growth
from steps_engine.noise import GRID, Randomness
from steps_engine.scores import ERROR, MOST_ROWS, log_likelihood, unevenness

MOST_CANDIDATES = 10**6


@dataclass(frozen=True)
class Utility:
    """A score per node and attribute, and how far one record can move it.

    `score(histogram, categories, expected_rows)`: histogram is nodes × categories, `categories` the public number of
    categories in each node. `sensitivity` is the largest change when one record is added; `monotone` says that adding a
    record never moves one candidate up and another one down. `error` is how far the computed score may lie from the one in
    real arithmetic that `sensitivity` speaks of.
    """

    name: str
    score: Callable[[np.ndarray, np.ndarray, int | None], np.ndarray]
    sensitivity: Fraction
    monotone: bool
    needs_expected_rows: bool = False
    in_rows: bool = False  # whether scores are numbers of rows, which can be weighed against noise
    error: Fraction = GRID

    @property
    def spread(self) -> Fraction:
        """Width of the interval in which adding one record moves every score: Δ if monotone, else 2Δ."""
        return self.sensitivity * (1 if self.monotone else 2)

    def candidate_error(self, what: str, stop: bool) -> Fraction:
        """How far a candidate's score may lie from its true value: a grouping's is the gap of two means (`_gaps`), and where
        stopping competes a price is taken off (`_with_stop`)."""
        if what == "groups":
            return 2 * self.error + GRID * 5 / 8
        return self.error + (GRID / 4 if stop else 0)


def _minus_aic(histogram: np.ndarray, categories: np.ndarray, expected_rows: int | None) -> np.ndarray:
    """−AIC = 2 log L − 2K, K from the public domain. Adding a record moves it by (−2, 0]: PRIVACY.md, aic."""
    score: np.ndarray = 2 * log_likelihood(histogram) - 2 * categories
    return score


def _minus_bic(histogram: np.ndarray, categories: np.ndarray, expected_rows: int | None) -> np.ndarray:
    """−BIC = 2 log L − K log n̂ with a public n̂: the exact size of a node would make the sensitivity grow with K."""
    if expected_rows is None:
        raise ValueError("bic needs a public number of rows; give expected_rows in the domain")
    score: np.ndarray = 2 * log_likelihood(histogram) - categories * math.log(expected_rows)
    return score


def _uneven(histogram: np.ndarray, categories: np.ndarray, expected_rows: int | None) -> np.ndarray:
    return unevenness(histogram, categories)


AIC = Utility("aic", _minus_aic, Fraction(2), monotone=True, error=ERROR)
BIC = Utility("bic", _minus_bic, Fraction(2), monotone=True, needs_expected_rows=True, error=ERROR)
UNEVEN = Utility("uneven", _uneven, Fraction(1), monotone=False, in_rows=True, error=ERROR)
UTILITIES = {utility.name: utility for utility in (AIC, BIC, UNEVEN)}


def election_of(plan: Plan) -> ElectionPlan:
    """What is elected, by a plan that elects."""
    if plan.election is None:
        raise ValueError("the plan elects nothing; its layers name their attributes")
    return plan.election


def elect_attributes(
    growth: Growth, counts: Counts, plan: Plan, depth: int, randomness: Randomness, utility: Utility
) -> tuple[tuple[Split, ...], np.ndarray]:
    """One election per node of a layer. Nodes are disjoint, so the layer costs one election, not their number."""
    nodes = growth.open_nodes()
    draw = plan.election_draw(depth)
    scores, eligible = _ballot(growth, counts, utility, growth.space.domain.expected_units)
    if election_of(plan).stop:
        scores, eligible = _with_stop(growth, plan, depth, scores, eligible)
    elected = elect(draw, scores[nodes], eligible[nodes], randomness)
    rest, rest_of = growth.remainder()
    choices = tuple((j,) for j in range(growth.used.shape[1])) + rest
    choice = np.zeros(growth.width, dtype=np.int64)
    choice[nodes] = np.where(elected < growth.used.shape[1], elected, growth.used.shape[1] + rest_of[nodes])
    chosen, split_of = np.unique(choice[nodes], return_inverse=True)
    result = np.zeros(growth.width, dtype=np.int32)
    result[nodes] = split_of.reshape(-1)
    return tuple(choices[c] for c in chosen), result


def _with_stop(
    growth: Growth, plan: Plan, depth: int, scores: np.ndarray, eligible: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A last candidate: no further layer, the cells come next. It scores 0; a split what it tells less what it costs.

    Sanitizing K categories misplaces about ½ Σ E|noise| rows: public, as K and the scale are. One constant for all records is
    taken from each score, so that the spread stays as it is. No price is above MOST_ROWS, which no split is worth: so the
    difference is rounded by GRID/4 at most.
    """
    draws = (d for d in plan.draws if (d.kind, d.layer, d.set) == ("count", depth + 1, plan.served[0]))
    price = max(noise_of(d).mean_size for d in draws) / 2
    _must_be_small(scores[eligible])
    for j in range(scores.shape[1]):
        scores[:, j] -= np.minimum(price * growth.allowed_categories(j), MOST_ROWS)
    return np.pad(scores, ((0, 0), (0, 1))), np.pad(eligible, ((0, 0), (0, 1)), constant_values=True)


def _ballot(growth: Growth, counts: Counts, utility: Utility, expected_rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """CONFIDENTIAL scores (nodes × attributes), and the public mask of attributes that can still split each node."""
    walking, node = growth.walking(counts.codes)
    codes, count = counts.codes[walking], counts.count[walking]
    scores, eligible = np.zeros(growth.used.shape), ~growth.used
    for j, size in enumerate(growth.space.domain.sizes):
        categories = growth.allowed_categories(j)
        histogram = np.bincount(node * size + codes[:, j], weights=count, minlength=growth.width * size)
        scores[:, j] = utility.score(histogram.reshape(growth.width, size), categories, expected_rows)
        eligible[:, j] &= categories > 1
    return scores, eligible


def grouping_count(attributes: int, groups: int) -> int:
    """Ordered ways to put attributes into non-empty groups: Σ (−1)^i C(g, i) (g − i)^p."""
    return sum((-1) ** i * math.comb(groups, i) * (groups - i) ** attributes for i in range(groups + 1))


def elect_groups(domain: Domain, counts: Counts, plan: Plan, randomness: Randomness, utility: Utility) -> tuple[Split, ...]:
    """The paper's clustering variant, elected once at the root: layers of attributes of like importance.

    A candidate is an ordered grouping; its utility is the sum of the gaps between the mean importance of adjacent
    groups, most important first, which telescopes to mean(first) − mean(last). Each mean moves like one score, so for a
    utility of spread s the difference moves within ±s: its spread is 2s. PRIVACY.md, elect_groups.
    """
    draw, groups = plan.election_draw(0), election_of(plan).layers
    importance = np.array(
        [
            float(utility.score(_histogram(counts, j, size), np.array([size]), domain.expected_units)[0])
            for j, size in enumerate(domain.sizes)
        ]
    )
    labels = _groupings(len(domain.sizes), groups)
    score = _gaps(importance, labels == 0, labels == groups - 1)
    everyone = np.ones((1, len(score)), dtype=bool)
    winner = int(elect(draw, score[None, :], everyone, randomness)[0])
    return tuple(tuple(np.flatnonzero(labels[winner] == group).tolist()) for group in range(groups))


def _gaps(importance: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Mean of the first group less mean of the last, for each grouping: whole numbers of 2^−24 up to one division."""
    _must_be_small(importance)
    units = np.rint(importance * 2.0**24).astype(np.int64)
    ones, others = first.sum(axis=1), last.sum(axis=1)
    gaps: np.ndarray = ((first @ units) * others - (last @ units) * ones) / (ones * others) / 2.0**24
    return gaps


def _must_be_small(scores: np.ndarray) -> None:
    """CONFIDENTIAL scores. Sums and differences of scores below MOST_ROWS, and as near to each other, are exact enough."""
    if scores.size and not (np.abs(scores).max() <= MOST_ROWS and np.ptp(scores) <= MOST_ROWS):
        raise ValueError("scores are not finite, or more than 2^31 apart; check the utility")


def _histogram(counts: Counts, attribute: int, size: int) -> np.ndarray:
    return np.bincount(counts.codes[:, attribute], weights=counts.count, minlength=size)[None, :]


def _groupings(attributes: int, groups: int) -> np.ndarray:
    """All ordered groupings as rows of labels."""
    numbers = np.arange(groups**attributes)
    labels = np.stack([(numbers // groups**j) % groups for j in range(attributes)], axis=1).astype(np.int8)
    complete = np.all([(labels == group).any(axis=1) for group in range(groups)], axis=0)
    return labels[complete]
