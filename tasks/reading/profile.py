"""Small tables about the records, computed inside DuckDB in one pass over them: what validation judges. CONFIDENTIAL.

The pass counts cells as `discretize` does, problems included, so what validation accepts is what will be counted. A
second look, for examples, is taken only at columns that have a problem; people are counted by a query of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import duckdb
import pandas as pd

from schemas import expectations
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain
from tasks.reading.encoding_sql import (
    PROBLEMS,
    breaks,
    category_types,
    cells_sql,
    coded_rows,
    judged_rows,
    keyed_rows,
    person_of,
    unpacked,
)
from tasks.reading.sources import Source, query
from tasks.reading.values_sql import as_text

EXAMPLES = 10
_SHOWN = 100  # characters of an example


@dataclass(frozen=True, repr=False)
class Finding:
    """How many rows have a problem, and some of their values."""

    rows: int | None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Profile:
    """The columns of the small frame, and (column, problem) → what was found."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def __or__(self, other: Profile) -> Profile:
        return Profile(self.values | other.values, self.findings | other.findings)

    def frame(self) -> pd.DataFrame:
        """Distinct values side by side; a shorter column repeats its own, which changes no expectation about values."""
        known = {name: values for name, values in self.values.items() if values}
        height = max(map(len, known.values()))
        return pd.DataFrame({name: [*islice(cycle(values), height)] for name, values in known.items()}, dtype=object)


def structure(source: Source, domain: Domain) -> Profile:
    """Columns and types, known before a record is read."""
    wanted = set(expectations.wanted_columns(domain))
    often = Counter(name.casefold() for name in source.wanted)
    doubled = [name for name in source.wanted if often[name.casefold()] > 1]
    found = {"lacking": wanted - set(source.names), "extra": set(source.wanted) - wanted, "doubled": set(doubled)}
    values: dict[str, list[Any]] = {expectations.COLUMNS: [*source.names] or ["(none)"], expectations.DOUBLED: [len(doubled)]}
    values |= {expectations.type_of(name): [holds] for name, holds in source.columns if name in wanted}
    findings = {("", problem): Finding(None, tuple(map(short, sorted(which)))) for problem, which in found.items() if which}
    findings |= {(name, "type"): Finding(None, (f"stored as {holds}",)) for name, holds in source.columns}
    return Profile(values, findings)


def contents(connection: duckdb.DuckDBPyConnection, source: Source, domain: Domain) -> Profile:
    """Rows, values, rules and people, from one pass over the records (and one over the column of people)."""
    for statement in category_types(domain):
        query(connection, statement)
    query(connection, f"CREATE TEMP TABLE cells AS {cells_sql(keyed_rows(source, domain), source, domain)}")
    rows = query(connection, "SELECT coalesce(sum(n), 0)::BIGINT AS n FROM cells")["n"][0].as_py()
    profile = Profile({expectations.BROKEN: [0], expectations.ROWS: [rows]}, {("", "rows"): Finding(rows)})
    for j in range(len(domain.attributes)):
        profile |= _column(connection, source, domain, j)
    return profile | _rules(connection, domain) | _people(connection, source, domain) | _weights(connection, source, domain)


def _column(connection: duckdb.DuckDBPyConnection, source: Source, domain: Domain, j: int) -> Profile:
    """Distinct values of one column: a bin's first value stands for its bin, and for what is outside its extremes."""
    sql = f"SELECT {unpacked(domain)[j]} AS code, sum(n)::BIGINT AS n FROM cells GROUP BY 1 ORDER BY n DESC, code"
    coded = coded_rows(keyed_rows(source, domain), source, domain)
    return _values(connection, source, domain.attributes[j], sql, f"{coded} WHERE k{j}", f"v{j}")


def _weights(connection: duckdb.DuckDBPyConnection, source: Source, domain: Domain) -> Profile:
    """The column of weights, as one of numbers in one bin."""
    if domain.weight is None:
        return Profile()
    j, judged = len(domain.names), judged_rows(source, domain)
    sql = f"SELECT p{j} AS code, count(*) AS n FROM {judged} GROUP BY 1 ORDER BY n DESC, code"
    return _values(connection, source, domain.weight.attribute, sql, f"{judged} WHERE p{j}", f"v{j}")


def _values(
    connection: duckdb.DuckDBPyConnection, source: Source, attribute: Attribute, sql: str, of_code: str, value: str
) -> Profile:
    """What stands in a column, by the query for its codes; `of_code` begins one for the rows of a code."""
    rows = {row["code"]: row["n"] for row in query(connection, sql).to_pylist()}
    stands_for = attribute.categories if isinstance(attribute, Named) else attribute.layout.low.tolist()
    usual = [code for code in rows if code < attribute.size][:EXAMPLES]
    values: list[Any] = [stands_for[code] if code < attribute.present else None for code in usual]
    values += [] if rows else [stands_for[0]]  # of no record every expectation about values holds, as of a value of the domain
    findings = {}
    for i, problem in enumerate(PROBLEMS):
        if attribute.size + i in rows:
            column = f"c{source.names.index(attribute.name)}"
            some, extremes = _look(connection, column, value, f"{of_code} = {attribute.size + i}")
            findings[attribute.name, problem] = Finding(rows[attribute.size + i], some)
            values += {"missing": [None], "unreadable": [], "outside": extremes}[problem]
    unreadable = findings.get((attribute.name, "unreadable"), Finding(0)).rows
    read = {} if isinstance(attribute, Named) else {expectations.unreadable_in(attribute.name): [unreadable]}
    return Profile({attribute.name: values} | read, findings)


def _look(connection: duckdb.DuckDBPyConnection, column: str, value: str, rows: str) -> tuple[tuple[str, ...], list[Any]]:
    """The most frequent values with a problem, as they stand in the files, and the extremes of all of them."""
    sql = (
        f"SELECT CAST({column} AS VARCHAR) AS value, count(*) AS n, count(*) OVER () AS kinds, "
        f"min(min({value})) OVER () AS low, max(max({value})) OVER () AS high "
        f"FROM {rows} GROUP BY value ORDER BY n DESC, value LIMIT {EXAMPLES}"
    )
    found = query(connection, sql).to_pylist()
    some = [f"{short(row['value'])} ({row['n']:,}×)" for row in found]
    more = found[0]["kinds"] - len(found)
    return (*some, *([f"and {more:,} more values"] if more else [])), [found[0]["low"], found[0]["high"]]


def _rules(connection: duckdb.DuckDBPyConnection, domain: Domain) -> Profile:
    codes, values, findings = unpacked(domain), {}, {}
    for number, zero in enumerate(domain.zeros, 1):
        sql = f"SELECT coalesce(sum(n), 0)::BIGINT AS n FROM cells WHERE {breaks(zero, codes)}"
        rows = query(connection, sql)["n"][0].as_py()
        values[expectations.rule_breaks(number)] = [rows]
        findings[expectations.of_rule(domain, number), f"rule {number}"] = Finding(rows)
    return Profile(values, findings)


def _people(connection: duckdb.DuckDBPyConnection, source: Source, domain: Domain) -> Profile:
    unit = domain.unit
    if unit.column is None:
        return Profile()
    person, bound, holds = person_of(source, domain), unit.rows_per_person, dict(source.columns)[unit.column]
    written = ", ".join(f"{as_text(who, holds)} AS {who}" for who in ("fewest", "many"))
    breaks = f"n <> {bound}" if unit.exactly else f"n > {bound}"
    sql = (
        f"SELECT * REPLACE ({written}) FROM (SELECT "
        f"coalesce(min(n) FILTER (person IS NOT NULL), {bound}) AS least, "  # without people, nobody breaks the bound
        f"coalesce(max(n) FILTER (person IS NOT NULL), {bound}) AS most, "
        "coalesce(sum(n) FILTER (person IS NULL), 0)::BIGINT AS without, "
        f"coalesce(sum(n) FILTER (person IS NOT NULL AND {breaks}), 0)::BIGINT AS broken, "
        "min_by(person, n) FILTER (person IS NOT NULL) AS fewest, max_by(person, n) FILTER (person IS NOT NULL) AS many "
        f"FROM (SELECT {person} AS person, count(*) AS n FROM {source.relation()} GROUP BY 1))"
    )
    [found] = query(connection, sql).to_pylist()
    who = ({found["least"]: found["fewest"]} if unit.exactly else {}) | {found["most"]: found["many"]}
    numbers = sorted(who)
    listed = (number for number in numbers if number != bound or not unit.exactly)
    some = tuple(f"one {unit.who} has {number:,} records: {short(who[number])}" for number in listed)
    findings = {(unit.column, "missing"): Finding(found["without"]), (unit.column, "excess"): Finding(found["broken"], some)}
    return Profile({expectations.PERSON_ROWS: numbers, expectations.NO_PERSON: [found["without"]]}, findings)


def short(text: str | None) -> str:
    return "(nothing)" if text is None else text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
