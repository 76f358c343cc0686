"""One value of a file as SQL: what it says, what the domain makes of it, and whether it means missing."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.expectations import AS_WRITTEN
from schemas.spec.attributes import Attribute, DateAttribute, Named, Ranged, TimeAttribute
from schemas.spec.reading import CLOCK
from tasks.reading.locked_down import literal

_NUMBER = literal(r"(?i)[+-]?(nan|inf(inity)?|([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)")
_COMMA = literal(r"(?i)[+-]?(nan|inf(inity)?|([0-9]+,?[0-9]*|,[0-9]+)(e[+-]?[0-9]+)?)")
_TIME = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?Z?"
_DAY = literal(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({_TIME})?")
_DAY_US = 86_400_000_000


def as_text(raw: str, holds: str) -> str:
    """A value as a file would write it: a whole number without a point or a sign of nought, however it is stored; no NaN."""
    if holds != "numbers":
        return f"CAST({raw} AS VARCHAR)"
    whole = f"{raw} = floor({raw}) AND abs({raw}) < 9007199254740992"
    number = f"CASE WHEN {whole} THEN CAST(CAST({raw} AS BIGINT) AS VARCHAR) ELSE CAST({raw} AS VARCHAR) END"
    return f"CASE WHEN NOT isnan(CAST({raw} AS DOUBLE)) THEN {number} END"


@dataclass(frozen=True)
class Column:
    """An attribute, what its column in the source holds, and where its values stand in the rows at hand."""

    j: int
    attribute: Attribute
    holds: str
    raw: str
    comma: bool = False  # whether numbers that are text have a decimal comma

    @property
    def text(self) -> str:
        """The value as a file would write it."""
        return as_text(self.raw, self.holds)

    @property
    def is_named(self) -> bool:
        return isinstance(self.attribute, Named)

    @property
    def is_late(self) -> bool:
        """Whether records are grouped by the value itself: it has one category per value, and no other is expected."""
        if isinstance(self.attribute, Named):
            return True
        one_each = self.attribute.kind == "integer" and not self.attribute.binned and not self.attribute.is_open
        return one_each and self.attribute.outside == "forbid" and self.holds == "whole numbers"

    @property
    def is_float(self) -> bool:
        """Whether a value is computed with as a float, and may be NaN or have a fraction."""
        kind, holds = self.attribute.kind, self.holds
        return kind == "numeric" or holds in ("numbers", "times", "nothing") or (kind == "integer" and holds == AS_WRITTEN)


def value_of(column: Column) -> str:
    """The value as text, or as a number (days since 1970 for dates), or what the domain says it stands for; NULL for what
    cannot be read, and for NULL."""
    if not isinstance(column.attribute, Ranged):
        return column.text
    value = _as_stored(column)
    texts, numbers = column.attribute.number_of_text, column.attribute.number_of_number
    cases = [
        f"WHEN {value} = {double(said)} THEN {_exact(column, meant)}" for said, meant in numbers.items() if meant is not None
    ]
    cases += [
        f"WHEN {column.text} = {literal(text)} THEN {_exact(column, meant)}"
        for text, meant in texts.items()
        if meant is not None
    ]
    return f"CASE {' '.join(cases)} ELSE {value} END" if cases else value


def _as_stored(column: Column) -> str:
    kind, holds, raw = column.attribute.kind, column.holds, column.raw
    if holds == "nothing":
        return "CAST(NULL AS DOUBLE)"
    if kind == "date" and holds == "times":
        # The day, whatever the time: // cuts towards 0, so that the rest is taken off first.
        moment = f"epoch_us({raw})"
        return f"(({moment} - (({moment} % {_DAY_US}) + {_DAY_US}) % {_DAY_US}) // {_DAY_US})::DOUBLE"
    if isinstance(column.attribute, TimeAttribute):
        return _minute(raw, holds, column.attribute.format)
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


def _minute(raw: str, holds: str, form: str | None) -> str:
    """The minute of the day that a time, a moment or a text says."""
    if holds in ("times of day", "times"):
        minute = f"extract(hour FROM {raw}) * 60 + extract(minute FROM {raw})"
        return f"({minute})::{'DOUBLE' if holds == 'times' else 'BIGINT'}"
    if form is not None:
        moment = f"try_strptime({raw}, {literal(form)})"
        return f"(extract(hour FROM {moment}) * 60 + extract(minute FROM {moment}))::BIGINT"
    hour, minute = (f"TRY_CAST(regexp_extract({raw}, {literal(f'^{CLOCK}$')}, {part}) AS BIGINT)" for part in (1, 2))
    return f"({hour} * 60 + {minute})"


def _exact(column: Column, number: float) -> str:
    return double(number) if column.is_float else str(int(number))


def means_missing(column: Column, attribute: Ranged) -> str:
    """Or whether the value is one that the domain takes for missing: by its text, or by the number that it says."""
    texts = [text for text, meant in attribute.number_of_text.items() if meant is None]
    numbers = [number for number, meant in attribute.number_of_number.items() if meant is None]
    by_text = f" OR {column.text} IN ({', '.join(map(literal, texts))})" if texts else ""
    by_number = f" OR {_as_stored(column)} IN ({', '.join(map(double, numbers))})" if numbers else ""
    return by_text + by_number


def double(value: float) -> str:
    """A number as SQL, read back to the same bits (a bare 0.1 would be a DECIMAL)."""
    return f"'{float(value)!r}'::DOUBLE"
