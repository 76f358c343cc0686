"""Places within places as arrays: a tree of public places, one layer per level, and the domains beside and above it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.errors import SpecError
from schemas.spec.attributes import Categorical
from schemas.spec.domain import Domain
from schemas.spec.geography import Geography
from schemas.spec.rules import Rule
from steps_engine.domain.cells import Component, Space
from steps_engine.domain.nodes import Layer, Tree


@dataclass(frozen=True)
class Places:
    """The attribute of a domain whose categories are the finest places. Level 0 is all of them; 1, 2, … are the levels.

    Where a place may be missing, what is not known is one more place of every level, the last, and lies in that of the level
    above.
    """

    domain: Domain
    attribute: int

    @property
    def _place(self) -> Categorical:
        attribute = self.domain.attributes[self.attribute]
        assert isinstance(attribute, Categorical)
        return attribute

    @cached_property
    def geography(self) -> Geography:
        assert self._place.geography is not None
        return self._place.geography

    @property
    def name(self) -> str:
        return self.domain.names[self.attribute]

    @property
    def levels(self) -> tuple[str, ...]:
        return self.geography.levels

    @property
    def finest(self) -> int:
        return len(self.levels)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The places of every level, coarsest first."""
        beyond = self._place.labels[self._place.present :]
        return tuple((*labels, *beyond) for labels in self.geography.labels)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Places per level, level 0 included."""
        return (1, *map(len, self.labels))

    @cached_property
    def _ancestors(self) -> tuple[np.ndarray, ...]:
        """By level, of every finest place: what is missing is the last of each, so that numbers never fall."""
        whole, beyond = np.zeros(self.sizes[-1], dtype=np.int64), self._place.size - self._place.present
        known = zip(self.geography.ancestors, self.geography.labels, strict=True)
        return (whole, *(np.array([*codes, *[len(labels)] * beyond], dtype=np.int64) for codes, labels in known))

    def at(self, level: int) -> np.ndarray:
        """Of every finest place the one of this level in which it lies."""
        return self._ancestors[level]

    def within(self, level: int, above: int) -> np.ndarray:
        """Of every place of a level the one of a coarser level in which it lies."""
        lies: np.ndarray = self.at(above)[np.flatnonzero(np.diff(self.at(level), prepend=-1))]
        return lies

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.domain, ((self.attribute,),), tuple(self._layer(level) for level in range(1, self.finest + 1)))

    def _layer(self, level: int) -> Layer:
        places = np.arange(self.sizes[level])
        cell = places if level == self.finest else np.full(len(places), -1)
        return Layer(self.within(level, level - 1), np.zeros(len(places), dtype=np.int32), places, cell)

    def down_to(self, level: int) -> Tree:
        return Tree(self.domain, self.tree.splits, self.tree.layers[:level])

    def has_level(self, names: Iterable[str]) -> bool:
        return bool(set(self.levels).intersection(names))

    def without(self, names: Iterable[str]) -> tuple[str, ...]:
        """The attributes among names of these and of levels."""
        return tuple(name for name in names if name not in self.levels)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The attributes that are no place."""
        return tuple(j for j in range(len(self.domain.sizes)) if j != self.attribute)

    @cached_property
    def nation(self) -> Domain:
        """The same records without their place."""
        kept = tuple(self.domain.attributes[j] for j in self.others)
        derived = tuple(each for each in self.domain.derived if each.from_ != self.name)
        return self.domain.model_copy(update={"attributes": kept, "derived": derived, "rules": self._elsewhere})

    @property
    def _elsewhere(self) -> tuple[Rule, ...]:
        """The rules that name no place."""
        ruled = zip(self.domain.rules, self.domain.zeros, strict=True)
        return tuple(rule for rule, zero in ruled if self.attribute not in zero.places)

    @cached_property
    def tied(self) -> Component | None:
        """What rules tie to places, with all combinations that are allowed, by the finest place; None: nothing."""
        return next((each for each in Space(self.domain).components if self.attribute in each.attributes), None)

    def allowed(self, level: int, of: tuple[int, ...]) -> np.ndarray | None:
        """Places of a level × categories of attributes: which may meet somewhere in the place; None: all may."""
        if self.tied is None or not set(of).intersection(self.tied.attributes):
            return None
        free = tuple(axis for axis, j in enumerate(self.tied.attributes) if j not in (self.attribute, *of))
        kept = [j for j in self.tied.attributes if j in (self.attribute, *of)]
        finest = np.moveaxis(self.tied.completable(free), kept.index(self.attribute), 0)
        found: np.ndarray = np.logical_or.reduceat(finest, np.flatnonzero(np.diff(self.at(level), prepend=-1)), axis=0)
        shape = [self.domain.sizes[j] if j in kept else 1 for j in of]
        return np.broadcast_to(found.reshape(-1, *shape), (len(found), *(self.domain.sizes[j] for j in of)))

    def at_level(self, level: int) -> Domain:
        """The same records with the place of a coarser level in place of the finest."""
        labels = self.geography.labels[level - 1]
        place = Categorical(name=self.levels[level - 1], kind="categorical", categories=labels, missing=self._place.missing)
        attributes = (*self.domain.attributes[: self.attribute], place, *self.domain.attributes[self.attribute + 1 :])
        derived = tuple(each for each in self.domain.derived if each.from_ != self.name)
        return self.domain.model_copy(update={"attributes": attributes, "derived": derived, "rules": self._elsewhere})


def places_of(domain: Domain) -> Places:
    """The places of a domain that has a geography."""
    if not domain.geographies:
        raise SpecError(
            "decomposition: places needs an attribute with a geography, such as geography: {levels: [region, tract], table: "
            "places.csv}; without one, decomposition: pairs measures the same."
        )
    return Places(domain, domain.geographies[0])


def with_levels(domain: Domain) -> Domain:
    """The domain that analyses name: coarser levels of places stand behind the attributes, as one of them each."""
    if not domain.geographies:
        return domain
    (place,) = domain.geographies
    levels = (each.attribute for each in domain.followings[: len(domain.coarser)])
    plain = domain.attributes[place].model_copy(update={"geography": None})
    attributes = (*domain.attributes[:place], plain, *domain.attributes[place + 1 :], *levels)
    return domain.model_copy(update={"attributes": attributes, "rules": domain.of_attributes})
