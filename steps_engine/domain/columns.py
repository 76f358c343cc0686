"""What a question may name: the attributes of a release, and those that follow from one of them by a public table.

What follows was not counted and need not be: a table by it is a sum over the categories of its source, with the variances of
such sums. So a question by any columns is one by their sources, the categories of each in classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.spec.attributes import Attribute
from schemas.spec.derived import Following
from schemas.spec.domain import Domain

MOST_NAMED = 8


@dataclass(frozen=True)
class Column:
    """A column of the synthetic sets: an attribute, or what follows from one; `codes` are its own for every code of that."""

    attribute: Attribute
    source: int
    codes: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        """Of every category of the source."""
        return tuple(self.attribute.labels[code] for code in self.codes)


def columns_of(domain: Domain) -> list[Column]:
    """Attributes, then what follows from them; missing where nothing does."""
    own = [Column(attribute, j, np.arange(attribute.size)) for j, attribute in enumerate(domain.attributes)]
    return [*own, *map(_following, domain.followings)]


def _following(following: Following) -> Column:
    return Column(following.attribute, following.place, np.array(following.filled))


def column_of(name: str, domain: Domain) -> Column:
    """The nearest name where there is none."""
    found = {column.attribute.name: column for column in columns_of(domain)}
    if name in found:
        return found[name]
    raise SpecError(f"there is no attribute {name!r}; {meant(name, list(found), 'the release has')}")


def with_derived(domain: Domain) -> Domain:
    """The domain of a set's columns: what is derived stands behind the attributes, as one of them."""
    if not domain.followings:
        return domain
    plain = {j: domain.attributes[j].model_copy(update={"geography": None}) for j in domain.geographies}
    own = (plain.get(j, each) for j, each in enumerate(domain.attributes))
    attributes = (*own, *(each.attribute for each in domain.followings))
    return domain.model_copy(update={"attributes": attributes, "derived": (), "rules": domain.of_attributes})


def some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:MOST_NAMED]) + (f", … ({len(listed)} in all)" if len(listed) > MOST_NAMED else "")
