"""The Great Expectations suite of a domain: columns, types, categories, bounds, missing, rules, rows per person.

It runs on a small frame. An expectation about each value of a column holds for all rows exactly when it holds for the
column's distinct values, so the frame has the domain's columns with their distinct values, and columns in round brackets
(no attribute is named so) for what concerns the whole table.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from schemas.spec.domain import Domain

COLUMNS, DOUBLED, BROKEN, ROWS = "(columns)", "(columns that stand twice)", "(unreadable files)", "(rows)"
PERSON_ROWS, NO_PERSON = "(rows of one person)", "(rows without a person)"

CRITICAL, WARNING, INFO = "critical", "warning", "info"  # GX's severities: the first refuses, the second is told inside

_TEXT, _WHOLE, _NUMBERS = "text", "whole numbers", "numbers"
_LABELS = (_TEXT, _WHOLE, _NUMBERS, "true or false")
ACCEPTED = {
    "categorical": _LABELS,
    "ordinal": _LABELS,
    "integer": (_WHOLE, _NUMBERS),
    "numeric": (_WHOLE, _NUMBERS),
    "date": ("dates", "times", _TEXT),
    "time": ("times of day", "times", _TEXT),
    "person": (_TEXT, _WHOLE, _NUMBERS),
}
AS_WRITTEN = "text as written"  # every column of a CSV file, whose values are judged one by one
ALWAYS_ACCEPTED = (AS_WRITTEN, "nothing")  # nothing: a column of nulls
_READS_AS = {
    "integer": "a whole number",
    "numeric": "a number",
    "date": "a day, written {form} where it is text",
    "time": "a time of day, written {form} where it is text",
}


def accepted(kind: str) -> tuple[str, ...]:
    """What a column of an attribute of this kind, or of persons, may hold."""
    return (*ACCEPTED[kind], *ALWAYS_ACCEPTED)


def type_of(name: str) -> str:
    return f"(type of {name})"


def unreadable_in(name: str) -> str:
    return f"(unreadable in {name})"


def rule_breaks(number: int) -> str:
    return f"(rule {number})"


def wanted_columns(domain: Domain) -> list[str]:
    """The columns that a source must have, as the domain calls them, and no others but those that it ignores."""
    return [*domain.names, *domain.own_columns]


def silent_gx() -> Any:
    """Great Expectations, without telemetry, log lines or progress bars."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logger = logging.getLogger("great_expectations")
    logger.propagate, logger.handlers = False, [logging.NullHandler()]
    import great_expectations

    return great_expectations


def build_suite(domain: Domain) -> Any:
    """The suite. Each expectation's meta says which column it concerns, what it demands in words, and its place."""
    gx = silent_gx()
    read = [*domain.attributes, *([domain.weight.attribute] if domain.weight else [])]
    demands = [*_table(domain), *(demand for attribute in read for demand in _attribute(attribute))]
    demands += [*_people(domain), *_rules(domain)]
    graded = [*((CRITICAL, demand) for demand in demands), *((WARNING, demand) for demand in _warnings(domain))]
    expectations = [
        getattr(gx.expectations, f"Expect{kind}")(
            column=frame_column,
            **limits,
            severity=severity,
            meta={"place": place, "column": column, "words": words, "problem": problem},
        )
        for place, (severity, (kind, frame_column, limits, column, words, problem)) in enumerate(graded)
    ]
    return gx.ExpectationSuite(name=domain.name, expectations=expectations)


Demand = tuple[str, str, dict[str, Any], str, str, str]


def _none(frame_column: str, column: str, words: str, problem: str) -> Demand:
    return ("ColumnValuesToBeBetween", frame_column, {"min_value": 0, "max_value": 0}, column, words, problem)


def _table(domain: Domain) -> list[Demand]:
    wanted = {"value_set": wanted_columns(domain)}
    known = {"value_set": [*wanted_columns(domain), *domain.ignore]}
    return [
        ("ColumnDistinctValuesToContainSet", COLUMNS, wanted, "", "every column of the domain is there", "lacking"),
        ("ColumnValuesToBeInSet", COLUMNS, known, "", "there is no column that the domain does not name", "extra"),
        _none(DOUBLED, "", "no column stands twice (upper and lower case count as the same)", "doubled"),
        _none(BROKEN, "", "every record can be read", "broken"),
    ]


def _attribute(attribute: Any) -> list[Demand]:
    name, kind = attribute.name, attribute.kind
    demands = [_type(name, kind)]
    if attribute.missing == "forbid":
        demands.append(("ColumnValuesToNotBeNull", name, {}, name, "is never missing", "missing"))
    if kind in ("categorical", "ordinal"):
        of = "is a place of its table:" if getattr(attribute, "geography", None) else "is one of"
        first = [f'"{label}"' if "," in label else label for label in attribute.categories[:8]]
        words = f"{of} {', '.join(first)}{', …' if len(attribute.categories) > 8 else ''}"
        return [*demands, ("ColumnValuesToBeInSet", name, {"value_set": list(attribute.categories)}, name, words, "outside")]
    demands.append(_none(unreadable_in(name), name, f"reads as {_READS_AS[kind].format(form=_form(attribute))}", "unreadable"))
    if attribute.outside == "forbid":
        limits = {"min_value": attribute.edge_values[0].item(), "max_value": _plain(attribute.highest)}
        words = f"lies between {attribute.bounds[0]} and {attribute.bounds[1]}"
        if attribute.is_open:
            limits, words = {"min_value": limits["min_value"]}, f"is at least {attribute.bounds[0]}"
        demands.append(("ColumnValuesToBeBetween", name, limits, name, words, "outside"))
    return demands


def _form(attribute: Any) -> str:
    return getattr(attribute, "format", None) or {"date": "2000-01-31", "time": "08:30"}.get(attribute.kind, "")


def _type(name: str, kind: str) -> Demand:
    *others, last = ACCEPTED[kind]
    words = f"is stored as {', '.join(others)} or {last}"
    return ("ColumnValuesToBeInSet", type_of(name), {"value_set": list(accepted(kind))}, name, words, "type")


def _plain(bound: float) -> float | int:
    """A bound as the frame of distinct values shows it: days since 1970-01-01 for a date, minutes for a time of day."""
    return int(bound) if bound == int(bound) else bound


def _people(domain: Domain) -> list[Demand]:
    unit = domain.unit
    if unit.column is None:
        return []
    demands = [_type(unit.column, "person"), _none(NO_PERSON, unit.column, f"every record names its {unit.who}", "missing")]
    if unit.excess == "forbid":
        limits = {"max_value": unit.rows_per_person} | ({"min_value": unit.rows_per_person} if unit.exactly else {})
        records = f"{unit.rows_per_person} record{'s' * (unit.rows_per_person > 1)}"
        words = f"every {unit.who} has {'exactly' if unit.exactly else 'at most'} {records}"
        demands.append(("ColumnValuesToBeBetween", PERSON_ROWS, limits, unit.column, words, "excess"))
    return demands


def _rules(domain: Domain) -> list[Demand]:
    return [
        _none(rule_breaks(number), of_rule(domain, number), f"rule {number}: {rule.words}", f"rule {number}")
        for number, rule in enumerate(domain.rules, 1)
    ]


def likely_rows(domain: Domain) -> tuple[int, int] | None:
    """From half to twice the rows that are expected: what lies outside is told, and refuses nothing."""
    expected = domain.expected_rows
    return (expected // 2, 2 * expected) if expected is not None else None


def _warnings(domain: Domain) -> list[Demand]:
    if (likely := likely_rows(domain)) is None:
        return []
    words = f"there are about {domain.expected_rows:,} rows: from half to twice as many"
    return [("ColumnValuesToBeBetween", ROWS, {"min_value": likely[0], "max_value": likely[1]}, "", words, "rows")]


def of_rule(domain: Domain, number: int) -> str:
    """The attributes of a rule; the first has number 1."""
    return ", ".join(domain.names[place] for place in domain.zeros[number - 1].places)
