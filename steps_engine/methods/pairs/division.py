"""How the budget is divided, from public inputs alone: what margins get, whether pairs are elected and how many, and shares.

Errors are predicted as parts of the rows that noise misplaces, Σ |noise| / 2 over the cells of a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance
from steps_engine.domain.frequencies import zipf
from steps_engine.inference.contrasts import is_counted
from steps_engine.inference.one_way import joined
from steps_engine.methods.pairs.structure import Table

VOTES = {"pure": Fraction(3, 10), "zcdp": Fraction(1, 10)}  # of the pairs' budget, where they are elected
SIGMAS_PER_GROUP = 10.0  # a group of categories stands alone with so many standard errors of a table's cell
FEWEST_GROUPS = 6  # but never needs more than this part of the rows
SMALL = 3  # attributes of so few categories are not grouped
STRONGEST, DECAY = 0.25, 5.0  # the part of the rows that the strongest pair moves, and how fast the others fall off
TOLD = 10  # groups of an attribute that an elected pair should tell apart
WORTH = 1.1  # elections must promise so much more than measuring all, which cannot miss a pair
FEWEST_ELECTED = 2  # for each attribute: a tree, and as many beside it
DECLARED = 4.0  # a table that an analysis needs matters so much more than others
WHOLE = 1.25  # under ε tables may err so much more in all categories than in groups, which tell nothing within them
TOLD_BY_TABLES = 0.25  # of the margins' part is left to them where tables in all categories tell of them too, under ε
TOLD_BY_NOISY_TABLES = 0.5  # the same where groups would have had less noise
ASSUMED_ROWS = 10**5
MEAN_SIZE = 0.4  # ½·E|z| of a standard normal: what noise of standard deviation 1 in a cell misplaces
ADDED_UP = 5_000  # pairs, one by one: of a hundred attributes
LEAST_PART, MOST_PART = Fraction(1, 50), Fraction(49, 50)


@dataclass(frozen=True)
class Block:
    """Tables that are measured together: under ρ one; under ε all that cross the same attributes of more than two categories
    with attributes of two."""

    tables: tuple[Table, ...]

    def entries(self, sizes: Sequence[int]) -> int:
        """Of one table's contrast under ε: the cells of the attributes that all have in common."""
        return math.prod(sizes[j] for j in crossed(self.tables[0], sizes))


@dataclass(frozen=True)
class Division:
    """What of the budget goes to margins, how many pairs are elected beside the tables that are measured anyhow."""

    margins: Fraction
    elected: int
    error: float


def candidates(domain: Domain) -> list[Table]:
    """Pairs of attributes that have a choice."""
    with_choice = [j for j, size in enumerate(domain.sizes) if size > 1]
    return list(combinations(with_choice, 2))


def blocks(tables: Sequence[Table], sizes: Sequence[int], allowance: Allowance) -> list[Block]:
    """Which tables get their noise together."""
    if allowance.measure is not PURE:
        return [Block((table,)) for table in tables]
    found: dict[Table, list[Table]] = {}
    for table in tables:
        found.setdefault(crossed(table, sizes), []).append(table)
    return [Block(tuple(each)) for each in found.values()]


def crossed(table: Table, sizes: Sequence[int]) -> Table:
    """The attributes whose cells a table's contrast has under ε: of larger tables than pairs all, which are counted."""
    return tuple(j for j in table if sizes[j] > 2 or is_counted(table, centred=False))


@dataclass(frozen=True)
class Matter:
    """How much tables matter: by the importance that their attributes are given, and more where an analysis needs them."""

    importance: tuple[float, ...]
    declared: frozenset[Table] = frozenset()

    @classmethod
    def alike(cls, domain: Domain) -> Matter:
        return cls((1.0,) * len(domain.sizes))

    def of(self, table: Table) -> float:
        """The number of rows is in every margin; by how much a margin is uneven, about ½, its error is there too."""
        if not table:
            return len(self.importance) / 2
        return math.prod(self.importance[j] for j in table) * (DECLARED if table in self.declared else 1.0)


def weights(found: Sequence[Block], sizes: Sequence[int], matter: Matter, allowance: Allowance) -> list[float]:
    """In proportion to the shares with the least Σ importance·error, by Lagrange.

    Under ε a block errs by loss/ε, so that shares are ∝ √loss. Under ρ a table's cells err by √(cells·dimensions)·σ in all, at
    a cost of (dimensions/cells)/(2σ²): shares are ∝ (importance·dimensions)^⅔.
    """
    if allowance.measure is PURE:
        return [math.sqrt(loss(block, sizes, matter)) for block in found]
    return [(matter.of(block.tables[0]) * dimensions(block.tables[0], sizes)) ** (2 / 3) for block in found]


def loss(block: Block, sizes: Sequence[int], matter: Matter) -> float:
    """Rows that a block's noise misplaces in its tables at ε = 1: a coordinate of d has E|x| = (d + 1)/2 (d = 1: 1)."""
    return sum(map(matter.of, block.tables)) * block.entries(sizes) * (len(block.tables) + 1) / 4


def dimensions(table: Table, sizes: Sequence[int]) -> int:
    """Of a table's interaction."""
    return math.prod(sizes[j] - 1 for j in table)


def shares_of(weight: Sequence[float]) -> list[Fraction]:
    """Whole millionths of the largest, at least one; they sum to 1 exactly."""
    units = [max(1, round(10**6 * each / max(weight))) for each in weight]
    return [Fraction(unit, sum(units)) for unit in units]


def errors(tables: Sequence[Table], sizes: Sequence[int], allowance: Allowance, cost: float) -> np.ndarray:
    """Rows that the noise of each table misplaces, where so much is divided among them."""
    found = blocks(tables, sizes, allowance)
    weight = np.array(weights(found, sizes, Matter((1.0,) * len(sizes)), allowance))
    share, times = cost * weight / weight.sum(), (2 if allowance.replaced else 1) * allowance.rows
    if allowance.measure is PURE:
        each = {
            table: times * block.entries(sizes) * (len(block.tables) + 1) / 4 / part
            for block, part in zip(found, share.tolist(), strict=True)
            for table in block.tables
        }
        return np.array([each[table] for table in tables])
    found_errors: np.ndarray = MEAN_SIZE * times * np.array([dimensions(table, sizes) for table in tables]) / np.sqrt(2 * share)
    return found_errors


def division(domain: Domain, allowance: Allowance, asked: int | str | None, declared: Sequence[Table] = ()) -> Division:
    """From public inputs: how much margins get, and how many pairs are elected; 0: all are measured.

    Margins err by 1/√part under ρ and 1/part under ε, tables by what is left; the least sum has shares ∝ error^⅔ and error^½.
    """
    possible = candidates(domain)
    if not possible:
        return Division(Fraction(1), 0, 0.0)
    rows, cost = domain.expected_units or ASSUMED_ROWS, float(allowance.total) / len(allowance.served)
    first = float(margin_errors(domain, allowance, cost).mean())
    grouped, whole = grouped_sizes(domain, allowance, cost), is_whole(domain, allowance)
    second = _left(domain, domain.sizes if whole else grouped, allowance)
    power = 1 / 2 if allowance.measure is PURE else 2 / 3
    part = first**power / (first**power + second**power)
    noise = errors(possible, np.minimum(domain.sizes, TOLD).tolist(), allowance, cost * (1 - part)) / rows
    number = elected(domain, allowance, noise, cost * (1 - part), asked)
    number = min(number, len(set(possible).difference(declared)))  # what analyses need is measured, and not voted on
    told = 1.0
    if allowance.measure is PURE and (declared or whole and not number):
        told = TOLD_BY_TABLES if declared or grouped == list(domain.sizes) else TOLD_BY_NOISY_TABLES
    margins = min(max(Fraction(round(part * told * 1000), 1000), LEAST_PART), MOST_PART)
    again = 1 / (1 - part) if allowance.measure is PURE else 1 / math.sqrt(1 - part)
    return Division(margins, number, first / part ** (1 / power - 1) + second * again)


def is_whole(domain: Domain, allowance: Allowance) -> bool:
    """Whether tables are counted in all categories, if none is elected: under ε, where groups would save little noise and
    noise leaves at least half of what there is to be told.

    Then tables tell of margins too, by their sums; those of groups leave to margins alone how a group divides.
    """
    if allowance.measure is not PURE or not candidates(domain):
        return False
    cost = float(allowance.total) / len(allowance.served)
    whole, grouped = (_left(domain, sizes, allowance) for sizes in (domain.sizes, grouped_sizes(domain, allowance, cost)))
    return whole <= min(WHOLE * grouped, STRONGEST / DECAY / 2)  # the mean pair moves ∫ 0.25·e^(−5q) dq of the rows


def _left(domain: Domain, sizes: Sequence[int], allowance: Allowance) -> float:
    """What the noise of all pairs leaves wrong in the mean one, where attributes have so many categories or groups."""
    cost = float(allowance.total) / len(allowance.served)
    return float(left(errors(candidates(domain), sizes, allowance, cost) / (domain.expected_units or ASSUMED_ROWS)).mean())


def margin_errors(domain: Domain, allowance: Allowance, cost: float) -> np.ndarray:
    """The part of a pair's rows that the noise of its margins misplaces; noise beyond the rows is cut off."""
    rows, named = domain.expected_units or ASSUMED_ROWS, [(j,) for j, size in enumerate(domain.sizes) if size > 1]
    one = errors(named, domain.sizes, allowance, cost) / rows
    one = one / (1 + 2 * one)
    a, b = np.triu_indices(len(one), 1)
    both: np.ndarray = 1.2 * np.hypot(one[a], one[b])
    return both


def grouped_sizes(domain: Domain, allowance: Allowance, cost: float, declared: Iterable[Table] = ()) -> list[int]:
    """How many groups of its categories each attribute will have, about: of categories as frequent as Zipf's, 1, ½, ⅓, …"""
    whole = {j for table in declared for j in table}
    rows, number = domain.expected_units or ASSUMED_ROWS, len(candidates(domain))
    unit = 2 * float(errors([(0, 1)], (2, 2), allowance, cost)[0]) * number ** (1 if allowance.measure is PURE else 1 / 2)
    least = min(SIGMAS_PER_GROUP * unit / rows, 1 / FEWEST_GROUPS)
    return [
        size if size <= SMALL or j in whole else int(joined(zipf(size), least)[-1]) + 1 for j, size in enumerate(domain.sizes)
    ]


def left(noise: np.ndarray, first: float = 0.0, last: float | np.ndarray = 1.0) -> np.ndarray:
    """The integral of D·x/(D + x) over all pairs, or over a part of them, the strongest first: what noise x leaves wrong of a
    dependence D that falls off from pair to pair.
    """
    strong, weak = (STRONGEST * np.exp(-DECAY * place) for place in (first, np.asarray(last)))
    kept: np.ndarray = noise / DECAY * np.log((strong + noise) / (noise + weak))
    return kept


def elected(domain: Domain, allowance: Allowance, noise: np.ndarray, cost: float, asked: int | str | None) -> int:
    """How many pairs are elected: Σ D²/(D + x) over the strongest k is what they explain, where their noise x grows with k."""
    possible = len(noise)
    if asked is not None:
        return 0 if asked == "all" or int(asked) >= possible else int(asked)
    strength = STRONGEST * np.exp(-DECAY * (np.arange(possible) + 0.5) / possible)
    number = np.arange(1, possible + 1)
    if allowance.measure is PURE:
        x = number * elected_alone(domain, allowance, cost)
    else:
        x = noise.mean() * np.sqrt(number / possible / (1 - float(VOTES[allowance.measure.name])))
    few = explained(x)
    every = (strength**2 / (strength + noise.mean())).sum()
    best = int(np.argmax(few))
    if few[best] <= WORTH * every:
        return 0
    wanted = max(best + 1, FEWEST_ELECTED * len(domain.sizes))
    return wanted if wanted < possible else 0


def elected_alone(domain: Domain, allowance: Allowance, cost: float) -> float:
    """The part of the rows that the noise of an elected pair misplaces under ε, if it is the only one; of k each k times."""
    told = np.minimum(domain.sizes, TOLD)
    alone = [(told[a] if told[a] > 2 else 1) * (told[b] if told[b] > 2 else 1) / 2 for a, b in candidates(domain)]
    times, rows = (2 if allowance.replaced else 1) * allowance.rows, domain.expected_units or ASSUMED_ROWS
    return float(np.mean(alone)) * times / (cost * (1 - float(VOTES[allowance.measure.name]))) / rows


def explained(x: np.ndarray) -> np.ndarray:
    """Σ D²/(D + x) over the strongest k, for each k: D falls off exponentially, so that many pairs sum as their integral,
    (n/DECAY)·[D − x·ln(D + x)] between the ends; the midpoint rule errs by (DECAY/n)²/24 of it.
    """
    possible = len(x)
    if possible <= ADDED_UP:
        strength = STRONGEST * np.exp(-DECAY * (np.arange(possible) + 0.5) / possible)
        return np.array([(strength[:k] ** 2 / (strength[:k] + x[k - 1])).sum() for k in range(1, possible + 1)])
    weakest = STRONGEST * np.exp(-DECAY * np.arange(1, possible + 1) / possible)
    integral: np.ndarray = possible / DECAY * (STRONGEST - weakest - x * np.log((STRONGEST + x) / (weakest + x)))
    return integral
