"""Every pair of a release's attributes: measured and how strongly, tied through others, or taken as independent."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from schemas.spec.domain import Domain
from steps_engine.inference.strength import Beyond, clear_from
from steps_engine.methods.views import Pair

Two = tuple[int, int]  # attributes by their number in the domain, the smaller first


def pairs_of(domain: Domain, measured: Mapping[Two, Beyond | None]) -> tuple[Pair, ...]:
    """Pairs in the domain's order. `measured` has the strength of each that some count tells of; attributes that others tie
    together are those that a chain of measured pairs connects.
    """
    chosen = [j for j, size in enumerate(domain.sizes) if size > 1]
    group = _connected(len(domain.sizes), measured)
    found = []
    for i, j in itertools.combinations(chosen, 2):
        names, beyond = (domain.names[i], domain.names[j]), measured.get((i, j))
        if (i, j) not in measured:
            found.append(Pair(*names, "through others" if group[i] == group[j] else "independent"))
            continue
        clear = beyond is not None and beyond.strength >= clear_from(beyond.freedom, len(measured))
        found.append(Pair(*names, "measured", beyond and beyond.strength, clear))
    return tuple(found)


def _connected(number: int, measured: Mapping[Two, Beyond | None]) -> list[int]:
    """For each attribute the name of its group: attributes that a chain of measured pairs connects share one."""
    group = list(range(number))
    for i, j in measured:
        if group[i] != group[j]:
            group = [group[i] if each == group[j] else each for each in group]
    return group
