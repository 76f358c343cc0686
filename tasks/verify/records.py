"""Checks of the synthetic records: every row lies in the domain and breaks no rule, and the cells have the rows they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.spec.domain import Domain
from schemas.spec.rules import Conditional
from steps_engine.domain.blocks import blocks_of
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import most_rows
from steps_engine.domain.records import codes_of, disordered, not_following
from steps_engine.domain.rules import orders_of
from steps_engine.domain.weights import not_weighing

STANDARD_ERRORS = 10  # beyond, by no chance that matters, whatever the law of the noise


def record_problems(
    domain: Domain,
    records: Any,
    said: tuple[np.ndarray, np.ndarray] | None,
    conditionals: Sequence[Conditional] = (),
) -> Iterator[str]:
    """`said` are the cells that may have rows, increasing, and how many each has; None where the tables do not say.

    `conditionals` are comparisons of some rows, whose values are looked at as those of all rows are.
    Records may be a table, or one that is not in memory: every problem is told once, whichever blocks have it.
    """
    seen = _Seen(Space(domain), said, orders_of(domain, conditionals))
    for block in blocks_of(records):
        seen.look_at(block)
    if seen.outside:
        yield f"has values outside the domain: {', '.join(name for name in domain.names if name in seen.outside)}"
        return
    yield from seen.sentences
    if said is None:
        if not seen.allowed:
            yield "has a row that breaks a rule"
    elif not seen.allowed:
        yield "has a row that breaks a rule, or lies in a cell that its whole counts do not have"
    elif not np.array_equal(seen.rows, said[1]):
        yield "does not have as many rows in each cell as its whole counts say"


class _Seen:
    """What the blocks of a set were found to hold."""

    def __init__(self, space: Space, said: tuple[np.ndarray, np.ndarray] | None, orders: Sequence[Conditional]) -> None:
        self.space, self.domain, self.orders = space, space.domain, orders
        self.held = said[0] if said is not None else None
        self.rows = np.zeros(0 if self.held is None else len(self.held), dtype=np.int64)
        self.outside, self.sentences, self.allowed = set[str](), dict[str, None](), True

    def look_at(self, block: pa.Table) -> None:
        codes, names = codes_of(block, self.domain), self.domain.names
        self.outside |= {name for j, name in enumerate(names) if (codes[:, j] < 0).any()}
        if self.outside:
            return
        for name in not_following(block, codes, self.domain):
            self.sentences[f"has a row whose {name} does not follow from its other attributes by the domain's table"] = None
        for name in not_weighing(block, self.domain):
            self.sentences[f"has a row whose {name} is not the step of the domain's weights"] = None
        for compared in disordered(block, codes, self.domain, self.orders):
            self.sentences[f"has a row whose {names[compared.first]} and {names[compared.second]} break a rule"] = None
        parts = self.space.components
        self.allowed &= all(part.allowed[tuple(codes[:, j] for j in part.attributes)].all() for part in parts)
        if self.held is not None and self.allowed:
            cells = self.space.cells(codes)
            place = np.minimum(np.searchsorted(self.held, cells), len(self.held) - 1)
            self.allowed &= not (self.held[place] != cells).any()
            self.rows += np.bincount(place, minlength=len(self.held))


def number_problems(domain: Domain, rows: int, told: float, error: float) -> Iterator[str]:
    """A set has as many rows as the noisy counts tell, within ten standard errors, and no more than a set may have."""
    told = min(max(told, 0.0), most_rows(domain)) if error else told
    if abs(rows - told) > 2 + STANDARD_ERRORS * error:
        yield f"has {rows:,} rows; the noisy counts tell of {told:,.0f}, with a standard error of {error:,.0f}"
