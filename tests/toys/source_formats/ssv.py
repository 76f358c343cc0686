"""A toy format in one file: values between semicolons, in files named .ssv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schemas.expectations import AS_WRITTEN
from schemas.spec.reading import Csv
from tasks.reading.formats import Columns, Ends, SourceFormat


def claims(ends: Ends) -> bool:
    return ends.suffix == ".ssv"


def columns(files: tuple[str, ...], csv: Csv) -> list[Columns]:
    headers = (Path(file).read_text(encoding="utf-8").partition("\n")[0] for file in files)
    return [tuple((name, AS_WRITTEN) for name in header.split(";")) for header in headers]


def relation(files: str, names: Sequence[str], csv: Csv) -> str:
    types = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
    return f"read_csv({files}, columns={{{types}}}, auto_detect=false, header=true, delim=';', nullstr='')"


ENTRY = SourceFormat("ssv", 10, "SSV", claims, columns, relation, known_by="an SSV file is named .ssv")
