"""A supplier's own expectations, from a file: a suite of Great Expectations as JSON, checked here without importing it.

Only types that Great Expectations brings along, each run on the records alone: no queries, no other tables, no conditions
(which pandas would run as code), no order of rows (they are read in any), no parameters that nobody fills in.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from schemas.expectations import CRITICAL, INFO, WARNING, silent_gx
from schemas.spec import yaml
from schemas.spec.domain import Domain

LARGEST, MOST = 4_000_000, 1_000  # bytes of a suite, and expectations in it
_OF_ONE_COLUMN = """
distinct_values_to_be_in_set distinct_values_to_contain_set distinct_values_to_equal_set kl_divergence_to_be_less_than
max_to_be_between mean_to_be_between median_to_be_between min_to_be_between most_common_value_to_be_in_set
proportion_of_non_null_values_to_be_between proportion_of_unique_values_to_be_between quantile_values_to_be_between
stdev_to_be_between sum_to_be_between to_exist unique_value_count_to_be_between value_lengths_to_be_between
value_lengths_to_equal value_z_scores_to_be_less_than values_to_be_between values_to_be_dateutil_parseable
values_to_be_in_set values_to_be_in_type_list values_to_be_json_parseable
values_to_be_null values_to_be_of_type values_to_be_unique values_to_match_json_schema values_to_match_regex
values_to_match_regex_list values_to_match_strftime_format values_to_not_be_in_set values_to_not_be_null
values_to_not_match_regex values_to_not_match_regex_list values_to_not_be_outliers type_to_be
""".split()
_OF_NAMES = ("column_count_to_be_between", "column_count_to_equal", "columns_to_match_ordered_list", "columns_to_match_set")
TYPES = {
    **{f"expect_column_{name}": ("column",) for name in _OF_ONE_COLUMN},
    "expect_column_pair_values_a_to_be_greater_than_b": ("column_A", "column_B"),
    "expect_column_pair_values_to_be_equal": ("column_A", "column_B"),
    "expect_column_pair_values_to_be_in_set": ("column_A", "column_B"),
    "expect_compound_columns_to_be_unique": ("column_list",),
    "expect_multicolumn_sum_to_equal": ("column_list",),
    "expect_multicolumn_values_to_be_equal": ("column_list",),
    "expect_select_column_values_to_be_unique_within_record": ("column_list",),
    "expect_table_row_count_to_be_between": (),
    "expect_table_row_count_to_equal": (),
    **{f"expect_table_{name}": () for name in _OF_NAMES},
}
NEEDS_ALL_NAMES = {f"expect_table_{name}" for name in _OF_NAMES} | {"expect_column_to_exist"}
_HOW_IT_ANSWERS = ("result_format", "catch_exceptions", "include_config")  # verdicts alone are asked for
_NOT_RUN = ("row_condition", "condition_parser", "windows")


@dataclass(frozen=True)
class Supplied:
    """One expectation: what Great Expectations builds it from, the columns that it looks at, and what it does."""

    type: str
    kwargs: dict[str, Any]
    severity: str
    columns: tuple[str, ...]
    note: str = ""

    @property
    def words(self) -> str:
        """
        >>> Supplied("expect_column_mean_to_be_between", {"column": "x", "min_value": 1}, "critical", ("x",)).words
        'mean to be between: min_value 1'
        """
        said = ", ".join(
            f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in self.kwargs.items() if "column" not in key
        )
        name = self.type.removeprefix("expect_").removeprefix("column_").removeprefix("table_").replace("_", " ")
        return f"{name}{': ' if said else ''}{said[:300]}{f' ({self.note})' if self.note else ''}"


def source_columns(domain: Domain) -> tuple[str, ...]:
    """The columns that a source may have, as its files call them."""
    called = {name: column for column, name in domain.rename.items()}
    return (*(called.get(name, name) for name in domain.names), *domain.own_columns, *domain.ignore)


def load_supplied(path: Path, domain: Domain) -> tuple[Supplied, ...]:
    """Every expectation of a file, or a SpecError that names all that cannot be run, and why."""
    listed = _read(path).get("expectations")
    if not isinstance(listed, list) or not listed:
        raise SpecError(
            f'{path}: a Great Expectations suite is {{"name": …, "expectations": […]}} with at least one expectation.'
        )
    if len(listed) > MOST:
        raise SpecError(f"{path}: {len(listed):,} expectations; at most {MOST:,}.")
    known = source_columns(domain)
    _must_have_none({n: [f": {why}." for why in _problems(each, known)] for n, each in enumerate(listed)}, path)
    return tuple(map(_supplied, listed))


def suite_of(supplied: tuple[Supplied, ...], path: Path) -> Any:
    """The suite as Great Expectations builds it, in the file's order; a SpecError that names what it refuses."""
    gx, built, problems = silent_gx(), [], dict[int, list[str]]()
    for place, each in enumerate(supplied):
        kwargs = {key: value for key, value in each.kwargs.items() if key not in _HOW_IT_ANSWERS}
        asked = {"type": each.type, "kwargs": kwargs, "severity": each.severity, "meta": {"place": place}}
        try:
            [expectation] = gx.ExpectationSuite(name="one", expectations=[asked]).expectations
            built.append(asked)
            _ = expectation.configuration
        except Exception as error:  # of many classes; the words are about the file, which is public
            problems[place] = [f" ({each.type}): {' '.join(str(error).split())[:300]}"]
    _must_have_none(problems, path)
    return gx.ExpectationSuite(name="supplied", expectations=built)


def _must_have_none(problems: dict[int, list[str]], path: Path) -> None:
    """All of them, each with the line on which its expectation begins."""
    if any(problems.values()):
        try:
            document = yaml.parse(yaml.read_text(path, LARGEST), str(path))
        except SpecError:  # JSON that is no YAML of ours: its lines are not known
            document = yaml.Document(str(path), None, {(): 1})
        told = ((document.place(("expectations", n)), n, why) for n, each in problems.items() for why in each)
        raise SpecError("\n".join(f"{place}: expectations.{n}{why}" for place, n, why in told))


def _read(path: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SpecError(f"{path}: not a regular file; give a Great Expectations suite as JSON.")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise SpecError(f"{path}: larger than {LARGEST:,} bytes; a suite is a small file.")
        read = json.loads(content.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not readable as JSON ({type(error).__name__})"
        raise SpecError(f"expectations {path}: {reason}. Give a Great Expectations suite as JSON.") from None
    return read if isinstance(read, dict) else {}


def _problems(each: Any, known: tuple[str, ...]) -> list[str]:
    if not isinstance(each, dict) or not isinstance(each.get("kwargs", {}), dict):
        return ['an expectation is {"type": …, "kwargs": {…}}']
    kind, kwargs = each.get("type", each.get("expectation_type")), each.get("kwargs", {})
    if not isinstance(kind, str) or kind not in TYPES:
        why = "it is none of Great Expectations', or looks at more than the records, or at their order"
        return [f"type {kind!r} is not run here: {why}; remove it"]
    problems = [f"{key} is not run here; leave it out" for key in _NOT_RUN if kwargs.get(key) is not None or each.get(key)]
    if "$PARAMETER" in json.dumps(kwargs):
        problems.append("a parameter stands in it ($PARAMETER); write the value")
    if each.get("severity", CRITICAL) not in (CRITICAL, WARNING, INFO):
        problems.append(f"severity is critical, warning or info; not {each['severity']!r}")
    problems += _unreadable(kwargs)
    named = _columns(kind, kwargs)
    problems += [f"{key} is needed" for key in TYPES[kind] if not kwargs.get(key)]
    if kind != "expect_column_to_exist":
        unknown = [name for name in named if name not in known]
        problems += [f"the source has no column {name!r}; it has {_some(known)}" for name in unknown]
    return problems


def _unreadable(kwargs: dict[str, Any]) -> Iterator[str]:
    """Patterns that no value could be held against: they would fail on whatever the records hold."""
    listed = kwargs.get("regex_list")
    for pattern in [kwargs.get("regex"), *(listed if isinstance(listed, list) else [])]:
        try:
            re.compile(pattern if isinstance(pattern, str) else "")
        except (re.error, RecursionError, OverflowError) as error:
            yield f"regular expression {pattern!r} cannot be read: {error}; mend it"


def _columns(kind: str, kwargs: dict[str, Any]) -> tuple[str, ...]:
    found = [kwargs.get(key) for key in TYPES[kind]]
    return tuple(str(name) for part in found if part for name in (part if isinstance(part, list) else [part]))


def _supplied(each: dict[str, Any]) -> Supplied:
    kind, kwargs, note = each.get("type", each.get("expectation_type")), each.get("kwargs", {}), each.get("notes")
    said = note if isinstance(note, str) else " ".join(map(str, note)) if isinstance(note, list) else ""
    return Supplied(str(kind), kwargs, each.get("severity", CRITICAL), _columns(str(kind), kwargs), said[:200])


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:10]) + (f", … ({len(names)} in all)" if len(names) > 10 else "")
