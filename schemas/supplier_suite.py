"""The domain's expectations as a suite that a supplier runs with Great Expectations alone, on a pandas frame of a whole file.

It says what can be said so. What only the run's own validation sees stands in the suite's meta under `not_checked`; and what
passes here may still fail there: whole numbers, the exact forms of values and dates are judged by the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.expectations import CRITICAL, WARNING, likely_rows, silent_gx
from schemas.spec.attributes import DateAttribute, Named, Ranged, TimeAttribute
from schemas.spec.domain import Domain
from schemas.spec.rules import Rule
from schemas.supplied import source_columns

_DAY = "%Y-%m-%d"
Expected = tuple[str, dict[str, Any], str]  # type, kwargs, severity


def supplier_suite(domain: Domain, is_csv: bool) -> dict[str, Any]:
    """The suite as JSON: `great_expectations.ExpectationSuite(**json.load(file))` is it again."""
    gx = silent_gx()
    called = {name: column for column, name in domain.rename.items()}
    read = [*domain.attributes, *([domain.weight.attribute] if domain.weight else [])]
    found = [*_table(domain), *(each for a in read for each in _attribute(a, called.get(a.name, a.name), is_csv))]
    found += [*_people(domain), *(each for rule in domain.rules for each in _rule(domain, rule, called))]
    expectations = [{"type": kind, "kwargs": kwargs, "severity": severity} for kind, kwargs, severity in found]
    about = {"dataset": domain.name, "read_with": _HOW[is_csv], "not_checked": list(_not_checked(domain, called))}
    suite = gx.ExpectationSuite(name=domain.name, expectations=expectations, meta={"steps_release": about})
    written: dict[str, Any] = suite.to_json_dict()
    return written


_HOW = {True: "pandas.read_csv", False: "pandas.read_parquet, or pyreadstat for files of SPSS, Stata and SAS"}


def _table(domain: Domain) -> Iterator[Expected]:
    wanted = [name for name in source_columns(domain) if name not in domain.ignore]
    yield "expect_table_columns_to_match_set", {"column_set": wanted, "exact_match": not domain.ignore}, CRITICAL
    if (likely := likely_rows(domain)) is not None:
        yield "expect_table_row_count_to_be_between", {"min_value": likely[0], "max_value": likely[1]}, WARNING


def _attribute(attribute: Any, column: str, is_csv: bool) -> Iterator[Expected]:
    if attribute.missing == "forbid":
        yield "expect_column_values_to_not_be_null", {"column": column}, CRITICAL
    if isinstance(attribute, Named):
        texts = [*attribute.code_of_text]
        yield "expect_column_values_to_be_in_set", {"column": column, "value_set": [*texts, *_as_stored(texts)]}, CRITICAL
    elif isinstance(attribute, DateAttribute | TimeAttribute):
        form = attribute.format or (_DAY if isinstance(attribute, DateAttribute) else None)
        if is_csv and form and not attribute.number_of_text:
            limits = {"column": column, "strftime_format": form}
            yield "expect_column_values_to_match_strftime_format", limits, CRITICAL
    elif attribute.outside == "forbid" and not _texts_for_numbers(attribute):
        within = {"column": column, "min_value": attribute.bounds[0]}
        within |= {} if attribute.is_open else {"max_value": attribute.bounds[1]}
        yield "expect_column_values_to_be_between", within | _but(column, attribute), CRITICAL


def _as_stored(texts: list[str]) -> list[Any]:
    """Numbers, true and false as a frame holds them, where categories are written so."""
    numbers = [int(text) for text in texts if text.lstrip("-").isdecimal() and str(int(text)) == text]
    return [*numbers, *([False, True] if {"true", "false"} & set(texts) else [])]


def _texts_for_numbers(attribute: Ranged) -> bool:
    """Whether a column of numbers holds words too, which a frame would not compare."""
    return not all(_is_number(text) for text in attribute.number_of_text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _but(column: str, attribute: Ranged) -> dict[str, Any]:
    """Values that stand for others, or for nothing, are not compared with the bounds."""
    others = sorted(attribute.number_of_number)
    if not others:
        return {}
    return {"row_condition": _condition(column, "NOT_IN", others)}


def _condition(column: str, operator: str, values: list[Any]) -> dict[str, Any]:
    return {"type": "comparison", "column": {"name": column}, "operator": operator, "parameter": values}


def _people(domain: Domain) -> Iterator[Expected]:
    unit = domain.unit
    if unit.column is not None:
        yield "expect_column_values_to_not_be_null", {"column": unit.column}, CRITICAL
        if unit.rows_per_person == 1 and unit.excess == "forbid":
            yield "expect_column_values_to_be_unique", {"column": unit.column}, CRITICAL


def _rule(domain: Domain, rule: Rule, called: dict[str, str]) -> Iterator[Expected]:
    """Of two named attributes: where the first has such a value, the second has none of its own."""
    if not _is_simple(domain, rule, called):
        return
    (first, these), (second, those) = (rule.never or {}).items()
    condition = _condition(called.get(first, first), "IN", _listed(these))
    limits = {"column": called.get(second, second), "value_set": _listed(those), "row_condition": condition}
    yield "expect_column_values_to_not_be_in_set", limits, CRITICAL


def _is_simple(domain: Domain, rule: Rule, called: dict[str, str]) -> bool:
    """Two attributes of words that files write as the domain does, in columns that a condition can name."""
    never = rule.never or {}
    if set(domain.coarser).intersection(never):  # files need not have levels of places
        return False
    attributes = [domain.attributes[domain.index(name)] for name in never]
    named = all(isinstance(a, Named) and not a.recode and not _as_stored([*a.categories]) for a in attributes)
    columns = all(called.get(name, name).isidentifier() for name in never)
    plain = all(isinstance(part, str) for value in never.values() for part in _listed(value))
    return len(attributes) == 2 and named and columns and plain


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _not_checked(domain: Domain, called: dict[str, str]) -> Iterator[str]:
    for attribute in domain.attributes:
        column = called.get(attribute.name, attribute.name)
        if isinstance(attribute, DateAttribute | TimeAttribute) and attribute.outside == "forbid":
            yield f"{column}: from {attribute.bounds[0]} to {attribute.bounds[1]}"
        elif isinstance(attribute, Ranged) and attribute.outside == "forbid" and _texts_for_numbers(attribute):
            yield f"{column}: from {attribute.bounds[0]} to {attribute.bounds[1]}, where it is a number"
    if domain.unit.column and domain.unit.rows_per_person > 1 and domain.unit.excess == "forbid":
        many = f"{'exactly' if domain.unit.exactly else 'at most'} {domain.unit.rows_per_person} rows"
        yield f"{domain.unit.column}: {many} of one {domain.unit.who}"
    for number, rule in enumerate(domain.rules, 1):
        if not _is_simple(domain, rule, called):
            yield f"rule {number}: {rule.words}"
