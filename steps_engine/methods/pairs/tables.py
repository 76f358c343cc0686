"""Tables of pairs: margins as they were measured with the groups of their categories, pairs, contrasts, estimates with errors.

Attributes are numbered as in the domain. In the structure, a row with two attributes is a pair; one with one attribute is a
category of a margin, its contrast beside it; the row without attributes is the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.contrasts import contrast_shape, residual, residual_variance
from steps_engine.methods.pairs.estimate import LEAST_VARIANCE, one_way_with_errors, pair_noises
from steps_engine.methods.pairs.structure import Margins, Structure

_ATTRIBUTES = [pa.field("first", pa.int16()), pa.field("second", pa.int16())]


def _noisy(measurements: int, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(f"noisy_{i}", pa.int64(), nullable=nullable) for i in range(1, measurements + 1)]


def structure_schema(measurements: int) -> pa.Schema:
    return pa.schema(
        [*_ATTRIBUTES, pa.field("category", pa.int32()), pa.field("group", pa.int32()), *_noisy(measurements, nullable=True)]
    )


def noisy_schema(measurements: int) -> pa.Schema:
    cell = pa.field("cell", pa.int32(), nullable=False)
    return pa.schema([field.with_nullable(False) for field in _ATTRIBUTES] + [cell, *_noisy(measurements)])


ESTIMATES = pa.schema(
    [
        *_ATTRIBUTES,
        pa.field("category", pa.int32()),
        pa.field("second_group", pa.int32()),
        pa.field("estimate", pa.float64(), nullable=False),
        pa.field("standard_error", pa.float64(), nullable=False),
    ]
)


def schemas_of(plan: Plan) -> dict[str, pa.Schema]:
    return {
        "tree": structure_schema(plan.measurements),
        "noisy-counts": noisy_schema(plan.measurements),
        "consistent-counts": ESTIMATES,
    }


def structure_table(structure: Structure) -> pa.Table:
    """The number of rows, every category of every attribute, every pair."""
    margins, sizes = structure.margins, structure.margins.domain.sizes
    measurements, categories = len(margins.total), sum(sizes)
    first = np.concatenate([[-1], np.repeat(np.arange(len(sizes)), sizes), [a for a, _ in structure.pairs]]).astype(np.int16)
    second = np.concatenate([np.full(1 + categories, -1), [b for _, b in structure.pairs]]).astype(np.int16)
    none = np.full(len(structure.pairs), -1)
    category = np.concatenate([[-1], *(np.arange(size) for size in sizes), none]).astype(np.int32)
    group = np.concatenate([[-1], *structure.group, none]).astype(np.int32)
    columns = [_or_null(values) for values in (first, second, category, group)]
    for i in range(measurements):
        values = [margins.total[i : i + 1], *(_padded(margins.contrasts[j][i], size) for j, size in enumerate(sizes))]
        known = np.concatenate([[True], *(np.arange(size) < len(margins.contrasts[j][i]) for j, size in enumerate(sizes))])
        every = np.concatenate([*values, np.zeros(len(none), dtype=np.int64)])
        columns.append(pa.array(every, pa.int64(), mask=~np.concatenate([known, none >= 0])))
    return pa.Table.from_arrays(columns, schema=structure_schema(measurements))


def _or_null(values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=values < 0)


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - len(values), dtype=np.int64)])


def read_structure(domain: Domain, plan: Plan, table: pa.Table) -> Structure:
    """The structure of a published table; one that no measurement could have made is refused."""
    first, second, category, group = (
        table[name].fill_null(-1).to_numpy().astype(np.int64) for name in ("first", "second", "category", "group")
    )
    sizes, categories = domain.sizes, sum(domain.sizes)
    rows = slice(1, 1 + categories)
    expected = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    if len(first) < 1 + categories or not all(
        np.array_equal(found[rows], wanted) for found, wanted in zip((first, category), expected, strict=True)
    ):
        raise ValueError("the margins are not those of the domain, each category once and in order")
    pairs = tuple(zip(first[1 + categories :].tolist(), second[1 + categories :].tolist(), strict=True))
    if len(set(pairs)) < len(pairs) or any(not 0 <= a < b < len(sizes) for a, b in pairs):
        raise ValueError("a pair stands twice, or is none")
    ends = np.cumsum(sizes)[:-1]
    groups = tuple(np.split(group[rows], ends))
    if any(each[0] != 0 or not np.isin(np.diff(each), (0, 1)).all() for each in groups):
        raise ValueError("groups are not of neighbouring categories, numbered 0, 1, 2, …")
    columns = [table[f"noisy_{i}"].fill_null(0).to_numpy() for i in range(1, plan.measurements + 1)]
    noisy = np.stack(columns)
    length = [0 if size == 1 else contrast_shape((size,))[0] for size in sizes]
    contrasts = tuple(part[:, :kept] for part, kept in zip(np.split(noisy[:, rows], ends, axis=1), length, strict=True))
    return Structure(Margins(domain, plan, noisy[:, 0], contrasts), groups, pairs)


def noisy_table(structure: Structure, noisy: list[np.ndarray]) -> pa.Table:
    """Every cell of every pair's contrast, in order."""
    measurements = structure.margins.plan.measurements
    cells = [each[0].size for each in noisy]
    pairs = np.repeat(np.array(structure.pairs, dtype=np.int16).reshape(-1, 2), cells, axis=0)
    cell = np.concatenate([np.arange(number) for number in cells]) if cells else np.zeros(0)
    values = (
        np.concatenate([each.reshape(measurements, -1) for each in noisy], axis=1) if noisy else np.zeros((measurements, 0))
    )
    columns = [pairs[:, 0], pairs[:, 1], cell.astype(np.int32), *values.astype(np.int64)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=noisy_schema(measurements))


def read_noisy(structure: Structure, table: pa.Table) -> list[np.ndarray]:
    """Of every pair its noisy contrasts: exactly the cells that it has."""
    measurements = structure.margins.plan.measurements
    shapes = [contrast_shape(structure.shape(pair)) for pair in structure.pairs]
    cells = [int(np.prod(shape)) for shape in shapes]
    pairs = np.repeat(np.array(structure.pairs, dtype=np.int64).reshape(-1, 2), cells, axis=0)
    numbers = np.concatenate([np.arange(number) for number in cells]) if cells else np.zeros(0)
    found = [table[name].to_numpy() for name in ("first", "second", "cell")]
    if not all(np.array_equal(a, b) for a, b in zip(found, (pairs[:, 0], pairs[:, 1], numbers), strict=True)):
        raise ValueError("the cells are not those of the pairs, each once and in order")
    values = np.stack([table[f"noisy_{i}"].to_numpy() for i in range(1, measurements + 1)])
    parts = np.split(values, np.cumsum(cells)[:-1], axis=1) if cells else []
    return [part.reshape(measurements, *shape) for part, shape in zip(parts, shapes, strict=True)]


def read_measured(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> tuple[Structure, list[np.ndarray]]:
    structure = read_structure(domain, plan, tables["tree"])
    return structure, read_noisy(structure, tables["noisy-counts"])


def estimates_table(structure: Structure, noisy: list[np.ndarray]) -> pa.Table:
    """Means of the measurements: of every margin, and of every pair what it adds to its margins, with standard errors."""
    margins, parts = structure.margins, list[pd.DataFrame]()
    for j in range(len(structure.sizes)):
        estimate, error = one_way_with_errors(margins, j)
        parts.append(
            pd.DataFrame({"first": j, "category": np.arange(len(estimate)), "estimate": estimate, "standard_error": error})
        )
    for (a, b), each, noise in zip(structure.pairs, noisy, pair_noises(structure), strict=True):
        shape = structure.shape((a, b))
        found = residual(each.mean(axis=0), shape, margins.centred)
        variance = max(noise.variance, LEAST_VARIANCE) * residual_variance(shape, margins.centred) / len(each)
        row, column = (axis.ravel() for axis in np.indices(shape))
        parts.append(
            pd.DataFrame(
                {
                    "first": a,
                    "second": b,
                    "category": row,
                    "second_group": column,
                    "estimate": found.ravel(),
                    "standard_error": np.sqrt(variance),
                }
            )  # fmt: skip
        )
    frame = pd.concat(parts, ignore_index=True).reindex(columns=ESTIMATES.names)
    return pa.Table.from_pandas(
        frame.astype({"first": "Int16", "second": "Int16", "category": "Int32", "second_group": "Int32"}),
        ESTIMATES,
        preserve_index=False,
    )
