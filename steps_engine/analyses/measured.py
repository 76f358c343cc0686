"""What a plan measures, and with which noise: of every table's interaction, the part that it adds to smaller tables.

A table of counts is the sum of the interactions of all its subsets, each spread evenly over the attributes that it lacks; a
table is measured if all of them are. The noise of an interaction is taken as isotropic in its space: of the same variance in
every direction, and uncorrelated from one interaction to the next. Of elected tables nobody knows yet which they will be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from schemas.plan import Draw, Plan, Table
from schemas.spec.domain import Domain
from schemas.tables import PERSON
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.mechanisms import GAUSSIAN, contrast_variance
from steps_engine.domain.cells import Space
from steps_engine.domain.linked import measured_members
from steps_engine.domain.places import Places, places_of, with_levels
from steps_engine.domain.settled import settling
from steps_engine.inference.contrasts import is_counted, residual_variance
from steps_engine.inference.place_tables import Of, is_of_places, level_errors, names_of, of_tree, place_tables

Names = frozenset[str]
BY_PLACE = ("places", "households")  # methods that count levels of places
ONE_TREE = frozenset({"tree", "flat", "uh"})  # methods whose layers refine each other, down to cells of all attributes


@dataclass(frozen=True)
class Measured:
    """A plan, read as noise in interactions."""

    domain: Domain  # levels of places among its attributes
    plan: Plan
    places: Places | None = None
    rows_of: str | None = None  # of linked tables: None, of household rows; or of other members

    @classmethod
    def of(cls, domain: Domain, plan: Plan) -> Measured:
        places = places_of(domain) if domain.geographies and plan.decomposition in BY_PLACE else None
        return cls(with_levels(domain), plan, places)

    def part(self, of: Iterable[str]) -> Measured:
        """Of linked tables the part whose rows have these attributes: household rows, or those of other members."""
        return self if self.domain.tables is None or set(of) <= set(self.domain.names) else self.members

    @cached_property
    def members(self) -> Measured:
        counted = self.domain.counted if self.places is None else measured_members(self.places.domain)
        return Measured(counted, self.plan, rows_of=PERSON)

    @property
    def _draws(self) -> tuple[Draw, ...]:
        return tuple(draw for draw in self.plan.draws if draw.rows_of == self.rows_of)

    def variance(self, of: Iterable[str]) -> float | None:
        """Of the noise in the interaction of some attributes, in one direction and one measurement; None: not measured."""
        wanted = self._with_choice(of)
        if self.places is not None and wanted.intersection(self.places.levels):
            return self._by_place(wanted, self.places)
        found = self._contrasts.get(wanted) if self._contrasts else self._from_layers(wanted)
        return self._from_rules(wanted) if found is None else found

    def _by_place(self, of: Names, places: Places) -> float | None:
        """Of places of one level, by themselves or by attributes: what least squares over levels leaves in the mean."""
        levels, others = sorted(of.intersection(places.levels)), sorted(map(places.domain.index, of.difference(places.levels)))
        return self._level_errors.get((tuple(others), places.levels.index(levels[0]) + 1)) if len(levels) == 1 else None

    @cached_property
    def _level_errors(self) -> dict[tuple[Of, int], float]:
        return level_errors(self.places, place_tables(self.places, self.plan)) if self.places is not None else {}

    def _from_rules(self, of: Names) -> float | None:
        """Of an interaction that rules settle: it is less the sum of the smaller ones where no row can be, and so is its noise.

        Each smaller one that has the attributes which are not tied is spread evenly over those that it lacks.
        """
        tied = frozenset(self.domain.names[j] for j in settling(self._space, tuple(sorted(map(self.domain.index, of)))))
        noise = {part: self.variance(part) for part in parts(of) if of - tied <= part < of}
        if not tied or None in noise.values():
            return None
        return sum(variance / math.prod(self.sizes(of - part)) for part, variance in noise.items() if variance is not None)

    def holds(self, table: Iterable[str]) -> bool:
        """Whether every interaction within a table is measured."""
        return all(self.variance(part) is not None for part in parts(self._with_choice(table)))

    def share(self, tables: Sequence[Iterable[str]]) -> Fraction:
        """The part of the budget that pays for draws of interactions within these tables; of a tree, all of it."""
        if not self._contrasts:
            return Fraction(int(any(map(self.holds, tables))))
        wanted = {part for table in tables for part in parts(self._with_choice(table))}
        paid = sum((draw.cost for draw in self._draws if wanted.intersection(self._tables(draw))), Fraction())
        return paid / ways_of(self.plan.draws).dearest

    def _tables(self, draw: Draw) -> set[Names]:
        """The tables that a draw is of: those that it names, or one of places."""
        if self.places is None or not is_of_places(draw):
            return set(map(frozenset, draw.tables))
        named = names_of(self.places, of_tree(self.places, draw.tree) or ())
        return {frozenset((*named, self.places.levels[draw.layer - 1]))}

    def sizes(self, of: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.domain.sizes[self.domain.index(name)] for name in of)

    def _with_choice(self, of: Iterable[str]) -> Names:
        """An attribute of one category adds nothing."""
        return frozenset(name for name in of if self.sizes([name]) > (1,))

    @cached_property
    def _space(self) -> Space:
        return Space(self.domain)

    @cached_property
    def _contrasts(self) -> dict[Names, float]:
        """Where interactions are measured as such: the variance of each."""
        found: dict[Names, float] = {}
        for draw in self._draws:
            for of in draw.tables if draw.set == self.plan.served[0] else ():
                for names, variance in self._told(draw, of).items():
                    found[names] = min(variance, found.get(names, math.inf))
        return found

    def _told(self, draw: Draw, of: Table) -> dict[Names, float]:
        """The interaction of a table; where its counts are measured, those of all its parts, whose cells are sums of counts."""
        if not is_counted(of, draw.mechanism == GAUSSIAN.name):
            return {frozenset(of): self._contrast(draw, of)} if of else {}
        variance, whole = contrast_variance(draw, self.sizes(of)), frozenset(of)
        return {names: variance * math.prod(self.sizes(whole - names)) for names in parts(whole)}

    def _contrast(self, draw: Draw, of: Table) -> float:
        """A cell of a residual has the share Π (1 − 1/K) of the variance of each direction."""
        sizes = self.sizes(of)
        cell = contrast_variance(draw, sizes) * residual_variance(sizes, draw.mechanism == GAUSSIAN.name)
        return cell / math.prod(1 - 1 / size for size in sizes)

    def _from_layers(self, of: Names) -> float | None:
        """Where nodes of one tree are counted: the noise of as many nodes as make a cell, in the layer that has least."""
        cells, found = math.prod(self.sizes(of)), list[float]()
        for nodes, error, held in self._layers:
            if of <= held:
                found.append(error**2 * nodes / cells)
        return min(found, default=None)

    @cached_property
    def _layers(self) -> list[tuple[int, float, Names]]:
        """(nodes, standard error, attributes) of the layers whose nodes are known to hold combinations of these attributes."""
        plan, held, found = self.plan, set[str](), list[tuple[int, float, Names]]()
        stops = plan.election is not None and plan.election.stop
        if plan.decomposition not in ONE_TREE or stops:
            return []
        for layer in plan.layers:
            held.update(layer.attributes or ())
            is_last = layer is plan.layers[-1]
            if layer.attributes is not None or is_last:
                found.append((layer.nodes, layer.expected_error, frozenset(self.domain.names if is_last else held)))
        return found[:-1] if any(draw.threshold is not None for draw in plan.draws) else found


def parts(names: Names) -> Iterator[Names]:
    """Every subset but the empty one.

    >>> sorted(map(sorted, parts(frozenset("ab"))))
    [['a'], ['a', 'b'], ['b']]
    """
    return (frozenset(part) for size in range(1, len(names) + 1) for part in combinations(sorted(names), size))
