"""Whether three attributes are measured together, from public inputs alone: where that errs less than leaving it to chance.

What a table of three has beyond its pairs is at the least what sampling n rows put there: 0.4·√(dimensions/n) of the rows
misplaced, if nothing else. Noise that misplaces less than this is worth its part of the budget, which pairs go without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs.division import (
    ASSUMED_ROWS,
    MEAN_SIZE,
    Division,
    candidates,
    dimensions,
    errors,
    grouped_sizes,
    left,
    margin_errors,
)
from steps_engine.methods.pairs.structure import Table

PARTS = tuple(Fraction(tenths, 10) for tenths in range(1, 7))  # of the tables' budget
MOST_TRIPLES = 500  # that rows are weighted by
SMALLEST = 24  # attributes of the fewest categories, of which triples are made
PAYS = 1.25  # distances of two and of three attributes together must fall by so much: fitting takes five times as long


@dataclass(frozen=True)
class Triples:
    """What is measured of three attributes, and with what part of the tables' budget."""

    tables: tuple[Table, ...] = ()
    part: Fraction = Fraction(0)


def triples(domain: Domain, allowance: Allowance, cost: float, margins: float) -> Triples:
    """The triples that pay, where so much of the budget is one measurement's and margins have a part of it."""
    sizes = grouped_sizes(domain, allowance, cost)
    found = _smallest(sizes)
    if not found:
        return Triples()
    first = float(margin_errors(domain, allowance, cost * margins).mean())
    without = first + _pairs(domain, sizes, allowance, cost * (1 - margins))
    best, least = Triples(), without * three_way(without, by_chance(domain, sizes)) / PAYS
    for part in PARTS:
        second = first + _pairs(domain, sizes, allowance, cost * (1 - margins) * float(1 - part))
        third = three_way(second, _beyond(domain, sizes, found, allowance, cost * (1 - margins) * float(part)))
        if second * third < least:
            best, least = Triples(tuple(found), part), second * third
    return best


def _smallest(sizes: Sequence[int]) -> list[Table]:
    """Triples of the fewest dimensions: for noise of the same cost they tell most."""
    small = sorted((j for j, size in enumerate(sizes) if size > 1), key=lambda j: sizes[j])[:SMALLEST]
    every: list[Table] = list(combinations(sorted(small), 3))
    return sorted(every, key=lambda table: dimensions(table, sizes))[:MOST_TRIPLES]


def _pairs(domain: Domain, sizes: list[int], allowance: Allowance, cost: float) -> float:
    """What noise leaves wrong in the mean pair."""
    return float(left(errors(candidates(domain), sizes, allowance, cost) / _rows(domain)).mean())


def three_way(second: float, beyond: float) -> float:
    """A table of three errs by its three pairs, and by what is beyond them."""
    return float(np.sqrt(3 * second**2 + beyond**2))


def distances(domain: Domain, allowance: Allowance, divided: Division, found: Triples) -> tuple[float, float]:
    """The two- and three-way distance of a plan: what is beyond pairs and not measured is as large as chance makes it."""
    if sum(size > 1 for size in domain.sizes) < 3:
        return divided.error, divided.error
    cost = float(allowance.total) / len(allowance.served) * float(1 - divided.margins)
    second = divided.error * (1 - float(found.part)) ** (-1 if allowance.measure is PURE else -1 / 2)
    beyond = by_chance(domain, domain.sizes)
    if found.tables:
        beyond = _beyond(domain, list(domain.sizes), found.tables, allowance, cost * float(found.part))
    return second, three_way(second, below_one(beyond))


def below_one(error: float) -> float:
    """What is misplaced is part of the rows, however small the cells are: λ < 1 rows in each have a mean error near 2λ."""
    return error / math.hypot(1.0, error)


def by_chance(domain: Domain, sizes: Sequence[int]) -> float:
    """The mean over all triples of 0.4·√(dimensions/n): of x = √(K − 1) the third elementary symmetric polynomial."""
    x = np.sqrt(np.array([size for size in sizes if size > 1], dtype=float) - 1)
    if len(x) < 3:
        return 0.0
    one, two, three = x.sum(), (x**2).sum(), (x**3).sum()
    every = (one**3 - 3 * one * two + 2 * three) / 6
    return float(MEAN_SIZE * every / math.comb(len(x), 3) / np.sqrt(_rows(domain)))


def _beyond(domain: Domain, sizes: list[int], found: Sequence[Table], allowance: Allowance, cost: float) -> float:
    """The same where some are measured: noise x leaves D·x/√(D² + x²) of what chance put there, D (both are normal)."""
    noise = errors(found, sizes, allowance, cost) / _rows(domain)
    chance = MEAN_SIZE * np.sqrt(np.array([dimensions(table, sizes) for table in found]) / _rows(domain))
    number = math.comb(sum(size > 1 for size in sizes), 3)
    gained = chance - chance * noise / np.hypot(chance, noise)
    return by_chance(domain, sizes) - float(gained.sum()) / number


def _rows(domain: Domain) -> int:
    return domain.expected_units or ASSUMED_ROWS
