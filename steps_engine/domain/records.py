"""Synthetic records as category codes again: what a published table holds, by the public domain alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.spec.attributes import Attribute, Categorical, Ordinal
from schemas.spec.domain import Domain


def codes_of(records: pa.Table, domain: Domain) -> np.ndarray:
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
