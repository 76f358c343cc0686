"""Tables that dataset.yaml names by file: columns of a small CSV, read where the domain is, and part of it from then on."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.spec.geography import in_tree_order, tree_problem
from schemas.spec.yaml import LARGEST_SPEC, Document, Keys, read_text

MOST_LINES = 100_000
Line = tuple[int, str, str]  # its number in the file, and its two values


def with_tables(document: Document, folder: Path) -> Document:
    """The document with every table that it names by file in the place of the file's name."""
    if not isinstance(document.data, dict):
        return document
    data = _with_files(document.data, document, folder, ())
    if isinstance(linked := data.get("tables"), dict):
        both = {name: _with_files(table, document, folder, ("tables", name)) for name, table in linked.items()}
        data = data | {"tables": both}
    return replace(document, data=data)


def _with_files(said: Any, document: Document, folder: Path, at: Keys) -> Any:
    """What is said of one table, with what files say of its attributes and of what is derived."""
    data = dict(said) if isinstance(said, dict) else {}
    for key, part in (("attributes", _with_weights), ("attributes", _with_places), ("derived", _with_mapping)):
        if isinstance(entries := data.get(key), tuple):
            data[key] = tuple(part(entry, document, folder, (*at, key, place)) for place, entry in enumerate(entries))
    return data or said


def _with_weights(attribute: Any, document: Document, folder: Path, at: Keys) -> Any:
    within = attribute.get("within") if isinstance(attribute, dict) else None
    if not isinstance(within, dict) or not isinstance(file := within.get("weights"), str):
        return attribute
    place, path = document.place((*at, "within", "weights")), folder / file
    weights = tuple(
        (_number(value, f"{place}: {path}", n), _number(weight, f"{place}: {path}", n))
        for n, value, weight in _lines(path, place)
    )
    return attribute | {"within": within | {"weights": weights}}


def _with_places(attribute: Any, document: Document, folder: Path, at: Keys) -> Any:
    """Places within places, in the order of their tree; refused where the table is none, with the line."""
    geography = attribute.get("geography") if isinstance(attribute, dict) else None
    if not isinstance(geography, dict) or not isinstance(file := geography.get("table"), str):
        return attribute
    path, levels = folder / file, geography.get("levels")
    if not isinstance(levels, tuple) or len(levels) < 2 or not all(isinstance(level, str) for level in levels):
        raise SpecError(f"{document.place((*at, 'geography'))}: name at least two levels, coarsest first: [region, tract].")
    place = document.place((*at, "geography", "table"))
    lines = _table(path, place, levels)
    rows = [row for _, row in lines]
    if problem := tree_problem(levels, rows):
        raise SpecError(f"{place}: {path}, line {lines[problem[0]][0]}: {problem[1]}.")
    return {"kind": "categorical"} | attribute | {"geography": geography | {"table": in_tree_order(rows)}}


def _table(path: Path, place: str, columns: tuple[str, ...]) -> list[tuple[int, tuple[str, ...]]]:
    """The lines of a table that has these columns, in any order, each with its number."""
    header, *lines = _read(path, place)
    names = [cell.strip() for cell in header[1]]
    if sorted(names) != sorted(columns):
        lacking = next((column for column in columns if column not in names), None)
        hint = f" There is no {lacking!r}; {meant(lacking, names)}" if lacking else ""
        raise SpecError(
            f"{place}: {path}: its columns are {', '.join(names)}; write one for each level: {', '.join(columns)}.{hint}"
        )
    for n, row in lines:
        if len(row) != len(columns) or not all(cell.strip() for cell in row):
            raise SpecError(
                f"{place}: {path}, line {n}: {_filled(row)} of {len(columns)} values; a line has one for each level."
            )
    order = [names.index(column) for column in columns]
    return [(n, tuple(row[i].strip() for i in order)) for n, row in lines]


def _with_mapping(derived: Any, document: Document, folder: Path, at: Keys) -> Any:
    if not isinstance(derived, dict) or not isinstance(file := derived.get("by"), str):
        return derived
    path, found = folder / file, dict[str, str]()
    place = document.place((*at, "by"))
    for n, category, follows in _lines(path, place):
        if category in found:
            raise SpecError(f"{place}: {path}, line {n}: {category!r} stands twice; keep one.")
        found[category] = follows
    return derived | {"by": found}


def _read(path: Path, place: str) -> list[tuple[int, list[str]]]:
    """Header and lines with their numbers; as `;` separates them where the header has no comma."""
    text = read_text(path, LARGEST_SPEC, f"{place}: ")
    header = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in header and "," not in header else ",", strict=True)
    try:
        lines = [(rows.line_num, row) for row in rows if row]
    except csv.Error:
        raise SpecError(f"{place}: {path}: not readable as CSV. Write two columns or more with a header.") from None
    if not 1 < len(lines) <= MOST_LINES + 1:
        raise SpecError(
            f"{place}: {path}: {max(len(lines) - 1, 0):,} lines behind its header; 1 to {MOST_LINES:,} can be used."
        )
    return lines


def _lines(path: Path, place: str) -> list[Line]:
    """The lines behind the header."""
    lines = _read(path, place)[1:]
    for n, row in lines:
        if len(row) != 2 or not all(cell.strip() for cell in row):
            raise SpecError(f"{place}: {path}, line {n}: {_filled(row)} values; a line of this table has two, none is empty.")
    return [(n, row[0].strip(), row[1].strip()) for n, row in lines]


def _filled(row: list[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _number(text: str, place: str, line: int) -> Decimal:
    try:
        if (number := Decimal(text)).is_finite() and abs(number.adjusted()) < 30:
            return number
    except InvalidOperation:
        pass
    raise SpecError(f"{place}, line {line}: {text!r} is not a number.")
