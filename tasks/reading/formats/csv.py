"""CSV: a header and double quotes, commas and UTF-8 unless domain or header say more; every value is read as it is written."""

from __future__ import annotations

import codecs
import csv
import io
import shutil
from collections.abc import Sequence
from pathlib import Path

from schemas.errors import SpecError
from schemas.expectations import AS_WRITTEN
from schemas.spec.reading import Csv
from tasks.reading.formats import MOST_COLUMNS, Columns, Ends, SourceFormat, Unpack, Unreadable

HEAD = 1 << 20  # bytes of a file looked at before it is read
SEPARATORS = (",", ";", "\t", "|")
UTF_8 = "utf-8"


def _claims(ends: Ends) -> bool:
    return ends.suffix == ".csv"


def _settle(file: str, how: Csv) -> Csv:
    """What the first bytes and the header say for themselves: UTF-16 by its mark, and what separates the most names."""
    if how.encoding == UTF_8 and _head(file)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        how = how.model_copy(update={"encoding": "utf-16"})
    if how.separator is None:
        header = _decoded(file, how)
        most = max(SEPARATORS, key=lambda each: len(_names(header, each)))  # the first of those that do as well
        how = how.model_copy(update={"separator": most})
    return how


def _columns(files: tuple[str, ...], how: Csv) -> list[Columns]:
    return [_header(file, how) for file in files]


def _header(file: str, how: Csv) -> Columns:
    """The names in the first line."""
    names = _names(_decoded(file, how), how.separator or ",")
    if len(names) > MOST_COLUMNS:
        raise SpecError(f"source {file}: more than {MOST_COLUMNS:,} columns.")
    return tuple((name, AS_WRITTEN) for name in names)  # types learnt from records would leak


def _names(header: str, separator: str) -> list[str]:
    return next(csv.reader(io.StringIO(header, newline=""), delimiter=separator), [])


def _head(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(HEAD)


def _decoded(file: str, how: Csv) -> str:
    """The first bytes as text, without a character that was cut off where they end."""
    head, encoding = _head(file), "utf-8-sig" if how.encoding == UTF_8 else how.encoding
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=len(head) < HEAD)
    except UnicodeError:
        text = "\0"
    if "\0" in text:
        advice = "say which: csv: {encoding: …} in dataset.yaml, or convert it" if how.encoding == UTF_8 else "say another"
        raise SpecError(f"source {file}: not {how.encoding.upper()} text; {advice}.")
    if len(head) == HEAD and "\n" not in text:
        raise SpecError(f"source {file}: the first line is longer than {HEAD:,} bytes; is this a CSV file?")
    return text


def _relation(files: str, names: Sequence[str], how: Csv) -> str:
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    return (
        f"read_csv({files}, columns={{{columns}}}, auto_detect=false, header=true, delim='{how.separator or ','}', "
        "quote='\"', escape='\"', nullstr='', encoding='utf-8', strict_mode=true, null_padding=false, hive_partitioning=false)"
    )


def _unpack(how: Csv) -> Unpack | None:
    """DuckDB reads UTF-8; other encodings are written anew."""
    return None if how.encoding == UTF_8 else _transcode


def _transcode(file: str, target: Path, columns: Columns, how: Csv) -> None:
    try:
        with (
            open(file, encoding=how.encoding, newline="") as source,
            open(target, "w", encoding=UTF_8, newline="") as written,
        ):
            shutil.copyfileobj(source, written, HEAD)
    except UnicodeError as error:
        raise Unreadable(
            f"not {how.encoding} text: {error.reason if isinstance(error, UnicodeDecodeError) else error}"
        ) from None


ENTRY = SourceFormat(
    "csv", 2, "CSV", _claims, _columns, _relation, known_by="a CSV file is named .csv", settle=_settle, unpack=_unpack
)
