"""Checks of the synthetic records: every row lies in the domain and breaks no rule, and the cells have the rows they should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import most_rows
from steps_engine.domain.records import codes_of, disordered, not_following

STANDARD_ERRORS = 10  # beyond, by no chance that matters, whatever the law of the noise


def record_problems(domain: Domain, records: pa.Table, said: tuple[np.ndarray, np.ndarray] | None) -> Iterator[str]:
    """`said` are the cells that may have rows, increasing, and how many each has; None where the tables do not say."""
    codes, space = codes_of(records, domain), Space(domain)
    if (codes < 0).any():
        outside = [name for j, name in enumerate(domain.names) if (codes[:, j] < 0).any()]
        yield f"has values outside the domain: {', '.join(outside)}"
        return
    for name in not_following(records, codes, domain):
        yield f"has a row whose {name} does not follow from its other attributes by the domain's table"
    for compared in disordered(records, codes, domain):
        yield f"has a row whose {domain.names[compared.first]} and {domain.names[compared.second]} break a rule"
    allowed = all(part.allowed[tuple(codes[:, j] for j in part.attributes)].all() for part in space.components)
    if said is None:
        if not allowed:
            yield "has a row that breaks a rule"
        return
    (held, whole), cells = said, space.cells(codes)
    place = np.minimum(np.searchsorted(held, cells), len(held) - 1)
    if not allowed or (held[place] != cells).any():
        yield "has a row that breaks a rule, or lies in a cell that its whole counts do not have"
    elif not np.array_equal(np.bincount(place, minlength=len(held)), whole):
        yield "does not have as many rows in each cell as its whole counts say"


def number_problems(domain: Domain, rows: int, told: float, error: float) -> Iterator[str]:
    """A set has as many rows as the noisy counts tell, within ten standard errors, and no more than a set may have."""
    told = min(max(told, 0.0), most_rows(domain)) if error else told
    if abs(rows - told) > 2 + STANDARD_ERRORS * error:
        yield f"has {rows:,} rows; the noisy counts tell of {told:,.0f}, with a standard error of {error:,.0f}"
