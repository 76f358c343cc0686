"""Where noise weakens what two attributes have in common by more than any interval knows, as the sets themselves tell.

A cell without records gets noise like any other, and what is left of it above nought are rows that nobody stands for. Between
attributes of little dependence that is as often too much as too little. Where many cells are empty that would not be without
dependence, such rows stand in all of them, and every set is wrong in the same direction (docs/lab/intervals.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from schemas.plan import NeededTable
from schemas.spec.domain import Domain
from steps_engine.analyses.seen import first_rows
from steps_engine.domain.records import codes_of

EMPTIED = 0.05  # of the rows: so many would stand in unsure cells, had two attributes nothing to do with each other
UNSURE = 0.01  # of the rows: so many stand in unsure cells all the same, which hold less in the mean than sets differ by


@dataclass(frozen=True)
class Weakened:
    """Two attributes, and the part of the rows in cells of theirs where sets do not agree that there is anybody: as many as
    independence would have there, and as many as stand there.
    """

    names: tuple[str, str]
    even: float
    unsure: float

    @property
    def told(self) -> bool:
        return self.even >= EMPTIED and self.unsure >= UNSURE

    def __str__(self) -> str:
        return (
            f"Measured, but {' and '.join(self.names)} leave many of their combinations empty, and noise does not: where sets "
            f"do not agree that there is anybody, they have {self.unsure:.1%} of the rows ({self.even:.0%} if the two had "
            "nothing to do with each other). That weakens what depends on both, and no interval knows of it."
        )


def weakened(needs: Sequence[NeededTable], domain: Domain, sets: Sequence[Any]) -> Weakened | None:
    """The pair of attributes in a needed table that is weakened most, if any is. Of large sets the first rows are looked at."""
    names = tuple(name for name in domain.names if any(name in table.of for table in needs))
    narrow = domain.model_copy(
        update={"attributes": tuple(domain.attributes[domain.index(name)] for name in names), "rules": (), "derived": ()}
    )
    codes = [codes_of(first_rows(records, names), narrow) for records in sets]
    pairs = sorted({pair for table in needs for pair in combinations(sorted(map(names.index, table.of)), 2)})
    found = (each for each in _found(codes, narrow, pairs) if each.told)
    return max(found, key=lambda each: each.even, default=None)


def _found(codes: Sequence[np.ndarray], domain: Domain, pairs: Sequence[tuple[int, int]]) -> Iterator[Weakened]:
    for a, b in pairs:
        shape = domain.sizes[a], domain.sizes[b]
        tables = [
            np.bincount(rows[:, a].astype(np.intp) * shape[1] + rows[:, b], minlength=shape[0] * shape[1]) for rows in codes
        ]
        yield Weakened((domain.names[a], domain.names[b]), *told(np.array(tables, dtype=float).reshape(-1, *shape)))


def told(tables: np.ndarray) -> tuple[float, float]:
    """Of the table of two attributes in every set: the part of the rows that independence would have in unsure cells, and has.

    >>> told(np.array([[[50, 0], [0, 50]], [[46, 4], [0, 50]]]))
    (0.26, 0.02)
    """
    mean, spread = tables.mean(axis=0), tables.std(axis=0, ddof=1)
    rows, unsure = max(float(mean.sum()), 1.0), mean < spread
    even = np.outer(mean.sum(axis=1), mean.sum(axis=0)) / rows
    return round(float(even[unsure].sum() / rows), 9), round(float(mean[unsure].sum() / rows), 9)
