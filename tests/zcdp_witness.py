"""A method's own code on two neighbours, with every draw written down: what it was given on each side, and at which scale.

The mechanisms of the registry stand in for their draws. Elections are held for real on the one side and repeated on the other, so
that both have one structure; so are margins on which later draws depend, and tables by which some are chosen to be measured again. A count's "noise" is the number of its draw, from which published tables tell draw and exact
count or contrast apart. Whatever else differs between the two sides would be published without noise, and is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting import mechanisms
from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, MAX_NORM
from steps_engine.domain.counting import Counts
from steps_engine.methods.pairs import measure
from steps_engine.methods.pairs.structure import Margins, Structure, Table
from steps_engine.methods.registry import method_named
from steps_engine.noise import Randomness, SeededRandomness
from tests.zcdp_audit import Count, Election, Evidence, Vector

TAG = 40  # bits below a draw's number


@dataclass(frozen=True)
class Ballot:
    """What an election was given."""

    mechanism: str
    epsilon: Fraction
    spread: Fraction
    scores: np.ndarray
    eligible: np.ndarray


@dataclass
class Side:
    """What was drawn on one of two neighbours."""

    repeats: list[np.ndarray] | None = None  # the winners of the other side
    seen: list[Margins] = field(default_factory=list)  # what later draws see of those measured first: the other side's
    margins: list[Margins] = field(default_factory=list)
    seen_tables: list[tuple[Structure, list[np.ndarray]]] = field(default_factory=list)  # and of tables measured first
    tables: list[tuple[Structure, list[np.ndarray]]] = field(default_factory=list)
    counts: list[tuple[str, Fraction, int]] = field(default_factory=list)
    ballots: list[Ballot] = field(default_factory=list)
    winners: list[np.ndarray] = field(default_factory=list)

    def measure_margins(self, *arguments: Any) -> Margins:
        """Those of this side are kept, and the first side's go on: the outcome that both are compared along."""
        self.margins.append(MEASURED(*arguments))
        return self.seen[0] if self.seen else self.margins[0]

    def chosen(self, structure: Structure, noisy: list[np.ndarray], number: int) -> tuple[Table, ...]:
        """By the first side's tables: a choice that follows from them alone is the same on both."""
        self.tables.append((structure, [each.copy() for each in noisy]))
        return CHOSEN(*(self.seen_tables or self.tables)[0], number)

    def number(self, mechanism: str, scale: Fraction, size: int, randomness: Randomness) -> np.ndarray:
        """In place of noise."""
        self.counts.append((mechanism, scale, size))
        return np.full(size, len(self.counts) << TAG)

    def vectors(self, scale: Fraction, dimension: int, copies: int, randomness: Randomness) -> np.ndarray:
        """In place of joint noise: a number for each vector."""
        return np.stack([self.number(MAX_NORM.name, scale, dimension, randomness) for _ in range(copies)])

    def elect(
        self,
        mechanism: str,
        scores: np.ndarray,
        eligible: np.ndarray,
        epsilon: Fraction,
        spread: Fraction,
        randomness: Randomness,
    ) -> np.ndarray:
        self.ballots.append(Ballot(mechanism, epsilon, spread, np.array(scores), np.array(eligible)))
        if self.repeats is None:
            self.winners.append(ELECTED[mechanism](scores, eligible, epsilon, spread, randomness))
        else:
            self.winners.append(self.repeats[len(self.winners)])
        return self.winners[-1]


MEASURED, CHOSEN = measure.measure_margins, measure.chosen
ELECTED = {name: mechanism.elect for name, mechanism in ELECTIONS.items()}


@contextmanager
def witness(side: Side) -> Iterator[None]:
    """The registered mechanisms report to `side`."""
    before = dict(COUNTS), dict(ELECTIONS)

    def numbering(name: str):
        return lambda scale, size, randomness: side.number(name, scale, size, randomness)

    def electing(name: str):
        return lambda *ballot: side.elect(name, *ballot)

    measure.measure_margins, measure.chosen = side.measure_margins, side.chosen
    mechanisms.MAX_NORM = replace(MAX_NORM, draw=side.vectors)
    COUNTS.update({name: replace(mechanism, draw=numbering(name)) for name, mechanism in COUNTS.items()})
    ELECTIONS.update({name: replace(mechanism, elect=electing(name)) for name, mechanism in ELECTIONS.items()})
    try:
        yield
    finally:
        measure.measure_margins, measure.chosen = MEASURED, CHOSEN
        mechanisms.MAX_NORM = MAX_NORM
        COUNTS.update(before[0])
        ELECTIONS.update(before[1])


@dataclass(frozen=True)
class Met:
    """A draw of the plan, and what the two sides differ by where it was made."""

    draw: Draw
    evidence: tuple[Evidence, ...]


def met(of: Domain, plan: Plan, one: Counts, other: Counts, seed: int) -> list[Met]:
    """Every draw that tells the neighbours apart, along one outcome of the elections."""
    sides = Side(), Side()
    tables = []
    for side, counts in zip(sides, (one, other), strict=True):
        with witness(side):
            tables.append(_published(of, plan, counts, SeededRandomness(("witness", seed))))
        sides[1].repeats, sides[1].seen, sides[1].seen_tables = sides[0].winners, sides[0].margins, sides[0].tables
    if not tables[0][0].equals(tables[1][0]):
        raise AssertionError("the structure differs though all elections had the same winners")
    rows = int(one.count.sum() - other.count.sum())
    drawn = [_drawn(side, noisy) for side, (_, noisy) in zip(sides, tables, strict=True)]
    return [*_counts(of, plan, sides, *drawn, rows), *_elections(of, plan, sides)]


def _published(of: Domain, plan: Plan, counts: Counts, randomness: Randomness) -> tuple[pa.Table, pa.Table]:
    method = method_named(plan.decomposition)
    structure = method.build(of, plan, counts if plan.structure_is_drawn else None, randomness)
    return structure, method.sanitize(of, plan, counts, structure, randomness)


def _drawn(side: Side, noisy: pa.Table) -> np.ndarray:
    """All whole numbers that were drawn, those of margins first."""
    margins = [values.ravel() for each in side.margins for values in (each.total, *each.contrasts)]
    return np.concatenate([*margins, integers_of(noisy)]).astype(np.int64)


def integers_of(table: pa.Table) -> np.ndarray:
    """All whole numbers of a table, column by column."""
    return np.concatenate([column.to_numpy() for column in table.columns if pa.types.is_integer(column.type)])


def number_of(published: np.ndarray) -> np.ndarray:
    """The draw that each number has its noise from; what it has beside that is smaller, and may be below nought."""
    return published + (1 << TAG - 1) >> TAG


def _counts(
    of: Domain, plan: Plan, sides: tuple[Side, Side], first: np.ndarray, second: np.ndarray, rows: int
) -> Iterator[Met]:
    """By the number of the draw that each published count has; a draw that is not published is that of all rows."""
    if sides[0].counts != sides[1].counts:
        raise AssertionError("the sides make different draws")
    number, shift = number_of(first), first - second
    if (number_of(second) != number).any() or shift[number == 0].any():
        raise AssertionError("a number is published without noise")
    for call, (mechanism, scale, size) in enumerate(sides[0].counts, start=1):
        shifts = shift[number == call] if (number == call).any() or not size else np.array([rows])
        if shifts.any():
            yield Met(_draw(of, plan, mechanism, scale), _evidence(mechanism, scale, shifts))


def _evidence(mechanism: str, scale: Fraction, shifts: np.ndarray) -> tuple[Evidence, ...]:
    """Counts have noises of their own; a vector has one, and tells as much as its largest coordinate."""
    if mechanism == MAX_NORM.name:
        return (Vector(scale, tuple(shifts.tolist())),)
    return tuple(Count(mechanism, scale, int(s)) for s in shifts[shifts != 0])


def _elections(of: Domain, plan: Plan, sides: tuple[Side, Side]) -> Iterator[Met]:
    """Nodes whose eligible scores differ."""
    for one, other in zip(sides[0].ballots, sides[1].ballots, strict=True):
        if (one.eligible != other.eligible).any():
            raise AssertionError("who may be elected depends on records")
        scale = one.spread / one.epsilon
        evidence = tuple(
            Election(one.mechanism, one.spread, scale, tuple(a[may]), tuple(b[may]))
            for a, b, may in zip(one.scores, other.scores, one.eligible, strict=True)
            if (a[may] != b[may]).any()
        )
        if evidence:
            yield Met(_draw(of, plan, one.mechanism, scale), evidence)


def _draw(of: Domain, plan: Plan, mechanism: str, scale: Fraction) -> Draw:
    """The draw of the plan that was made; several of one scale cost the same."""
    found = {
        draw.cost: draw
        for draw in plan.draws
        if draw.mechanism == mechanism and scale in {draw.scale * square for square in _squares(of, draw)}
    }
    if len(found) != 1:
        raise AssertionError(f"{len(found)} costs for a draw of {mechanism} at {scale}")
    return next(iter(found.values()))


def _squares(of: Domain, draw: Draw) -> set[int]:
    """Of what a draw may measure, by how much a row changes it in L2, squared: K(K − 1) for each of its axes beyond K = 2."""
    if draw.of is None or draw.mechanism != "discrete_gaussian":
        return {1}
    tables = list(combinations(of.names, 2)) if isinstance(draw.of, str) else [draw.of]
    size = dict(zip(of.names, of.sizes, strict=True))
    return {math.prod(size[name] * (size[name] - 1) for name in table if size[name] > 2) for table in tables}
