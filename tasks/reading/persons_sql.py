"""Rows per person as SQL: the query that counts keeps the bound itself, whatever the files hold by the time it runs.

Where a bound does not hold, DuckDB ends the query with an error; its text is ours and names nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from schemas.spec.domain import Domain
from tasks.reading.encoding_sql import (
    category_types,
    cells_sql,
    coded_rows,
    counted_rows,
    keys,
    packed,
    packed_cells,
    person_of,
    unpacked,
    word_names,
)
from tasks.reading.sources import Source, query
from tasks.reading.weights_sql import UNITS, number, rounded

KEY = "key_of_lots"
_REFUSED = "error('a record belongs to nobody, or somebody has another number of records than the domain says')"


def prepare(connection: duckdb.DuckDBPyConnection, domain: Domain, key: bytes) -> None:
    """Teaches DuckDB the categories, and the key of the lots as a variable: no text of a query holds it."""
    for statement in category_types(domain):
        query(connection, statement)
    query(connection, f"SET VARIABLE {KEY} = ?", [key.hex()])


def bounded_cells(source: Source, domain: Domain) -> str:
    """Occupied cells of all records, or of those that a person keeps; refuses what breaks the bound on rows per person.

    With weights in millionths of a unit, which add up over files as records do; `whole_units` makes whole ones of their sum.
    """
    if domain.unit.column is None:
        return cells_sql(counted_rows(source, domain), source, domain, number(domain))
    if domain.unit.excess == "drop":
        cell = word_names(domain)
        wanted = f"{cell}, {UNITS}" if domain.weight else cell
        return f"SELECT {cell}, {number(domain)}::BIGINT AS n FROM {kept_rows(source, domain, wanted)} GROUP BY ALL"
    return packed_cells(coded_rows(_distinct_within_bound(source, domain), source, domain), domain)


def whole_units(cells: str, domain: Domain) -> str:
    """The cells as they are counted: of weights, each rounded by a lot of its own."""
    return rounded(cells, word_names(domain), unpacked(domain), domain, KEY)


def _distinct_within_bound(source: Source, domain: Domain) -> str:
    """Distinct keyed rows with their number, and every person's number of rows, from one pass: persons are checked and go."""
    unit, person, cell = domain.unit, person_of(source, domain), keys(domain)
    breaks = f"count(*) {'<>' if unit.exactly else '>'} {unit.rows_per_person}"
    within = f"CASE WHEN grouping({person}) = 1 THEN true WHEN {person} IS NULL OR {breaks} THEN {_REFUSED} ELSE false END"
    return (
        f"(SELECT {cell}, {number(domain)} AS records FROM {counted_rows(source, domain)} "
        f"GROUP BY GROUPING SETS (({cell}), ({person})) HAVING {within})"
    )


def kept_rows(source: Source, domain: Domain, wanted: str, among_equal: Sequence[str] = ()) -> str:
    """What is wanted of at most rows_per_person records of each person, those with the lowest lots.

    A record's lot is SHA-256 of key|codes|occurrence|person: digits between bars, as many as there are attributes, and the
    person last, so that different records have different texts. Which records stay depends on the key and on that person's
    own records alone: neither on other people nor on the order of rows and files. Records with equal codes are
    interchangeable; their weights, then `among_equal` order them where more is wanted. Same choice as steps_engine's encode.
    """
    cell, person, bound = word_names(domain), person_of(source, domain), domain.unit.rows_per_person
    among_equal = (*((UNITS,) if domain.weight else ()), *among_equal)
    order = f" ORDER BY {', '.join(among_equal)}" if among_equal else ""
    rows = f"(SELECT *, {packed(domain)} FROM {coded_rows(counted_rows(source, domain), source, domain)})"
    occurrence = f"row_number() OVER (PARTITION BY {person}, {cell}{order})"
    numbered = f"(SELECT *, {occurrence} AS occurrence, count(*) OVER (PARTITION BY {person}) AS records FROM {rows})"
    text = f"concat_ws('|', getvariable('{KEY}'), {', '.join(unpacked(domain))}, occurrence, {person})"
    lot = f"CASE WHEN records > {bound} THEN sha256({text}) END"  # whoever keeps the bound keeps all records: no lots
    turn = f"row_number() OVER (PARTITION BY {person} ORDER BY lot)"
    kept = f"CASE WHEN {person} IS NULL THEN {_REFUSED} ELSE {turn} <= {bound} END"
    return f"(SELECT {wanted} FROM (SELECT *, {lot} AS lot FROM {numbered}) QUALIFY {kept})"
