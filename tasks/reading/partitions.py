"""Columns that stand in the names of folders, year=2025/region=a/part.parquet, as Hive, Spark and DuckDB write them.

A folder's key is a column where the domain wants one that the files do not have, and is nothing otherwise: a folder that
happens to be called so changes no source. Values are taken as they are written, decoded as addresses are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from urllib.parse import unquote

from schemas.errors import SpecError
from schemas.expectations import AS_WRITTEN, wanted_columns
from schemas.spec.domain import Domain
from tasks.reading.formats import Columns
from tasks.reading.locked_down import literal

NOTHING = "__HIVE_DEFAULT_PARTITION__"  # how Hive writes a missing value
MOST_PARTITIONS = 10_000


def is_partition(folder: str) -> bool:
    """Whether every folder on a relative path is a key and a value.

    >>> is_partition("year=2025/region=a"), is_partition("year=2025/old"), is_partition("=x")
    (True, False, False)
    """
    return all(part.partition("=")[0] and "=" in part for part in PurePath(folder).parts)


def keys_of(files: Sequence[str], path: object, columns: Columns, domain: Domain | None) -> tuple[str, ...]:
    """The keys that are columns, as the folders call them, in the domain's order; every file has them all, each once."""
    if domain is None:
        return ()
    written = {name: column for column, name in domain.rename.items()}
    held = {name for name, _ in columns}
    wanted = [written.get(name, name) for name in wanted_columns(domain)]
    lacking = [name for name in wanted if name not in held]
    named = {key for file in files for key, _ in _pairs(file)} if lacking else set()
    keys = tuple(name for name in lacking if name in named)
    for file in files if keys else ():
        found = [key for key, _ in _pairs(file)]
        if wrong := next((key for key in keys if found.count(key) != 1), None):
            how = "twice" if wrong in found else "not"
            raise SpecError(
                f"source {path}: the folders of {Path(file).name} say {wrong}=… {how}, those of other files once; give files "
                "whose folders have the same keys."
            )
    if keys and len({_values(file, keys) for file in files}) > MOST_PARTITIONS:
        raise SpecError(f"source {path}: more than {MOST_PARTITIONS:,} partitions; write fewer, larger ones.")
    return keys


def as_written(keys: Sequence[str]) -> Columns:
    return tuple((key, AS_WRITTEN) for key in keys)


def _pairs(file: str) -> list[tuple[str, str]]:
    parts = (part.partition("=") for part in PurePath(file).parts[:-1])
    return [(unquote(key), unquote(value)) for key, is_one, value in parts if is_one and key]


def _values(file: str, keys: Sequence[str]) -> tuple[str | None, ...]:
    found = dict(_pairs(file))
    return tuple(None if found[key] == NOTHING else found[key] for key in keys)


def partitioned(
    files: Sequence[str], read: Sequence[str], keys: Sequence[str], first: int, relation: Callable[[Sequence[str]], str]
) -> str:
    """The table of all partitions as SQL; `read` is what is read of each file, and `first` the number of the first key."""
    groups: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for file, place in zip(files, read, strict=True):
        groups[_values(file, keys)].append(place)
    return "(" + " UNION ALL ".join(_one(values, first, relation(places)) for values, places in groups.items()) + ")"


def _one(values: Sequence[str | None], first: int, table: str) -> str:
    columns = ", ".join(
        f"{'CAST(NULL AS VARCHAR)' if value is None else literal(value)} AS c{first + i}" for i, value in enumerate(values)
    )
    return f"SELECT *, {columns} FROM {table}"
