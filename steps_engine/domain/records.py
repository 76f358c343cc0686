"""Synthetic records as category codes again: what a published table holds, by the public domain alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.spec.attributes import Attribute, Named, Ranged
from schemas.spec.domain import Domain
from schemas.spec.rules import Comparison, Conditional
from schemas.tables import MINUTE
from steps_engine.domain.rules import concerned
from steps_engine.domain.values import codes_of_numbers


def codes_of(records: pa.Table, domain: Domain) -> np.ndarray:
    """Rows × attributes of category codes, -1 for a value that the domain does not have."""
    codes = np.empty((records.num_rows, len(domain.names)), dtype=np.int64)
    for j, attribute in enumerate(domain.attributes):
        codes[:, j] = column_codes(records[attribute.name], attribute)
    return codes


def column_codes(column: pa.ChunkedArray, attribute: Attribute) -> np.ndarray:
    """Category codes of a published column, -1 for a value that the domain does not have."""
    missing = -1 if attribute.missing_code is None else attribute.missing_code
    if isinstance(attribute, Named):
        codes = _labelled(column, pa.array(attribute.categories))
    else:
        codes = codes_of_numbers(numbers_in(column, attribute), attribute)
    return np.where(column.is_null().to_numpy(), missing, codes)


def _labelled(column: pa.ChunkedArray, categories: pa.Array) -> np.ndarray:
    """The place of each label among the categories, -1 for one that is none; of dictionaries each entry is looked up once."""
    if not pa.types.is_dictionary(column.type):
        return pc.index_in(column.cast(pa.string()), categories).fill_null(-1).to_numpy()  # type: ignore[no-any-return]
    found = [np.zeros(0, dtype=np.int64)]
    for chunk in column.chunks:
        places = pc.index_in(chunk.dictionary.cast(pa.string()), categories).fill_null(-1).to_numpy(zero_copy_only=False)
        found.append(np.append(places, -1)[chunk.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)])
    return np.concatenate(found)


def numbers_in(column: pa.ChunkedArray, attribute: Ranged) -> np.ndarray:
    """The numbers of a published column, days since 1970 and minutes since midnight; 0 for null."""
    stored = {"integer": pa.int64(), "numeric": pa.float64(), "date": pa.int32(), "time": pa.int64()}[attribute.kind]
    numbers: np.ndarray = column.cast(stored).fill_null(0).to_numpy()
    if attribute.kind == "time":
        return np.where(numbers % MINUTE == 0, numbers // MINUTE, -1)
    return numbers


def derived_columns(codes: np.ndarray, domain: Domain) -> list[pa.Array]:
    """What follows from rows of codes by the domain's public tables; null where nothing does."""
    columns = []
    for following in domain.followings:
        follows = pa.array(following.codes, pa.int32()).take(pa.array(codes[:, following.place]))
        columns.append(pa.DictionaryArray.from_arrays(follows, pa.array(following.categories)))
    return columns


def not_following(records: pa.Table, codes: np.ndarray, domain: Domain) -> list[str]:
    """The derived attributes that some row has otherwise than its codes say."""
    found = []
    for following, column in zip(domain.followings, derived_columns(codes, domain), strict=True):
        wanted = pa.chunked_array([column.dictionary_decode()]).fill_null("")  # no category is empty
        if not records[following.derived.name].cast(pa.string()).fill_null("").equals(wanted):
            found.append(following.derived.name)
    return found


def disordered(records: pa.Table, codes: np.ndarray, domain: Domain, orders: Sequence[Conditional]) -> list[Comparison]:
    """The comparisons of numbers that some row breaks within a bin, where codes cannot tell."""
    found = []
    for each in orders:
        of = [domain.attributes[j] for j in each.compared.places]
        if not isinstance(of[0], Named) and not isinstance(of[1], Named):
            first, second = numbers_in(records[of[0].name], of[0]), numbers_in(records[of[1].name], of[1])
            wrong = first > second if each.compared.relation == "<=" else first != second
            if (wrong & concerned(each, lambda j: codes[:, j])).any():
                found.append(each.compared)
    return found
