"""The records as a supplier's own expectations look at them: columns and values as the files have them. CONFIDENTIAL."""

from __future__ import annotations

import duckdb
import pandas as pd

from schemas.expectations import AS_WRITTEN
from schemas.spec.domain import Domain
from schemas.supplied import NEEDS_ALL_NAMES, Supplied
from tasks.reading.sources import Source, query

MOST_VALUES = 100_000_000  # that are held in memory: some gigabytes


def frame_for(
    connection: duckdb.DuckDBPyConnection, source: Source, domain: Domain, supplied: tuple[Supplied, ...], rows: int
) -> pd.DataFrame | None:
    """The columns that expectations look at, all rows of them; None where they would not fit into memory.

    Where an expectation looks at the names of columns, the others are there too, without values.
    """
    names = [name for name, _ in source.found]
    looked_at = {name for each in supplied for name in each.columns if name in names} or {names[0]}
    places = [place for place, name in enumerate(names) if name in looked_at]
    if rows * len(places) > MOST_VALUES:
        return None
    columns = ", ".join(f"{_value(source, domain, place)} AS c{place}" for place in places)
    frame: pd.DataFrame = query(connection, f"SELECT {columns} FROM {source.relation()}").to_pandas()
    frame.columns = pd.Index([names[place] for place in places])
    needs_all = any(each.type in NEEDS_ALL_NAMES for each in supplied)
    return frame.reindex(columns=names) if needs_all else frame


def _value(source: Source, domain: Domain, place: int) -> str:
    """A value as it is stored; a number that is text in a CSV file is read as the domain reads it."""
    name, holds = source.columns[place]
    kind = next((attribute.kind for attribute in domain.attributes if attribute.name == name), "")
    if holds != AS_WRITTEN or kind not in ("integer", "numeric"):
        return f"c{place}"
    text = f"replace(c{place}, ',', '.')" if source.csv.decimal == "," else f"c{place}"
    return f"TRY_CAST({text} AS DOUBLE)"
