"""Files of Stata, SPSS and SAS: the labels of variables and values, from their headers. Values are never read."""

from __future__ import annotations

import re
from typing import Any

from schemas.errors import SpecError
from tasks.describing.description import DATES, NUMBERS, TEXT, WHOLE, Category, Description, Variable
from tasks.describing.documents import Document
from tasks.describing.facts import number, said, written
from tasks.describing.formats import DescribingFormat

_READERS = {
    ".dta": ("Stata", "read_dta"),
    ".sav": ("SPSS", "read_sav"),
    ".zsav": ("SPSS", "read_sav"),
    ".por": ("SPSS", "read_por"),
    ".sas7bdat": ("SAS", "read_sas7bdat"),
    ".xpt": ("SAS", "read_xport"),
    ".xport": ("SAS", "read_xport"),
}
_NO_DECIMALS = re.compile(r"[FN][0-9]+(\.0)?|%[0-9]+\.0f")  # %9.0g is how Stata shows any number
_MOST_MISSING = 100


def _claims(document: Document) -> bool:
    return document.suffix in _READERS


def _describe(document: Document, asked: str | None) -> Description:
    program, _ = _READERS[document.suffix]
    holds, metadata = _header(document)
    return Description(
        kind=f"labels of the {program} file",
        file=document.path.name,
        variables=tuple(_variable(name, held, metadata) for name, held in holds),
        title=said(metadata.file_label),
        records=str(document.path),
    )


def _header(document: Document) -> tuple[tuple[tuple[str, str], ...], Any]:
    """What columns hold, as it is read for a release, and the labels: both without a single record."""
    import pyreadstat

    from tasks.reading.sources import open_source

    holds, metadata = open_source(document.path).found, None
    program, reader = _READERS[document.suffix]
    told = {"user_missing": True} if program == "SPSS" and reader == "read_sav" else {}  # what is declared missing
    try:
        metadata = getattr(pyreadstat, reader)(str(document.path), metadataonly=True, **told)[1]
    except Exception:  # of many classes, and their words may quote the file
        pass
    if metadata is None:
        raise SpecError(f"{document.path}: its header cannot be read; write the file again.")
    return holds, metadata


def _variable(name: str, held: str, metadata: Any) -> Variable:
    labels = {text: said(label) for value, label in _value_labels(name, held, metadata) if (text := written(value))}
    missing = _declared_missing(name, metadata)
    categories = tuple(Category(value, label) for value, label in labels.items() if value not in missing)
    measure, form = metadata.variable_measure.get(name), metadata.original_variable_types.get(name) or ""
    whole = held == "whole numbers" or held == NUMBERS and bool(_NO_DECIMALS.fullmatch(form))
    measured = measure == "scale"
    return Variable(
        column=name,
        holds=DATES if held in ("dates", "times") else WHOLE if whole else held,
        title=said(metadata.column_names_to_labels.get(name)),
        categories=() if measured else categories,
        ordered=measure == "ordinal",
        may_be_missing=bool(missing),
        missing_values=tuple(missing),
        remarks=(f"labels of some values: {_some(categories)}",) if measured and categories else (),
    )


def _some(categories: tuple[Category, ...]) -> str:
    return ", ".join(f"{each.value} {each.label}" for each in categories[:5])


def _value_labels(name: str, held: str, metadata: Any) -> list[tuple[Any, str]]:
    """Labels of values, in the order of their codes; among numbers, Stata's .a to .z label what is missing."""
    found = (metadata.variable_value_labels.get(name) or {}).items()
    kept = [(value, label) for value, label in found if held == TEXT or not isinstance(value, str)]
    return sorted(kept, key=lambda pair: (number(pair[0]) is None, number(pair[0]) or 0, str(pair[0])))


def _declared_missing(name: str, metadata: Any) -> list[str]:
    values: list[str] = []
    for span in metadata.missing_ranges.get(name) or ():
        low, high = number(span["lo"]), number(span["hi"])
        if low is None or high is None:
            values += [text for text in (written(span["lo"]),) if text]
        elif low == high:
            values += [text for text in (written(low),) if text]
        elif high - low < _MOST_MISSING:
            values += [str(each) for each in range(int(low), int(high) + 1)]
    return list(dict.fromkeys(values))


ENTRY = DescribingFormat("labels", 5, "Stata, SPSS or SAS", "a .dta, .sav, .sas7bdat or .xpt file", _claims, _describe)
