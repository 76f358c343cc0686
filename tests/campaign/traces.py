"""Finds what must not be found: values of the records, in every form in which a file or a stream might hold them."""

from __future__ import annotations

import base64
import gzip
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CONFIDENTIAL = "confidential"
MOST_EXACT = 0.5  # of the exact counts; noise leaves a few of them as they were, and no more


def forms(secret: str) -> dict[str, bytes]:
    """The bytes by which a text is recognised, whatever stands before and after it."""
    plain = secret.encode()
    found = {"plain": plain, "UTF-16": secret.encode("utf-16-le"), "hex": plain.hex().encode()}
    found |= {"UTF-16, big": secret.encode("utf-16-be"), "HEX": plain.hex().upper().encode()}
    for before in range(3):  # base64 of three bytes is four letters: where it begins decides what it looks like
        coded = base64.b64encode(b"\0" * before + plain)
        found[f"base64 at {before}"] = coded[(0, 2, 3)[before] : -4]
    return found


def packed(number: int, variable: int = 0) -> dict[str, bytes]:
    """A whole number as tables hold it, but for its last `variable` bytes."""
    little, big = number.to_bytes(8, "little"), number.to_bytes(8, "big")
    return {"int64": little[variable:], "int64, big": big[: 8 - variable]}


Secrets = Mapping[str, Mapping[str, bytes]]  # by what it is: the forms of it


def traces_in(content: bytes, secrets: Secrets) -> list[str]:
    """Which secrets are there, and in which form; never the secret itself."""
    return [f"{what} ({form})" for what, known in secrets.items() for form, sought in known.items() if sought in content]


def _contents(path: Path) -> Iterator[bytes]:
    """A file's bytes, and what they unpack to."""
    content = path.read_bytes()
    yield content
    if content[:2] == b"\x1f\x8b":
        with suppress(OSError, EOFError):
            yield gzip.decompress(content)
    if content[:4] == b"PK\x03\x04":
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    if content[:4] == b"PAR1":
        with suppress(pa.ArrowException, OSError):
            yield repr([values for _, values in _distinct(path)]).encode()


def _distinct(path: Path) -> list[tuple[str, list]]:
    """Every value of every column of a table, once."""
    table = pq.read_table(path)
    return [(name, _values(column)) for name, column in zip(table.column_names, table.columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list:
    try:
        return column.unique().to_pylist()
    except pa.ArrowNotImplementedError:  # lists and the like
        return column.to_pylist()


def open_files(*places: Path) -> Iterator[Path]:
    """Every file under these places that is not below a folder named confidential."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if CONFIDENTIAL not in path.relative_to(place).parts and path.is_file() and not path.is_symlink():
                yield path


def leaks(secrets: Secrets, *places: Path) -> list[str]:
    """Every open file with a secret in it, or in its name."""
    found = []
    for path in open_files(*places):
        with suppress(FileNotFoundError):  # a temporary file of a process that lives
            contents = [str(path.name).encode(), *_contents(path)]
            found += [f"{path}: {what}" for what in dict.fromkeys(w for c in contents for w in traces_in(c, secrets))]
    return found


def exact_tables(exact: Iterable[int], *places: Path) -> list[str]:
    """Open tables in which most of the exact counts stand as they are; a column that holds their neighbours as well just numbers
    its rows."""
    wanted, found = set(exact), []
    others = {count + 1 for count in wanted} - wanted
    for path in open_files(*places):
        if path.suffix == ".parquet":
            with suppress(pa.ArrowException, OSError):
                for name, values in _distinct(path):
                    counts = {value for value in values if isinstance(value, int | float)}
                    more = len(wanted & counts) - len(others & counts)
                    found += [f"{path}: column {name} holds exact counts"] if more > MOST_EXACT * len(wanted) else []
    return found
