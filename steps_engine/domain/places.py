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
from steps_engine.domain.nodes import Layer, Tree


@dataclass(frozen=True)
class Places:
    """The attribute of a domain whose categories are the finest places. Level 0 is all of them; 1, 2, … are the levels."""

    domain: Domain
    attribute: int

    @cached_property
    def geography(self) -> Geography:
        attribute = self.domain.attributes[self.attribute]
        assert isinstance(attribute, Categorical) and attribute.geography is not None
        return attribute.geography

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
    def sizes(self) -> tuple[int, ...]:
        """Places per level, level 0 included."""
        return (1, *map(len, self.geography.labels))

    @cached_property
    def _ancestors(self) -> tuple[np.ndarray, ...]:
        whole = np.zeros(self.sizes[-1], dtype=np.int64)
        return (whole, *(np.array(codes, dtype=np.int64) for codes in self.geography.ancestors))

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

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The attributes that are no place."""
        return tuple(j for j in range(len(self.domain.sizes)) if j != self.attribute)

    @cached_property
    def nation(self) -> Domain:
        """The same records without their place."""
        kept = tuple(self.domain.attributes[j] for j in self.others)
        derived = tuple(each for each in self.domain.derived if each.from_ != self.name)
        return self.domain.model_copy(update={"attributes": kept, "derived": derived})

    def at_level(self, level: int) -> Domain:
        """The same records with the place of a coarser level in place of the finest."""
        labels = self.geography.labels[level - 1]
        place = Categorical(name=self.levels[level - 1], kind="categorical", categories=labels)
        attributes = (*self.domain.attributes[: self.attribute], place, *self.domain.attributes[self.attribute + 1 :])
        derived = tuple(each for each in self.domain.derived if each.from_ != self.name)
        return self.domain.model_copy(update={"attributes": attributes, "derived": derived})


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
    levels = tuple(
        Categorical.model_construct(name=each.derived.name, kind="categorical", categories=each.categories)
        for each in domain.followings[: len(places_of(domain).levels) - 1]
    )
    plain = domain.attributes[place].model_copy(update={"geography": None})
    attributes = (*domain.attributes[:place], plain, *domain.attributes[place + 1 :], *levels)
    return domain.model_copy(update={"attributes": attributes})
