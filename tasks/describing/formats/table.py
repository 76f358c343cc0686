"""A plain table, CSV or Parquet: names of columns, and of Parquet their types. Neither values nor statistics of them."""

from __future__ import annotations

from tasks.describing.description import BOOLEANS, DATES, NUMBERS, TEXT, TIMES, UNKNOWN, WHOLE, Category, Description, Variable
from tasks.describing.documents import Document
from tasks.describing.formats import DescribingFormat

_HOLDS = {
    "text": TEXT,
    "whole numbers": WHOLE,
    "numbers": NUMBERS,
    "dates": DATES,
    "times": DATES,
    "times of day": TIMES,
    "true or false": BOOLEANS,
}


def _claims(document: Document) -> bool:
    return document.suffix == ".csv" or document.start.startswith(b"PAR1") or document.suffix in (".parquet", ".pq")


def _describe(document: Document, asked: str | None) -> Description:
    from tasks.reading.formats import FORMATS
    from tasks.reading.sources import open_source

    source = open_source(document.path)
    separator = source.csv.separator
    return Description(
        kind=f"columns of the {FORMATS.named(source.format).title} file",
        file=document.path.name,
        variables=tuple(_variable(name, held) for name, held in source.found),
        records=str(document.path),
        csv=(("separator", separator),) if separator not in (None, ",") else (),
        bare=True,
        remarks=("names and types only: nothing else may be learnt from records",),
    )


def _variable(name: str, held: str) -> Variable:
    holds = _HOLDS.get(held, UNKNOWN)
    return Variable(name, holds, categories=(Category("false"), Category("true")) if holds == BOOLEANS else ())


ENTRY = DescribingFormat("table", 6, "CSV or Parquet", "a .csv or .parquet file", _claims, _describe)
