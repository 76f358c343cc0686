"""The domain as SQL: every record becomes one category code per attribute, by public rules alone.

A code below the attribute's size is a category. Behind them stand three problems: missing where that is forbidden,
unreadable (not a number, a whole number or a date), outside (not in the domain). Same meaning as steps_engine.encoding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from schemas.expectations import AS_WRITTEN
from schemas.spec.attributes import Attribute, DateAttribute, Named, Numeric, Ranged
from schemas.spec.domain import Domain
from schemas.tables import code_type
from tasks.reading.sources import Source, literal

PROBLEMS = ("missing", "unreadable", "outside")  # as many codes as schemas/tables.py leaves room for
_SQL = {pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.int32(): "INTEGER"}
_NUMBER = literal(r"(?i)[+-]?(nan|inf(inity)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)")
_COMMA = literal(r"(?i)[+-]?(nan|inf(inity)?|([0-9]+,?[0-9]*|,[0-9]+)(e[+-]?[0-9]+)?)")
_TIME = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?Z?"
_DAY = literal(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({_TIME})?")
_DAY_US = 86_400_000_000
_LARGEST_WORD = 2**62


def category_types(domain: Domain) -> list[str]:
    """Statements that teach DuckDB the categories; a cast to such a type is one hash lookup, however many there are."""
    return [
        f"CREATE TYPE e{j} AS ENUM ({', '.join(map(literal, attribute.code_of_text))})"
        for j, attribute in enumerate(domain.attributes)
        if isinstance(attribute, Named)
    ]


def keyed_rows(source: Source, domain: Domain) -> str:
    """Every record with what it is grouped by, q0, q1, …: the value itself where few are expected, otherwise its code."""
    columns = _columns(source, domain)
    rows = _coded(source.relation(), [column for column in columns if not column.is_late], "q")
    late = ", ".join(f"{column.raw} AS q{column.j}" for column in columns if column.is_late)
    return f"(SELECT *, {late} FROM {rows})" if late else rows


def coded_rows(keyed: str, source: Source, domain: Domain) -> str:
    """Keyed rows with all codes k0, k1, …; after grouping, one lookup per cell instead of one per record."""
    columns = [replace(column, raw=f"q{column.j}") for column in _columns(source, domain)]
    early = ", ".join(f"q{column.j} AS k{column.j}" for column in columns if not column.is_late)
    rows = _coded(keyed, [column for column in columns if column.is_late], "k")
    return f"(SELECT *, {early} FROM {rows})" if early else rows


def keys(domain: Domain) -> str:
    return ", ".join(f"q{j}" for j in range(len(domain.attributes)))


def cells_sql(keyed: str, source: Source, domain: Domain) -> str:
    """Occupied cells of keyed rows, their codes packed into b0, b1, …, each with its number n of records."""
    distinct = f"(SELECT {keys(domain)}, count(*) AS records FROM {keyed} GROUP BY ALL)"
    return packed_cells(coded_rows(distinct, source, domain), domain)


def packed_cells(coded: str, domain: Domain) -> str:
    """Occupied cells of coded rows, each of which stands for so many `records`."""
    return f"SELECT {packed(domain)}, sum(records)::BIGINT AS n FROM {coded} GROUP BY ALL"


def packed(domain: Domain) -> str:
    """All codes of a row in b0, b1, …"""
    sums = (" + ".join(f"{stride} * k{j}::BIGINT" for j, stride in word) for word in words(domain))
    return ", ".join(f"{word} AS b{i}" for i, word in enumerate(sums))


def person_of(source: Source, domain: Domain) -> str:
    """Whose record it is; NULL where nobody is named, which is NaN in a column of numbers."""
    assert domain.unit.column is not None
    place = source.names.index(domain.unit.column)
    holds_numbers = source.columns[place][1] == "numbers"
    return f"CASE WHEN NOT isnan(CAST(c{place} AS DOUBLE)) THEN c{place} END" if holds_numbers else f"c{place}"


def word_names(domain: Domain) -> str:
    return ", ".join(f"b{i}" for i in range(len(words(domain))))


@dataclass(frozen=True)
class _Column:
    """An attribute, what its column in the source holds, and where its values stand in the rows at hand."""

    j: int
    attribute: Attribute
    holds: str
    raw: str
    comma: bool = False  # whether numbers that are text have a decimal comma

    @property
    def text(self) -> str:
        """The value as a file would write it: a whole number without a point, however it is stored."""
        if self.holds != "numbers":
            return f"CAST({self.raw} AS VARCHAR)"
        whole = f"{self.raw} = floor({self.raw}) AND abs({self.raw}) < 9007199254740992"
        number = f"CASE WHEN {whole} THEN CAST(CAST({self.raw} AS BIGINT) AS VARCHAR) ELSE CAST({self.raw} AS VARCHAR) END"
        return f"CASE WHEN NOT isnan(CAST({self.raw} AS DOUBLE)) THEN {number} END"

    @property
    def is_named(self) -> bool:
        return isinstance(self.attribute, Named)

    @property
    def is_late(self) -> bool:
        """Whether records are grouped by the value itself: it has one category per value, and no other is expected."""
        one_each = self.attribute.kind == "integer" and not self.attribute.binned and self.attribute.outside == "forbid"
        return self.is_named or (one_each and self.holds == "whole numbers")

    @property
    def is_float(self) -> bool:
        """Whether a value is computed with as a float, and may be NaN or have a fraction."""
        kind, holds = self.attribute.kind, self.holds
        return kind == "numeric" or holds in ("numbers", "times", "nothing") or (kind == "integer" and holds == AS_WRITTEN)


def _columns(source: Source, domain: Domain) -> list[_Column]:
    at = [source.names.index(name) for name in domain.names]
    comma = source.csv.decimal == ","
    return [
        _Column(j, attribute, source.columns[i][1], f"c{i}", comma)
        for j, (attribute, i) in enumerate(zip(domain.attributes, at, strict=True))
    ]


def _coded(rows: str, columns: list[_Column], code: str) -> str:
    """Rows with, per column, v (the value as read), w (clamped to the bounds), g (a first guess of the bin) and the code."""
    ranged = [(column, column.attribute) for column in columns if isinstance(column.attribute, Ranged)]
    even = [(attribute, column.j) for column, attribute in ranged if isinstance(attribute, Numeric) and not attribute.edges]
    layers = (
        [f"{_value(column)} AS v{column.j}" for column in columns],
        [f"{_clamped(column, attribute)} AS w{column.j}" for column, attribute in ranged],
        [f"{_guess(attribute, j)} AS g{j}" for attribute, j in even],
        [f"{_code(column)} AS {code}{column.j}" for column in columns],
    )
    for layer in layers:
        rows = f"(SELECT *, {', '.join(layer)} FROM {rows})" if layer else rows
    return rows


def words(domain: Domain) -> list[list[tuple[int, int]]]:
    """As few whole numbers as hold all codes; per number its (attribute, stride). Sorting them sorts the codes."""
    groups: list[list[tuple[int, int]]] = [[]]
    cells = 1
    for j, size in enumerate(domain.sizes):
        radix = size + len(PROBLEMS)
        if cells * radix > _LARGEST_WORD:
            groups, cells = [*groups, []], 1
        groups[-1], cells = [(i, stride * radix) for i, stride in groups[-1]] + [(j, 1)], cells * radix
    return groups


def unpacked(domain: Domain) -> list[str]:
    """The code of each attribute, from b0, b1, …"""
    return [
        f"(b{i} // {stride} % {domain.sizes[j] + len(PROBLEMS)})::{_SQL[code_type(domain.sizes[j])]}"
        for i, word in enumerate(words(domain))
        for j, stride in word
    ]


def _value(column: _Column) -> str:
    """The value as text, or as a number (days since 1970 for dates), or what the domain says it stands for; NULL for what
    cannot be read, and for NULL."""
    if not isinstance(column.attribute, Ranged):
        return column.text
    value = _as_stored(column)
    texts, numbers = column.attribute.number_of_text, column.attribute.number_of_number
    cases = [
        f"WHEN {value} = {_double(said)} THEN {_exact(column, meant)}" for said, meant in numbers.items() if meant is not None
    ]
    cases += [
        f"WHEN {column.text} = {literal(text)} THEN {_exact(column, meant)}"
        for text, meant in texts.items()
        if meant is not None
    ]
    return f"CASE {' '.join(cases)} ELSE {value} END" if cases else value


def _as_stored(column: _Column) -> str:
    kind, holds, raw = column.attribute.kind, column.holds, column.raw
    if holds == "nothing":
        return "CAST(NULL AS DOUBLE)"
    if kind == "date" and holds == "times":
        # The day, whatever the time: // cuts towards 0, so that the rest is taken off first.
        moment = f"epoch_us({raw})"
        return f"(({moment} - (({moment} % {_DAY_US}) + {_DAY_US}) % {_DAY_US}) // {_DAY_US})::DOUBLE"
    if isinstance(column.attribute, DateAttribute):
        return f"{raw if holds == 'dates' else _day(raw, column.attribute.format)} - DATE '1970-01-01'"
    if holds == AS_WRITTEN:
        pattern, point = (_COMMA, f"replace({raw}, ',', '.')") if column.comma else (_NUMBER, raw)
        return f"CASE WHEN regexp_full_match({raw}, {pattern}) THEN TRY_CAST({point} AS DOUBLE) END"
    return f"CAST({raw} AS DOUBLE)" if column.is_float else raw


def _day(raw: str, form: str | None) -> str:
    """The day that a text says: 2000-01-31, with or without a time, or in the form that the domain says."""
    if form is not None:
        day = f"CAST(try_strptime({raw}, {literal(form)}) AS DATE)"
        return f"CASE WHEN {day} >= DATE '0001-01-01' THEN {day} END"
    readable = f"regexp_full_match({raw}, {_DAY}) AND {raw} >= '0001'"
    return f"CASE WHEN {readable} THEN TRY_CAST(substr({raw}, 1, 10) AS DATE) END"


def _exact(column: _Column, number: float) -> str:
    return _double(number) if column.is_float else str(int(number))


def _clamped(column: _Column, attribute: Ranged) -> str:
    edges, shown = attribute.edge_values, _double if column.is_float else int
    top = edges[-1] if isinstance(attribute, Numeric) else edges[-1] - 1
    return f"greatest({shown(edges[0])}, least({shown(top)}, v{column.j}))"


def _code(column: _Column) -> str:
    attribute = column.attribute
    return _lookup(column) if isinstance(attribute, Named) else _binned(column, attribute)


def _lookup(column: _Column) -> str:
    """The code of a category; NULL and texts that the domain does not know are problems, or the missing category."""
    j, missing, outside = column.j, _problem(column.attribute, "missing"), _problem(column.attribute, "outside")
    found, codes = f"enum_code(TRY_CAST(v{j} AS e{j}))", _codes_of_texts(column.attribute)
    if codes != list(range(len(codes))):  # some texts stand for others
        found = f"list_extract({codes}, {found}::INTEGER + 1)"
    return f"coalesce({found}, CASE WHEN v{j} IS NULL THEN {missing} ELSE {outside} END)"


def _codes_of_texts(attribute: Attribute) -> list[int]:
    assert isinstance(attribute, Named)
    return list(attribute.code_of_text.values())


def _binned(column: _Column, attribute: Ranged) -> str:
    """The code of v by the attribute's policy for missing and outside values."""
    j = column.j
    missing, unreadable, outside = (_problem(attribute, problem) for problem in PROBLEMS)
    absent = f"{column.raw} IS NULL OR isnan(v{j})" if column.is_float else f"{column.raw} IS NULL"
    absent += _means_missing(column, attribute)
    cases = [f"WHEN {absent} THEN {missing}", f"WHEN v{j} IS NULL THEN {unreadable}"]
    if attribute.outside == "forbid":
        cases.append(f"WHEN v{j} <> w{j} THEN {outside}")
    if column.is_float and not isinstance(attribute, Numeric):
        cases.append(f"WHEN w{j} <> floor(w{j}) THEN {unreadable}")
    return f"CASE {' '.join(cases)} ELSE {_bin(attribute, j)} END"


def _means_missing(column: _Column, attribute: Ranged) -> str:
    """Or whether the value is one that the domain takes for missing: by its text, or by the number that it says."""
    texts = [text for text, meant in attribute.number_of_text.items() if meant is None]
    numbers = [number for number, meant in attribute.number_of_number.items() if meant is None]
    by_text = f" OR {column.text} IN ({', '.join(map(literal, texts))})" if texts else ""
    by_number = f" OR {_as_stored(column)} IN ({', '.join(map(_double, numbers))})" if numbers else ""
    return by_text + by_number


def _problem(attribute: Attribute, problem: str) -> int:
    """The code behind the categories that stands for a problem; a missing value is none where the domain says so."""
    if problem == "missing" and attribute.missing_code is not None:
        return attribute.missing_code
    return attribute.size + PROBLEMS.index(problem)


def _bin(attribute: Ranged, j: int) -> str:
    """The i with edge_i ≤ w < edge_i+1; the last bin holds the upper bound too."""
    if attribute.edges:
        return _search(f"w{j}", attribute.edge_values[1:-1].tolist(), 0)
    if isinstance(attribute, Numeric):
        start, step, last = _double(attribute.bounds[0]), _double(_step(attribute)), attribute.present - 1
        # Rounding moves the guess by one bin at most; the edges themselves, low + i·step, decide.
        too_high, too_low = f"w{j} < {start} + g{j} * {step}", f"g{j} < {last} AND w{j} >= {start} + (g{j} + 1) * {step}"
        return f"g{j} - ({too_high})::INTEGER + ({too_low})::INTEGER"
    low, past = int(attribute.edge_values[0]), int(attribute.edge_values[-1])
    count, span = attribute.present, past - low
    offset = f"(w{j} - {low})::BIGINT"
    if count == span:
        return offset
    # edge_i = low + ⌊i·span/count⌋ ≤ low + offset exactly when i·span < (offset + 1)·count.
    return f"(({offset} + 1)::HUGEINT * {count} - 1) // {span}"


def _guess(attribute: Numeric, j: int) -> str:
    low, step = _double(attribute.bounds[0]), _double(_step(attribute))
    return f"least(greatest(floor((w{j} - {low}) / {step}), 0), {attribute.present - 1})::INTEGER"


def _search(value: str, edges: list[float], first: int) -> str:
    """Binary search among edges, written out as nested CASEs; `first` is the code below them.

    >>> _search("w", [5.0], 0)
    "CASE WHEN w < '5.0'::DOUBLE THEN 0 ELSE 1 END"
    """
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below, above = _search(value, edges[:middle], first), _search(value, edges[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {value} < {_double(edges[middle])} THEN {below} ELSE {above} END"


def _step(attribute: Numeric) -> float:
    """numpy.linspace's own step, so that low + i·step are its edges to the last bit."""
    return (attribute.bounds[1] - attribute.bounds[0]) / attribute.present


def _double(value: float) -> str:
    """A number as SQL, read back to the same bits (a bare 0.1 would be a DECIMAL)."""
    return f"'{float(value)!r}'::DOUBLE"
