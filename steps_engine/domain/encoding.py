"""Values to category codes and back: the public bins of the domain, nothing learnt from records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.errors import DataInvalid
from schemas.spec.attributes import EPOCH, Attribute, DateAttribute, Named, Ranged, TimeAttribute
from schemas.spec.domain import Domain, Unit
from schemas.spec.reading import CLOCK
from steps_engine import noise
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.records import derived_columns
from steps_engine.domain.rules import breaking, keep_comparisons, orders_of
from steps_engine.domain.values import codes_of_numbers, has_wide_bins, values_of_codes
from steps_engine.domain.weights import count_units, weight_columns

if TYPE_CHECKING:
    import pandas as pd

PUBLIC_KEY = bytes(32)  # of the lots that decide which rows `excess: drop` keeps, for data one may look at


def encode(frame: pd.DataFrame, domain: Domain, key: bytes = PUBLIC_KEY) -> np.ndarray:
    """Rows × attributes of category codes. Errors name the attribute and what was expected, never a value."""
    return _encoded(_named(frame, domain), domain, key)[0]


def count_frame(frame: pd.DataFrame, domain: Domain, key: bytes = PUBLIC_KEY) -> Counts:
    """The counts of a frame, of records or of units of their weights, as a release would count a file of it."""
    frame = _named(frame, domain)
    if domain.weight is None:
        return count_codes(_encoded(frame, domain, key)[0])
    weights = _numbers(frame[domain.weight.column], domain.weight.attribute)
    order = np.argsort(weights, kind="stable")  # of a person's equal records the lightest come first, as in SQL
    codes, kept = _encoded(frame.iloc[order], domain, key)
    return count_units(codes, weights[order][kept], domain, key)


def _named(frame: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    frame = frame.drop(columns=list(domain.ignore), errors="ignore").rename(columns=domain.rename)
    optional = {domain.unit.column} if domain.unit.column else set()
    if not frame.columns.is_unique or set(frame.columns) - optional != {*domain.names, *domain.own_columns} - optional:
        wanted = ", ".join([*domain.names, *(name for name in domain.own_columns if name not in optional)])
        raise DataInvalid(f"the columns must be exactly {wanted}; rename, add or drop columns.")
    return frame


def _encoded(frame: pd.DataFrame, domain: Domain, key: bytes) -> tuple[np.ndarray, np.ndarray | slice]:
    """Codes of the rows that stay, and which these are."""
    codes = np.empty((len(frame), len(domain.names)), dtype=np.int32)
    for j, attribute in enumerate(domain.attributes):
        codes[:, j] = encode_column(frame[attribute.name], attribute)
    for rule, zero in zip(domain.rules, domain.zeros, strict=True):
        if breaking(zero, codes).any():
            said = rule.always or f"never: {{{', '.join(rule.never or ())}}}"
            raise DataInvalid(f"some rows break the rule {said}; mend the rows or the rule.")
    if domain.unit.column is None:
        return codes, slice(None)
    kept = _bounded_rows(frame[domain.unit.column], codes, domain.unit, key)
    return codes[kept], kept


def _bounded_rows(person: pd.Series, codes: np.ndarray, unit: Unit, key: bytes) -> np.ndarray:
    """Rows that stay when each person keeps at most `rows_per_person`, chosen from that person's own rows alone."""

    import pandas as pd

    if person.isna().any():
        raise DataInvalid(f"{unit.column} has missing values; every row must belong to one {unit.who}.")
    number = pd.factorize(person)[0]
    rows_of = np.bincount(number)[number]
    if (rows_of > unit.rows_per_person).any() and unit.excess == "forbid":
        raise DataInvalid(
            f"more than {unit.rows_per_person} rows belong to one {unit.who}; say excess: drop or raise rows_per_person."
        )
    if (rows_of < unit.rows_per_person).any() and unit.exactly:
        raise DataInvalid(
            f"fewer than {unit.rows_per_person} rows belong to one {unit.who}; leave exactly out, or mend the rows."
        )
    many = np.flatnonzero(rows_of > unit.rows_per_person)
    occurrence = _place_within(np.column_stack([number[many], codes[many]]))
    lots = [_lot(key, *row) for row in zip(codes[many].tolist(), occurrence.tolist(), person.iloc[many], strict=True)]
    order = np.lexsort((np.array(lots, dtype=str), number[many]))
    place = _place_within(number[many][order][:, None])
    return np.delete(np.arange(len(number)), many[order[place > unit.rows_per_person]])


def _lot(key: bytes, codes: list[int], occurrence: int, person: object) -> str:
    """SHA-256 of key|codes|occurrence|person: the rows with a person's lowest lots stay, as in tasks/reading/persons_sql.py."""
    text = "|".join([key.hex(), *map(str, codes), str(occurrence), str(person)])
    return hashlib.sha256(text.encode()).hexdigest()


def _place_within(rows: np.ndarray) -> np.ndarray:
    """1, 2, … for equal rows, in the order in which they stand.

    >>> _place_within(np.array([[7], [5], [7], [7]])).tolist()
    [1, 1, 2, 3]
    """
    group = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows))) + 1
    return place


def encode_column(column: pd.Series, attribute: Attribute) -> np.ndarray:
    """Category codes of one column, by the attribute's policy for missing and outside values."""
    import pandas as pd

    number, values = pd.factorize(column)  # each distinct value is read once
    codes = np.append(
        _encode_values(pd.Series(values), attribute), -1 if attribute.missing_code is None else attribute.missing_code
    )
    found: np.ndarray = codes[number]  # what is missing has number -1, the last
    if (found < 0).any():
        raise DataInvalid(f"{attribute.name} has missing values; say missing: category in the domain, or fill them.")
    return found


def _encode_values(values: pd.Series, attribute: Attribute) -> np.ndarray:
    """The codes of values that are there."""
    import pandas as pd

    texts = pd.Index(values.map(_text).astype(object), dtype=object)
    if isinstance(attribute, Named):
        places = pd.Index(attribute.code_of_text, dtype=object).get_indexer(texts)
        if (places < 0).any():
            raise DataInvalid(f"{attribute.name} has values that are not among its {attribute.present} categories.")
        return np.array([*attribute.code_of_text.values()], dtype=np.int64)[places]
    return _bins(values, texts, attribute)


def _text(value: Any) -> str:
    """A value as a file would write it: a whole number without a point, however it is stored."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53
    return str(int(value) if is_whole else value)


def _bins(values: pd.Series, texts: pd.Index, attribute: Ranged) -> np.ndarray:
    import pandas as pd

    stands_for = pd.Series(attribute.number_of_text, dtype=float)  # NaN: missing
    special = texts.isin(stands_for.index)
    numbers = np.empty(len(values))
    numbers[~special] = _numbers(values[~special], attribute)
    numbers[special] = stands_for.reindex(texts[special]).to_numpy()
    for said, meant in attribute.number_of_number.items():
        numbers[~special & (numbers == said)] = np.nan if meant is None else meant
    missing = np.isnan(numbers)
    if attribute.outside == "clamp":
        numbers = np.clip(numbers, attribute.edge_values[0], None if attribute.is_open else attribute.highest)
    numbers[missing] = attribute.edge_values[0]
    codes = codes_of_numbers(numbers, attribute)
    if (codes < 0).any():
        raise DataInvalid(f"{attribute.name} has values outside its bounds; widen them or say outside: clamp.")
    if attribute.is_whole and (numbers != np.floor(numbers)).any():
        raise DataInvalid(f"{attribute.name} must hold whole numbers; declare it numeric or round it.")
    return np.where(missing, -1 if attribute.missing_code is None else attribute.missing_code, codes)


def _numbers(column: pd.Series, attribute: Ranged) -> np.ndarray:
    import pandas as pd

    try:
        if isinstance(attribute, DateAttribute):
            days = pd.to_datetime(column, format=attribute.format, utc=True).dt.tz_localize(None) - pd.Timestamp(EPOCH)
            return np.floor((days / pd.Timedelta(days=1)).to_numpy(dtype=float, copy=True))
        if isinstance(attribute, TimeAttribute):
            return _minutes(column.map(_clock), attribute.format)
        if column.map(lambda value: isinstance(value, bool | np.bool_)).any():
            raise TypeError
        return column.astype("Float64").to_numpy(dtype=float, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        raise DataInvalid(f"{attribute.name} must hold {attribute.kind} values; some cannot be read as such.") from None


def _minutes(texts: pd.Series, form: str | None) -> np.ndarray:
    import pandas as pd

    if form is not None:
        moments = pd.to_datetime(texts, format=form)
        return (moments.dt.hour * 60 + moments.dt.minute).to_numpy(dtype=float, copy=True)
    parts = texts.astype(str).str.extract(rf"^{CLOCK}$")
    if parts[[0, 1]].isna().any(axis=None):
        raise ValueError
    return (parts[0].astype(int) * 60 + parts[1].astype(int)).to_numpy(dtype=float, copy=True)


def _clock(value: Any) -> str:
    """A time of day as text; of a moment its time."""
    return value.strftime("%H:%M") if hasattr(value, "strftime") else str(value)


def decode(codes: np.ndarray, domain: Domain, randomness: noise.Randomness) -> pa.Table:
    """Category codes as records: labels, and values dealt over their bin."""
    schema = tables.records(domain)
    cell = _cells(codes) if any(map(_is_dealt, domain.attributes)) else None
    compared = {j for each in orders_of(domain, domain.conditionals) for j in each.compared.places}
    columns, numbers = list[pa.Array | None](), dict[int, np.ndarray]()
    for j, attribute in enumerate(domain.attributes):
        own = None if isinstance(attribute, Named) else _numbers_of(codes[:, j], attribute, cell, randomness)
        if j in compared and own is not None:  # kept until it agrees with others; of all other columns one is held at a time
            numbers[j] = own
        columns.append(None if j in numbers else column_of(codes[:, j], attribute, own).cast(schema.field(j).type))
    keep_comparisons(domain, codes, numbers)
    for j, held in numbers.items():
        columns[j] = column_of(codes[:, j], domain.attributes[j], held).cast(schema.field(j).type)
    return pa.Table.from_arrays([*columns, *derived_columns(codes, domain), *weight_columns(len(codes), domain)], schema=schema)


def _is_dealt(attribute: Attribute) -> bool:
    return not isinstance(attribute, Named) and has_wide_bins(attribute)


def _numbers_of(code: np.ndarray, attribute: Ranged, cell: np.ndarray | None, randomness: noise.Randomness) -> np.ndarray:
    """`cell` is each row's, given where some attribute has wide bins."""
    present = np.where(code == attribute.missing_code, 0, code) if attribute.missing_code is not None else code
    uniform = stratified(cell, randomness) if cell is not None and has_wide_bins(attribute) else None
    return values_of_codes(present, attribute, uniform)


def column_of(code: np.ndarray, attribute: Attribute, numbers: np.ndarray | None) -> pa.Array:
    """Codes as labels, or the numbers that stand for them; null where the code is the missing one."""
    missing = code == attribute.missing_code if attribute.missing_code is not None else np.zeros(len(code), dtype=bool)
    if isinstance(attribute, Named):
        indices = pa.array(code, pa.int32(), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, pa.array(attribute.categories))
    if not attribute.is_whole:
        return pa.array(numbers, mask=missing)
    whole = np.asarray(numbers).astype(np.int32 if attribute.kind == "date" else np.int64)
    return pa.array(whole * tables.MINUTE if attribute.kind == "time" else whole, mask=missing)


def _cells(codes: np.ndarray) -> np.ndarray:
    """A number per row, equal within a cell; that two cells meet is as rare as 2^−64 and does no harm."""
    number = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        number = number * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.uint64)
    return number


def stratified(cell: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
    """Uniform numbers in [0, 1), one in each k-th of it for the k rows of a cell, dealt at random.

    Latin hypercube sampling (McKay, Beckman and Conover 1979): the mean over a cell has variance 1/(12k³), not 1/(12k), so
    that sets which share a measurement differ by what it leaves open and not by where values fell within their bins.
    """
    order = np.lexsort((noise.uniform(len(cell), randomness), cell))
    first = np.flatnonzero(np.concatenate([[True], cell[order][1:] != cell[order][:-1]])[: len(cell)])
    size = np.diff(first, append=len(cell))
    rank = np.arange(len(cell)) - np.repeat(first, size)
    result = np.empty(len(cell))
    result[order] = (rank + noise.uniform(len(cell), randomness)) / np.repeat(size, size)
    return result
