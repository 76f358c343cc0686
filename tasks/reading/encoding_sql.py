"""The domain as SQL: every record becomes one category code per attribute, by public rules alone.

A code below the attribute's size is a category. Behind them stand three problems: missing where that is forbidden,
unreadable (not a number, a whole number or a date), outside (not in the domain). Same meaning as steps_engine.encoding.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from schemas.spec.attributes import Attribute, Named, Numeric, Ranged
from schemas.spec.domain import Domain
from schemas.spec.rules import Comparison, Never
from schemas.tables import code_type
from tasks.reading.locked_down import literal
from tasks.reading.sources import Source
from tasks.reading.values_sql import Column, double, means_missing, value_of
from tasks.reading.weights_sql import weighed_rows, weight_column

PROBLEMS = ("missing", "unreadable", "outside")  # as many codes as schemas/tables.py leaves room for
_SQL = {pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.int32(): "INTEGER"}
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
    return _keyed(source.relation(), source, domain)


def counted_rows(source: Source, domain: Domain) -> str:
    """Keyed rows with their units, where records have weights."""
    return _keyed(weighed_rows(judged_rows(source, domain), domain), source, domain)


def judged_rows(source: Source, domain: Domain) -> str:
    """Every record with its weight as read and, as the code of one bin, what is wrong with it; or as it is, without weights."""
    return _coded(source.relation(), [weight_column(source, domain)], "p") if domain.weight else source.relation()


def _keyed(rows: str, source: Source, domain: Domain) -> str:
    columns = _columns(source, domain)
    rows = _coded(rows, [column for column in columns if not column.is_late], "q")
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


def cells_sql(keyed: str, source: Source, domain: Domain, what: str = "count(*)") -> str:
    """Occupied cells of keyed rows, their codes packed into b0, b1, …, each with n, its records or `what` is counted."""
    distinct = f"(SELECT {keys(domain)}, {what} AS records FROM {keyed} GROUP BY ALL)"
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


def _columns(source: Source, domain: Domain) -> list[Column]:
    at = [source.names.index(name) for name in domain.names]
    comma = source.csv.decimal == ","
    return [
        Column(j, attribute, source.columns[i][1], f"c{i}", comma)
        for j, (attribute, i) in enumerate(zip(domain.attributes, at, strict=True))
    ]


def _coded(rows: str, columns: list[Column], code: str) -> str:
    """Rows with, per column, v (the value as read), w (clamped to the bounds), g (a first guess of the bin) and the code."""
    ranged = [(column, column.attribute) for column in columns if isinstance(column.attribute, Ranged)]
    even = [(attribute, column.j) for column, attribute in ranged if isinstance(attribute, Numeric) and not attribute.edges]
    layers = (
        [f"{value_of(column)} AS v{column.j}" for column in columns],
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


def breaks(zero: Never | Comparison, codes: list[str]) -> str:
    """Whether a cell breaks a rule, by the SQL of each attribute's code."""
    if isinstance(zero, Never):
        return " AND ".join(f"{codes[j]} IN ({', '.join(map(str, which))})" for j, which in zero.codes.items())
    first, second = codes[zero.first], codes[zero.second]
    return f"{first} < {zero.present} AND {second} < {zero.present} AND NOT {first} {zero.relation} {second}"


def _clamped(column: Column, attribute: Ranged) -> str:
    shown = double if column.is_float else int
    return f"greatest({shown(attribute.edge_values[0])}, least({shown(attribute.highest)}, v{column.j}))"


def _code(column: Column) -> str:
    attribute = column.attribute
    return _lookup(column) if isinstance(attribute, Named) else _binned(column, attribute)


def _lookup(column: Column) -> str:
    """The code of a category; NULL and texts that the domain does not know are problems, or the missing category."""
    j, missing, outside = column.j, _problem(column.attribute, "missing"), _problem(column.attribute, "outside")
    found, codes = f"enum_code(TRY_CAST(v{j} AS e{j}))", _codes_of_texts(column.attribute)
    if codes != list(range(len(codes))):  # some texts stand for others
        found = f"list_extract({codes}, {found}::INTEGER + 1)"
    return f"coalesce({found}, CASE WHEN v{j} IS NULL THEN {missing} ELSE {outside} END)"


def _codes_of_texts(attribute: Attribute) -> list[int]:
    assert isinstance(attribute, Named)
    return list(attribute.code_of_text.values())


def _binned(column: Column, attribute: Ranged) -> str:
    """The code of v by the attribute's policy for missing and outside values."""
    j = column.j
    missing, unreadable, outside = (_problem(attribute, problem) for problem in PROBLEMS)
    absent = f"{column.raw} IS NULL OR isnan(v{j})" if column.is_float else f"{column.raw} IS NULL"
    absent += means_missing(column, attribute)
    cases = [f"WHEN {absent} THEN {missing}", f"WHEN v{j} IS NULL THEN {unreadable}"]
    if attribute.is_open:
        if column.is_float and attribute.is_whole:
            cases.append(f"WHEN v{j} > w{j} AND v{j} <> floor(v{j}) THEN {unreadable}")
        cases.append(f"WHEN v{j} > w{j} THEN {attribute.present - 1}")
    if attribute.outside == "forbid":
        cases.append(f"WHEN v{j} <> w{j} THEN {outside}")
    if column.is_float and attribute.is_whole:
        cases.append(f"WHEN w{j} <> floor(w{j}) THEN {unreadable}")
    cases += _spikes(column, attribute)
    return f"CASE {' '.join(cases)} ELSE {_coded_bin(attribute, j)} END"


def _spikes(column: Column, attribute: Ranged) -> list[str]:
    """The cases of values that have codes of their own; clamped ones too, where a bound is such a value."""
    shown = double if column.is_float else int
    found = zip(attribute.layout.spike.tolist(), attribute.layout.spike_code.tolist(), strict=True)
    return [f"WHEN w{column.j} = {shown(spike)} THEN {code}" for spike, code in found] if attribute.spikes else []


def _coded_bin(attribute: Ranged, j: int) -> str:
    """The code of a bin; where spikes stand between bins it is not the bin's number."""
    if not attribute.spikes:
        return _bin(attribute, j)
    return f"list_extract({attribute.layout.bin_code.tolist()}, ({_bin(attribute, j)})::INTEGER + 1)"


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
        start, step, last = double(attribute.bounds[0]), double(_step(attribute)), _bins(attribute) - 1
        # Rounding moves the guess by one bin at most; the edges themselves, low + i·step, decide.
        too_high, too_low = f"w{j} < {start} + g{j} * {step}", f"g{j} < {last} AND w{j} >= {start} + (g{j} + 1) * {step}"
        return f"g{j} - ({too_high})::INTEGER + ({too_low})::INTEGER"
    low, past = int(attribute.edge_values[0]), int(attribute.edge_values[-1])
    count, span = _bins(attribute), past - low
    offset = f"(w{j} - {low})::BIGINT"
    if count == span:
        return offset
    # edge_i = low + ⌊i·span/count⌋ ≤ low + offset exactly when i·span < (offset + 1)·count.
    return f"(({offset} + 1)::HUGEINT * {count} - 1) // {span}"


def _guess(attribute: Numeric, j: int) -> str:
    low, step = double(attribute.bounds[0]), double(_step(attribute))
    return f"least(greatest(floor((w{j} - {low}) / {step}), 0), {_bins(attribute) - 1})::INTEGER"


def _search(value: str, edges: list[float], first: int) -> str:
    """Binary search among edges, written out as nested CASEs; `first` is the code below them.

    >>> _search("w", [5.0], 0)
    "CASE WHEN w < '5.0'::DOUBLE THEN 0 ELSE 1 END"
    """
    if not edges:
        return str(first)
    middle = len(edges) // 2
    below, above = _search(value, edges[:middle], first), _search(value, edges[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {value} < {double(edges[middle])} THEN {below} ELSE {above} END"


def _step(attribute: Numeric) -> float:
    """numpy.linspace's own step, so that low + i·step are its edges to the last bit."""
    return (attribute.bounds[1] - attribute.bounds[0]) / _bins(attribute)


def _bins(attribute: Ranged) -> int:
    return len(attribute.edge_values) - 1
