"""What of a domain are places within places."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from schemas.spec.rules import Rule


class Placed:
    """A domain's geography, where it has one."""

    if TYPE_CHECKING:  # a domain has these
        attributes: Any
        rules: Any

    @cached_property
    def geographies(self) -> tuple[int, ...]:
        """The attribute whose categories are places within places, by its number; none or one."""
        return tuple(j for j, each in enumerate(self.attributes) if getattr(each, "geography", None) is not None)

    @property
    def coarser(self) -> tuple[str, ...]:
        """Levels of places above the finest, which is the attribute itself."""
        return tuple(level for place in self.geographies for level in self.attributes[place].geography.levels[:-1])

    @property
    def levels(self) -> tuple[str, ...]:
        """All of them, the attribute itself last; none where there is no geography."""
        return (*self.coarser, *(self.attributes[place].name for place in self.geographies))

    @property
    def coarsest(self) -> int:
        """The level, 1, 2, …, by which other members of households are counted: the coarsest that tells places apart, and never
        the finest.
        """
        named: tuple[tuple[str, ...], ...] = self.attributes[self.geographies[0]].geography.labels[:-1]
        return next((level for level, labels in enumerate(named, start=1) if len(labels) > 1), 1)

    @property
    def of_attributes(self) -> tuple[Rule, ...]:
        """The rules that name no coarser level of places."""
        return tuple(rule for rule in self.rules if not set(self.coarser).intersection(rule.never or ()))
