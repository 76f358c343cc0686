"""Values to category codes and back: the public bins of the domain, nothing learnt from records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas import tables
from schemas.attributes import EPOCH
from schemas.domain import Domain, Unit
from schemas.errors import DataInvalid
from steps_engine import noise


def encode(frame: pd.DataFrame, domain: Domain) -> np.ndarray:
    """Rows × attributes of category codes. Errors name the attribute and what was expected, never a value."""
    if not frame.columns.is_unique or set(frame.columns) - {domain.unit.column} != set(domain.names):
        raise DataInvalid(f"the columns must be exactly {', '.join(domain.names)}; rename, add or drop columns.")
    codes = np.empty((len(frame), len(domain.names)), dtype=np.int32)
    for j, attribute in enumerate(domain.attributes):
        codes[:, j] = encode_column(frame[attribute.name], attribute)
    for rule, forbidden in zip(domain.rules, domain.forbidden, strict=True):
        if np.all([np.isin(codes[:, j], values) for j, values in forbidden.items()], axis=0).any():
            raise DataInvalid(f"some rows break the rule never: {{{', '.join(rule.never)}}}; mend the rows or the rule.")
    return codes if domain.unit.column is None else codes[_bounded_rows(frame[domain.unit.column], codes, domain.unit)]


def _bounded_rows(person: pd.Series, codes: np.ndarray, unit: Unit) -> np.ndarray:
    """Rows that stay when each person keeps at most `rows_per_person`, chosen from that person's own rows alone."""
    if person.isna().any():
        raise DataInvalid(f"{unit.column} has missing values; every row must belong to a person.")
    number = pd.factorize(person)[0]
    order = np.lexsort((*codes.T[::-1], number))
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    if (rank >= unit.rows_per_person).any() and unit.excess == "forbid":
        raise DataInvalid(f"some people have more than {unit.rows_per_person} rows; say excess: drop or raise rows_per_person.")
    return order[rank < unit.rows_per_person]


def encode_column(column: pd.Series, attribute) -> np.ndarray:
    """Category codes of one column, by the attribute's policy for missing and outside values."""
    missing = column.isna().to_numpy()
    if missing.any() and attribute.missing == "forbid":
        raise DataInvalid(f"{attribute.name} has missing values; say missing: category in the domain, or fill them.")
    if attribute.kind in ("categorical", "ordinal"):
        codes = pd.Index(attribute.categories).get_indexer(column.astype(object))
        if (codes[~missing] < 0).any():
            raise DataInvalid(f"{attribute.name} has values that are not among its {attribute.present} categories.")
    else:
        codes = _bins(column, attribute, missing)
    return np.where(missing, attribute.missing_code if attribute.missing_code is not None else 0, codes)


def _bins(column: pd.Series, attribute, missing: np.ndarray) -> np.ndarray:
    values = _numbers(column, attribute)
    values[missing] = attribute.edge_values[0]
    low, high = attribute.edge_values[0], attribute.edge_values[-1]
    top = high if attribute.kind == "numeric" else high - 1
    if attribute.outside == "clamp":
        values = np.clip(values, low, top)
    if not ((values >= low) & (values <= top)).all():
        raise DataInvalid(f"{attribute.name} has values outside its bounds; widen them or say outside: clamp.")
    if attribute.kind != "numeric" and not (values == np.floor(values)).all():
        raise DataInvalid(f"{attribute.name} must hold whole numbers; declare it numeric or round it.")
    return np.minimum(np.searchsorted(attribute.edge_values, values, side="right") - 1, attribute.present - 1)


def _numbers(column: pd.Series, attribute) -> np.ndarray:
    try:
        if attribute.kind == "date":
            days = pd.to_datetime(column) - pd.Timestamp(EPOCH)
            return (days / pd.Timedelta(days=1)).to_numpy(dtype=float, copy=True)
        if column.map(lambda value: isinstance(value, bool)).any():
            raise TypeError
        return column.astype("Float64").to_numpy(dtype=float, na_value=np.nan, copy=True)
    except (TypeError, ValueError):
        raise DataInvalid(f"{attribute.name} must hold {attribute.kind} values; some cannot be read as such.") from None


def decode(codes: np.ndarray, domain: Domain, source: noise.Source) -> pa.Table:
    """Category codes as records: labels, and values drawn uniformly within their bin."""
    schema = tables.records(domain)
    columns = [_decode_column(codes[:, j], a, source).cast(schema.field(j).type) for j, a in enumerate(domain.attributes)]
    return pa.Table.from_arrays(columns, schema=schema)


def _decode_column(code: np.ndarray, attribute, source: noise.Source) -> pa.Array:
    missing = code == attribute.missing_code if attribute.missing_code is not None else np.zeros(len(code), dtype=bool)
    if attribute.kind in ("categorical", "ordinal"):
        indices = pa.array(code, pa.int32(), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, pa.array(attribute.categories))
    bin_ = np.where(missing, 0, code)
    low, high = attribute.edge_values[bin_], attribute.edge_values[bin_ + 1]
    if attribute.kind == "numeric":
        values = low + noise.uniform(len(code), source) * (high - low)
        return pa.array(np.where(values < high, values, np.nextafter(high, low)), mask=missing)
    values = low + noise.integers_below(high - low, len(code), source)
    return pa.array(values.astype(np.int32 if attribute.kind == "date" else np.int64), mask=missing)
