"""Tables of places: the nation's as those of pairs (attributes numbered without the place), then counts of places, in order.

In the noisy counts, tables behind those of the nation are those of the plan's draws of places: cells are places of a level, by
the categories of attributes if there are any. In the estimates a row without a level is the nation's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.places import Places, places_of
from steps_engine.inference.place_tables import PlaceTable, place_tables, sizes_of
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.pairs.tables import (
    ESTIMATES,
    estimates_table,
    noisy_schema,
    noisy_table,
    read_noisy,
    read_structure,
    structure_schema,
)
from steps_engine.methods.places.estimate import Joined, Measured, joined
from steps_engine.methods.places.nation import nation_plan

PLACE_ESTIMATES = pa.schema([*ESTIMATES][:2] + [pa.field("level", pa.int8()), pa.field("place", pa.int32())] + [*ESTIMATES][2:])


def schemas_of(plan: Plan) -> dict[str, pa.Schema]:
    return {
        "tree": structure_schema(plan.measurements),
        "noisy-counts": noisy_schema(plan.measurements),
        "consistent-counts": PLACE_ESTIMATES,
    }


def read_nation(domain: Domain, plan: Plan, table: pa.Table) -> Structure:
    places = places_of(domain)
    return read_structure(places.nation, nation_plan(plan, places), table)


def noisy_counts(measured: Measured) -> pa.Table:
    """The nation's entries, then those of every table of places."""
    first, m = noisy_table(measured.nation, measured.of_nation), measured.nation.margins.plan.measurements
    table, cell = _entries(measured.places, len(measured.nation.tables), measured.tables)
    values = np.concatenate([each.reshape(m, -1) for each in measured.noisy], axis=1)
    columns = [pa.array(table), pa.array(cell), *(pa.array(column.astype(np.int64)) for column in values)]
    return pa.concat_tables([first, pa.Table.from_arrays(columns, schema=first.schema)]).combine_chunks()


def _entries(places: Places, before: int, tables: tuple[PlaceTable, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The table and the cell of every entry."""
    sizes = [int(np.prod(each.shape(places))) for each in tables]
    number = np.repeat(before + np.arange(len(sizes)), sizes).astype(np.int32)
    return number, np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)


def read_measured(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Measured:
    return with_noisy(domain, plan, read_nation(domain, plan, tables["tree"]), tables["noisy-counts"])


def with_noisy(domain: Domain, plan: Plan, nation: Structure, table: pa.Table) -> Measured:
    """Exactly the entries that the nation and the tables of places have."""
    places = places_of(domain)
    tables, before = place_tables(places, plan), len(nation.tables)
    number, cell = _entries(places, before, tables)
    own = max(table.num_rows - len(number), 0)
    behind = table.slice(own)
    if not (np.array_equal(behind["table"], number) and np.array_equal(behind["cell"], cell)):
        raise ValueError("the entries are not those of the tables of places, each once and in order")
    values = np.stack([behind[f"noisy_{i}"].to_numpy() for i in range(1, plan.measurements + 1)])
    ends = np.cumsum([int(np.prod(each.shape(places))) for each in tables])[:-1]
    parts = np.split(values, ends, axis=1)
    noisy = [part.reshape(plan.measurements, *each.shape(places)) for part, each in zip(parts, tables, strict=True)]
    return Measured(places, *read_noisy(nation, table.slice(0, own)), tables, noisy)


def estimates(measured: Measured) -> pa.Table:
    """Means of the measurements: the nation's margins and interactions, and every cell of every table of places, joined."""
    places, found = measured.places, joined(measured, None)
    nation = _lifted(estimates_table(measured.nation, measured.of_nation), places)
    parts = [nation, *(_of_table(places, found, table) for table in measured.tables)]
    return pa.concat_tables(parts).combine_chunks()


def _lifted(nation: pa.Table, places: Places) -> pa.Table:
    """Attributes by their number in the whole domain."""
    lists = nation["attributes"].combine_chunks()
    values = np.array(places.others, dtype=np.int16)[lists.values.to_numpy()]
    attributes = pa.ListArray.from_arrays(lists.offsets, pa.array(values, pa.int16()))
    none = [pa.nulls(nation.num_rows, pa.int8()), pa.nulls(nation.num_rows, pa.int32())]
    rest = [nation[name].combine_chunks() for name in ("categories", "estimate", "standard_error")]
    return pa.Table.from_arrays([attributes, rest[0], *none, *rest[1:]], schema=PLACE_ESTIMATES)


def cells_of(places: Places, found: Joined, table: PlaceTable) -> tuple[np.ndarray, np.ndarray]:
    """Of every cell of a table of places, places × columns, the estimate and its variance; nought where rules allow nobody."""
    value, variance = found.cells(places, table.of, table.level)
    allowed = places.allowed(table.level, table.of)
    there = np.ones(value.shape) if allowed is None else allowed.reshape(value.shape)
    return value * there, variance[:, None] * there


def _of_table(places: Places, found: Joined, table: PlaceTable) -> pa.Table:
    value, variance = cells_of(places, found, table)
    size, named = value.size, len(table.of)
    offsets = pa.array(np.arange(size + 1) * named, pa.int32())
    every = np.indices(sizes_of(places, table.of)).reshape(named, value.shape[1]).T  # columns × attributes
    category = pa.array(np.tile(every, (len(value), 1)).ravel(), pa.int32())
    columns = [
        pa.ListArray.from_arrays(offsets, pa.array(np.tile(np.array(table.of, dtype=np.int16), size), pa.int16())),
        pa.ListArray.from_arrays(offsets, category),
        pa.array(np.full(size, table.level), pa.int8()), pa.array(np.repeat(np.arange(len(value)), value.shape[1]), pa.int32()),
        pa.array(value.ravel()), pa.array(np.sqrt(variance).ravel()),
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=PLACE_ESTIMATES)
