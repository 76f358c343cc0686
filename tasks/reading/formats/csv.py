"""CSV: comma, double quotes, UTF-8 with or without a byte order mark, a header; every value is read as it is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from schemas.errors import SpecError
from schemas.expectations import AS_WRITTEN
from tasks.reading.formats import MOST_COLUMNS, Columns, Ends, SourceFormat

HEAD = 1 << 20  # bytes of a file looked at before it is read


def _claims(ends: Ends) -> bool:
    return ends.suffix == ".csv"


def _columns(files: tuple[str, ...]) -> list[Columns]:
    return [_header(file) for file in files]


def _header(file: str) -> Columns:
    """The names in the first line."""
    with open(file, "rb") as stream:
        head = stream.read(HEAD)
    whole, text = len(head) < HEAD, _decoded(head)
    if text is None or "\0" in text:
        raise SpecError(f"source {file}: not UTF-8 text; convert it to UTF-8.")
    if not whole and "\n" not in text:
        raise SpecError(f"source {file}: the first line is longer than {HEAD:,} bytes; is this a CSV file?")
    names = next(csv.reader(io.StringIO(text, newline="")), [])
    if len(names) > MOST_COLUMNS:
        raise SpecError(f"source {file}: more than {MOST_COLUMNS:,} columns.")
    return tuple((name, AS_WRITTEN) for name in names)  # types learnt from records would leak


def _decoded(head: bytes) -> str | None:
    """The text, without a character that was cut off where the file was; None where it is not UTF-8."""
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        cut = len(head) == HEAD and error.start > len(head) - 4 and error.reason == "unexpected end of data"
        return head[: error.start].decode("utf-8-sig") if cut else None


def _relation(files: str, names: Sequence[str]) -> str:
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    return (
        f"read_csv({files}, columns={{{columns}}}, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', "
        "nullstr='', encoding='utf-8', strict_mode=true, null_padding=false, hive_partitioning=false)"
    )


ENTRY = SourceFormat("csv", 2, "CSV", _claims, _columns, _relation, known_by="a CSV file is named .csv")
