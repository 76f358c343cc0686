"""Tables of pairs: margins as they were measured with the groups of their categories, tables, contrasts, estimates with errors.

Attributes are numbered as in the domain. In the structure, a row with two attributes or more is a table; one with one attribute
is a category of a margin, its contrast beside it; the row without attributes is the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.contrasts import PAIR, contrast_shape, residual, residual_variance
from steps_engine.inference.evidence import LEAST_VARIANCE, Said
from steps_engine.methods.pairs.estimate import one_way_with_errors
from steps_engine.methods.pairs.structure import Margins, Structure, Table, is_centred

_ATTRIBUTES = pa.field("attributes", pa.list_(pa.int16()), nullable=False)


def _noisy(measurements: int, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(f"noisy_{i}", pa.int64(), nullable=nullable) for i in range(1, measurements + 1)]


def structure_schema(measurements: int) -> pa.Schema:
    return pa.schema(
        [_ATTRIBUTES, pa.field("category", pa.int32()), pa.field("group", pa.int32()), *_noisy(measurements, nullable=True)]
    )


def noisy_schema(measurements: int) -> pa.Schema:
    numbers = [pa.field("table", pa.int32(), nullable=False), pa.field("cell", pa.int32(), nullable=False)]
    return pa.schema([*numbers, *_noisy(measurements)])


ESTIMATES = pa.schema(
    [
        _ATTRIBUTES,
        pa.field("categories", pa.list_(pa.int32()), nullable=False),
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


def _lists(rows: Iterable[np.ndarray], kind: pa.DataType) -> pa.ListArray:
    """A list for every row of every matrix."""
    matrices = list(rows)
    lengths = np.concatenate([np.full(len(each), each.shape[1]) for each in matrices])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = np.concatenate([each.ravel() for each in matrices])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.astype(np.int64)).cast(kind))


def structure_table(structure: Structure) -> pa.Table:
    """The number of rows, every category of every attribute, every table."""
    margins, sizes = structure.margins, structure.margins.domain.sizes
    of = [np.zeros((1, 0)), *(np.full((size, 1), j) for j, size in enumerate(sizes)), *map(_row, structure.tables)]
    none = np.full(len(structure.tables), -1)
    category = np.concatenate([[-1], *(np.arange(size) for size in sizes), none]).astype(np.int32)
    group = np.concatenate([[-1], *structure.group, none]).astype(np.int32)
    columns = [_lists(of, pa.int16()), _or_null(category), _or_null(group)]
    for i in range(len(margins.total)):
        values = [margins.total[i : i + 1], *(_padded(margins.contrasts[j][i], size) for j, size in enumerate(sizes))]
        known = np.concatenate([[True], *(np.arange(size) < len(margins.contrasts[j][i]) for j, size in enumerate(sizes))])
        every = np.concatenate([*values, np.zeros(len(none), dtype=np.int64)])
        columns.append(pa.array(every, pa.int64(), mask=~np.concatenate([known, none >= 0])))
    return pa.Table.from_arrays(columns, schema=structure_schema(len(margins.total)))


def _row(table: Sequence[int]) -> np.ndarray:
    return np.array([table])


def _or_null(values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=values < 0)


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([values, np.zeros(size - len(values), dtype=np.int64)])


def read_structure(domain: Domain, plan: Plan, table: pa.Table) -> Structure:
    """The structure of a published table; one that no measurement could have made is refused."""
    sizes, categories = domain.sizes, sum(domain.sizes)
    attributes = [tuple(each or ()) for each in table["attributes"].to_pylist()]
    category, group = (table[name].fill_null(-1).to_numpy().astype(np.int64) for name in ("category", "group"))
    rows, expected = slice(1, 1 + categories), [(j,) for j, size in enumerate(sizes) for _ in range(size)]
    if attributes[: 1 + categories] != [(), *expected] or not np.array_equal(
        category[rows], np.concatenate([np.arange(size) for size in sizes])
    ):
        raise ValueError("the margins are not those of the domain, each category once and in order")
    tables = tuple(attributes[1 + categories :])
    if len(set(tables)) < len(tables) or not all(_is_table(each, len(sizes)) for each in tables):
        raise ValueError("a table stands twice, or is none")
    ends = np.cumsum(sizes)[:-1]
    groups = tuple(np.split(group[rows], ends))
    if any(each[0] != 0 or not np.isin(np.diff(each), (0, 1)).all() for each in groups):
        raise ValueError("groups are not of neighbouring categories, numbered 0, 1, 2, …")
    noisy = np.stack([table[f"noisy_{i}"].fill_null(0).to_numpy() for i in range(1, plan.measurements + 1)])
    length = [0 if size == 1 else contrast_shape((size,), is_centred(plan))[0] for size in sizes]
    contrasts = tuple(part[:, :kept] for part, kept in zip(np.split(noisy[:, rows], ends, axis=1), length, strict=True))
    return Structure(Margins(domain, plan, noisy[:, 0], contrasts), groups, tables)


def _is_table(attributes: tuple[int | None, ...], number: int) -> bool:
    """Two attributes or more, each once and in order."""
    known = [j for j in attributes if j is not None and 0 <= j < number]
    return len(known) == len(attributes) > 1 and known == sorted(set(known))


def noisy_table(structure: Structure, noisy: list[np.ndarray]) -> pa.Table:
    """Every entry of every table's contrast, in order; then of pairs that were measured again, under their number."""
    measurements = structure.margins.plan.measurements
    values = np.concatenate([np.zeros((measurements, 0)), *(each.reshape(measurements, -1) for each in noisy)], axis=1)
    numbers = [*range(len(structure.tables)), *map(structure.tables.index, structure.again)]
    columns = [*_entries(numbers, [each[0].size for each in noisy]), *values.astype(np.int64)]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=noisy_schema(measurements))


def _entries(numbers: Sequence[int], sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The table and the cell of every entry."""
    cell = np.concatenate([np.zeros(0), *(np.arange(size) for size in sizes)])
    return np.repeat(np.array(numbers, dtype=np.int32), sizes), cell.astype(np.int32)


def read_noisy(structure: Structure, table: pa.Table) -> tuple[Structure, list[np.ndarray]]:
    """Of every table its noisy contrasts: exactly the entries that it has, and which pairs were measured again."""
    measurements = structure.margins.plan.measurements
    numbers = [*range(len(structure.tables)), *_again(structure, table)]
    shapes = [contrast_shape(structure.shape(structure.tables[i]), structure.margins.centred) for i in numbers]
    sizes = [int(np.prod(shape)) for shape in shapes]
    expected = dict(zip(("table", "cell"), _entries(numbers, sizes), strict=True))
    if not all(np.array_equal(table[name], found) for name, found in expected.items()):
        raise ValueError("the entries are not those of the tables, each once and in order, and of some pairs once more")
    values = np.stack([table[f"noisy_{i}"].to_numpy() for i in range(1, measurements + 1)])
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=1) if sizes else []
    noisy = [part.reshape(measurements, *shape) for part, shape in zip(parts, shapes, strict=True)]
    return replace(structure, again=tuple(structure.tables[i] for i in numbers[len(structure.tables) :])), noisy


def _again(structure: Structure, table: pa.Table) -> list[int]:
    """Places among the tables of the pairs whose entries stand a second time, behind those of all."""
    shapes = (contrast_shape(structure.shape(each), structure.margins.centred) for each in structure.tables)
    behind: list[int] = table["table"].slice(sum(int(np.prod(shape)) for shape in shapes)).unique().to_pylist()
    if any(not 0 <= i < len(structure.tables) or len(structure.tables[i]) != PAIR for i in behind) or behind != sorted(behind):
        raise ValueError("behind the tables stands something else than pairs that were measured again, in their order")
    return behind


def read_measured(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> tuple[Structure, list[np.ndarray]]:
    return read_noisy(read_structure(domain, plan, tables["tree"]), tables["noisy-counts"])


def estimates_table(structure: Structure, noisy: list[np.ndarray]) -> pa.Table:
    """Means of the measurements: of every margin, and of every table what it adds to its margins, with standard errors."""
    margins, attributes, categories, numbers = structure.margins, list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    for j in range(len(structure.sizes)):
        estimate, error = one_way_with_errors(margins, j)
        attributes.append(np.full((len(estimate), 1), j))
        categories.append(np.arange(len(estimate))[:, None])
        numbers.append(np.stack([estimate, error]))
    for table, said in _added(structure, noisy).items():
        shape, found = structure.shape(table), said.value.ravel()
        attributes.append(np.tile(np.array(table), (found.size, 1)))
        categories.append(np.indices(shape).reshape(len(shape), -1).T)
        numbers.append(np.stack([found, np.full(found.size, np.sqrt(said.variance))]))
    estimate, error = np.concatenate(numbers, axis=1)
    columns = [_lists(attributes, pa.int16()), _lists(categories, pa.int32()), pa.array(estimate), pa.array(error)]
    return pa.Table.from_arrays(columns, schema=ESTIMATES)


def _added(structure: Structure, noisy: list[np.ndarray]) -> dict[Table, Said]:
    """Of every table what it adds to its margins and the variance of a cell; measured twice, both by precision."""
    found, centred = dict[Table, Said](), structure.margins.centred
    for table, each, noise in zip(structure.measured, noisy, structure.variances, strict=True):
        shape = structure.shape(table)
        variance = max(noise, LEAST_VARIANCE) * residual_variance(shape, centred) / len(each)
        found[table] = Said(residual(each.mean(axis=0), shape, centred), variance).joined(found.get(table))
    return found
