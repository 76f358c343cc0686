"""Checks of the synthetic records: every row lies in the domain and breaks no rule, and the cells have the rows they should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.spec.attributes import Attribute, Categorical, Ordinal
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space


def record_problems(domain: Domain, records: pa.Table, said: tuple[np.ndarray, np.ndarray] | None) -> Iterator[str]:
    """`said` are the cells that may have rows, increasing, and how many each has; None where the tables do not say."""
    codes, space = coded(records, domain), Space(domain)
    if (codes < 0).any():
        outside = [name for j, name in enumerate(domain.names) if (codes[:, j] < 0).any()]
        yield f"has values outside the domain: {', '.join(outside)}"
        return
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


def coded(records: pa.Table, domain: Domain) -> np.ndarray:
    """Rows × attributes of category codes, -1 for a value that the domain does not have."""
    codes = np.empty((records.num_rows, len(domain.names)), dtype=np.int64)
    for j, attribute in enumerate(domain.attributes):
        codes[:, j] = _codes(records[attribute.name], attribute)
    return codes


def _codes(column: pa.ChunkedArray, attribute: Attribute) -> np.ndarray:
    """Category codes of a published column, -1 for a value that the domain does not have."""
    missing = -1 if attribute.missing_code is None else attribute.missing_code
    if isinstance(attribute, Categorical | Ordinal):
        codes = pc.index_in(column.cast(pa.string()), pa.array(attribute.categories)).fill_null(-1).to_numpy()
    else:
        kind = {"integer": pa.int64(), "numeric": pa.float64(), "date": pa.int32()}[attribute.kind]
        values = column.cast(kind).fill_null(0).to_numpy()
        edges = attribute.edge_values
        top = values <= edges[-1] if attribute.kind == "numeric" else values < edges[-1]
        codes = np.minimum(np.searchsorted(edges, values, side="right") - 1, attribute.present - 1)
        codes = np.where((values >= edges[0]) & top, codes, -1)
    return np.where(column.is_null().to_numpy(), missing, codes)
