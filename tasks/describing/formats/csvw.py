"""CSV on the Web (W3C), and its extension csvw-eo of the Swiss statistical office: privacy unit, contributions, public keys."""

from __future__ import annotations

import re
from typing import Any

from schemas.errors import SpecError
from tasks.describing.description import (
    BOOLEANS,
    DATES,
    NUMBERS,
    TEXT,
    TIMES,
    UNKNOWN,
    WHOLE,
    Bound,
    Category,
    Description,
    Variable,
    about,
)
from tasks.describing.documents import Document
from tasks.describing.facts import bound, categories_of, end, form_of_days, listed, said, written
from tasks.describing.formats import DescribingFormat, the_table

_WHOLE = (
    "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger unsignedInt "
    "unsignedLong unsignedShort unsignedByte gYear"
).split()
_HOLDS = {
    **dict.fromkeys(_WHOLE, WHOLE),
    **dict.fromkeys(("number", "decimal", "double", "float"), NUMBERS),
    **dict.fromkeys(("date", "dateTime", "datetime", "dateTimeStamp"), DATES),
    **dict.fromkeys(("string", "normalizedString", "token", "any", "anyAtomicType", "language", "Name"), TEXT),
    "boolean": BOOLEANS,
    "time": TIMES,
}
_LEAST = {"nonNegativeInteger": "0", "positiveInteger": "1"}
_EXTENDED = ("privacyUnit", "privacyId", "keyValues", "partitions", "nullableProportion", "maxContributions")
_COMPUTED = "csvw-eo metadata can be made from the data: make sure that the bounds and keys taken here are publicly known"
_DEPENDENCIES = "rowDependencies are not taken; write those that always hold as rules"
_ALTERNATIVES = re.compile(r"\^?\(?([^\\()\[\]{}.*+?^$|]+(?:\|[^\\()\[\]{}.*+?^$|]+)+)\)?\$?")


def _claims(document: Document) -> bool:
    found = document.json
    return "ns/csvw" in str(found.get("@context")) or _term(found, "tableSchema") is not None or "tables" in found


def _term(part: Any, *names: str) -> Any:
    """A term by its last word: privacyUnit, csvw-eo:privacyUnit and csvw-eo:public.privacyUnit are one."""
    terms = {re.split(r"[:.#/]", key)[-1]: value for key, value in part.items()} if isinstance(part, dict) else {}
    return next((terms[name] for name in names if terms.get(name) is not None), None)


def _describe(document: Document, asked: str | None) -> Description:
    group = document.json
    tables = group.get("tables") if isinstance(group.get("tables"), list) else [group]
    named = {said(_term(each, "url")) or f"table {n}": each for n, each in enumerate(tables, 1) if isinstance(each, dict)}
    _, table = the_table(document, named, asked)
    schema = _term(table, "tableSchema") or _term(group, "tableSchema")
    if isinstance(schema, str):
        schema = document.beside(schema).json
    columns = _term(schema, "columns")
    if not isinstance(columns, list) or not all(isinstance(column, dict) for column in columns):
        raise SpecError(f"{document.path}: CSVW metadata have a tableSchema with a list of columns.")
    columns, language = [column for column in columns if not _term(column, "virtual")], _language(group)
    return Description(
        kind="CSVW metadata",
        file=document.path.name,
        variables=tuple(_variable(column, table, schema, language) for column in columns),
        title=said(_term(table, "title") or _term(group, "title")),
        description=said(_term(table, "description") or _term(group, "description")),
        publisher=_publisher(_term(table, "publisher") or _term(group, "publisher")),
        licence=said(_term(table, "license") or _term(group, "license")),
        records=document.named(said(_term(table, "url"))),
        csv=tuple(_csv(_term(table, "dialect") or _term(group, "dialect") or {}, columns)),
        **_people(table, schema, columns, language),
    )


def _language(group: dict[str, Any]) -> str:
    """The language of what says none: titles in it are what headers are called."""
    context = listed(group.get("@context"))
    return next((text for each in context if (text := said(_term(each, "@language")))), "en")


def _publisher(publisher: Any) -> str:
    """A text, or an organisation with a name."""
    first = publisher[0] if isinstance(publisher, list) and publisher else publisher
    return said(_term(first, "name") or first)


def _people(table: dict[str, Any], schema: dict[str, Any], columns: list[dict[str, Any]], language: str) -> dict[str, Any]:
    """Whose rows, how many of one, and how many in all: what csvw-eo declares; otherwise the key of a row."""
    declared = _term(table, "privacyUnit")
    marked = [name for column in columns if _term(column, "privacyId") is True and (name := _named(column, language)[0])]
    key = _term(schema, "primaryKey")
    key = key[0] if isinstance(key, list) and len(key) == 1 else key
    most, rows = _term(table, "maxContributions"), _term(table, "publicLength", "length", "tableLength")
    person = next((each for each in (declared, *marked, key) if isinstance(each, str)), None)
    headers = {name: header for header, name in (_named(column, language) for column in columns)}
    extended = any(_term(part, *_EXTENDED) is not None for part in (table, *columns))
    depend = any(_term(column, "rowDependencies") for column in columns)
    remarks = [_COMPUTED] * extended + [_DEPENDENCIES] * depend
    return {
        "person": headers.get(person, person) if person else None,
        "rows_per_person": most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None,
        "expected_rows": about(rows) if isinstance(rows, int) and not isinstance(rows, bool) and rows > 0 else None,
        "remarks": tuple(remarks),
    }


def _csv(dialect: Any, columns: list[dict[str, Any]]) -> list[tuple[str, str]]:
    forms = [datatype.get("format") for column in columns if isinstance(datatype := _term(column, "datatype"), dict)]
    decimal = next((form["decimalChar"] for form in forms if isinstance(form, dict) and form.get("decimalChar")), ".")
    found = {"separator": _term(dialect, "delimiter"), "encoding": _term(dialect, "encoding"), "decimal": decimal}
    usual = {"separator": ",", "encoding": "utf-8", "decimal": "."}
    return [(key, text) for key, text in found.items() if isinstance(text, str) and text.lower() != usual[key]]


def _named(column: dict[str, Any], language: str) -> tuple[str, str]:
    """What the header says, which is a title where one is given; and the name."""
    titles = _term(column, "titles")
    title, name = (
        said(titles.get(language, titles) if isinstance(titles, dict) else titles),
        written(_term(column, "name")) or "",
    )
    return title or name, name or title


def _variable(column: dict[str, Any], table: dict[str, Any], schema: dict[str, Any], language: str) -> Variable:
    header, name = _named(column, language)
    datatype = _term(column, "datatype") or _term(schema, "datatype") or _term(table, "datatype") or "string"
    facets = datatype if isinstance(datatype, dict) else {"base": datatype}
    base = str(facets.get("base", "string"))
    holds = _HOLDS.get(base, UNKNOWN)
    low = _declared(facets, column, "minimum", "minInclusive", _LEAST.get(base))
    high = _declared(facets, column, "maximum", "maxInclusive", None)
    categories, nothing, complete = _categories(column, facets, holds)
    edges = _edges(column, holds)
    null = _term(column, "null") or _term(schema, "null") or _term(table, "null")
    nulls = [null] if isinstance(null, str) else listed(null)
    return Variable(
        column=header,
        name=name,
        holds=holds,
        title=header if header != name else said(_term(column, "label")),
        description=said(_term(column, "description", "definition")),
        categories=categories,
        complete=complete,
        low=edges[0] if edges else end(low, _term(facets, "minExclusive"), holds, 1),
        high=edges[-1] if edges else end(high, _term(facets, "maxExclusive"), holds, -1),
        edges=edges,
        may_be_missing=_term(column, "required") is not True or nothing,
        missing_values=tuple(text for text in nulls if isinstance(text, str) and text),
        form=form_of_days(facets.get("format")) if holds == DATES else None,
        remarks=(f"the datatype is {base}",) if holds == UNKNOWN else (),
    )


def _declared(facets: dict[str, Any], column: dict[str, Any], name: str, other: str, otherwise: str | None) -> Any:
    """A limit from the datatype, as CSVW has it, or from the column, as csvw-eo writes it."""
    found = _term(facets, name, other)
    found = _term(column, name) if found is None else found
    return otherwise if found is None else found


def _categories(column: dict[str, Any], facets: dict[str, Any], holds: str) -> tuple[tuple[Category, ...], bool, bool]:
    """csvw-eo's public keys or partitions; a format that lists alternatives; false and true."""
    keys, complete = _term(column, "keyValues", "keys"), _term(column, "exhaustiveKeys") is not False
    if not isinstance(keys, list):
        keys = [
            value for part in _partitions(column) if (value := _term(_term(part, "predicate"), "partitionValue")) is not None
        ]
        complete = _term(column, "exhaustivePartitions") is not False
    form = facets.get("format")
    if not keys and isinstance(form, str) and holds == BOOLEANS and form.count("|") == 1:
        keys, complete = form.split("|")[::-1], True
    elif not keys and isinstance(form, str) and holds == TEXT and (found := _ALTERNATIVES.fullmatch(form)):
        keys, complete = found[1].split("|"), True
    elif not keys and holds == BOOLEANS:
        keys, complete = [False, True], True
    categories, nothing = categories_of(keys)
    return categories, nothing, complete


def _partitions(column: dict[str, Any]) -> list[Any]:
    found = _term(column, "partitions")
    return found if isinstance(found, list) else []


def _edges(column: dict[str, Any], holds: str) -> tuple[Bound, ...]:
    """Where public ranges begin and end, if each begins where the one before it ends."""
    ranges = [_term(part, "predicate") for part in _partitions(column)]
    ends = [(bound(_term(each, "lowerBound"), holds), bound(_term(each, "upperBound"), holds)) for each in ranges]
    if len(ends) < 2 or any(a is None or b is None for a, b in ends):
        return ()
    joined = all(before[1] == after[0] for before, after in zip(ends, ends[1:], strict=False))
    return tuple(edge for edge in (ends[0][0], *(high for _, high in ends)) if edge is not None) if joined else ()


ENTRY = DescribingFormat("csvw", 2, "CSVW metadata", "JSON with a tableSchema", _claims, _describe)
