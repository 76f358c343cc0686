"""Frictionless: a Table Schema, or a Data Package whose resources have one (versions 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.errors import SpecError
from tasks.describing.description import BOOLEANS, DATES, NUMBERS, TEXT, TIMES, UNKNOWN, WHOLE, Category, Description, Variable
from tasks.describing.documents import Document
from tasks.describing.facts import categories_of, end, form_of_days, listed, mapping, said, written
from tasks.describing.formats import DescribingFormat, the_table

_HOLDS = {
    "string": TEXT,
    "integer": WHOLE,
    "year": WHOLE,
    "number": NUMBERS,
    "boolean": BOOLEANS,
    "date": DATES,
    "datetime": DATES,
    "time": TIMES,
}
_SPELLINGS = {"trueValues": ["true", "True", "TRUE", "1"], "falseValues": ["false", "False", "FALSE", "0"]}


def _claims(document: Document) -> bool:
    return isinstance(document.json.get("fields"), list) or isinstance(document.json.get("resources"), list)


def _describe(document: Document, asked: str | None) -> Description:
    package = document.json
    if not isinstance(package.get("resources"), list):
        return _described(document, package, {}, {})
    resources = [each for each in package["resources"] if isinstance(each, dict) and each.get("schema")]
    _, resource = the_table(
        document, {said(each.get("name")) or f"table {n}": each for n, each in enumerate(resources, 1)}, asked
    )
    schema = resource["schema"]
    if isinstance(schema, str):
        schema = document.beside(schema).json
    return _described(document, schema, resource, package)


def _described(document: Document, schema: Any, resource: dict[str, Any], package: dict[str, Any]) -> Description:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise SpecError(f"{document.path}: a Frictionless schema has a list of fields, each {{name: …, type: …}}.")
    missing = [text for text in listed(schema.get("missingValues", [""])) if isinstance(text, str)]
    labelled = [each for each in (resource, package, schema) if each]
    key = _key(schema.get("primaryKey"))
    return Description(
        kind="Frictionless data package" if package else "Frictionless table schema",
        file=document.path.name,
        variables=tuple(_variable(field, missing) for field in fields),
        name=_first(labelled, "name"),
        title=_first(labelled, "title"),
        description=_first(labelled, "description"),
        publisher=_publisher(package),
        licence=next(map(_licence, _licences(resource, package)), ""),
        records=document.named(said(resource.get("path"))),
        person=key if isinstance(key, str) else None,
        csv=tuple(_csv(resource, fields)),
        remarks=tuple(_remarks_of_all(key, listed(resource.get("path")))),
    )


def _remarks_of_all(key: str | tuple[str, ...] | None, files: list[Any]) -> Iterator[str]:
    if isinstance(key, tuple):
        yield f"its primary key is {', '.join(key)}: say in unit whose rows they are"
    if len(files) > 1:
        yield f"its records are {len(files)} files: let source be their folder, or a glob such as data/*.csv"


def _licence(licence: Any) -> str:
    """Its identifier, or its address where that names none."""
    name, path = said(mapping(licence).get("name")), said(mapping(licence).get("path"))
    return path if path and (not name or name.lower().startswith(("other", "notspecified"))) else name


def _licences(resource: dict[str, Any], package: dict[str, Any]) -> list[Any]:
    return listed(resource.get("licenses")) or listed(package.get("licenses"))


def _first(places: list[dict[str, Any]], key: str) -> str:
    return next((text for place in places if (text := said(place.get(key)))), "")


def _key(key: Any) -> str | tuple[str, ...] | None:
    names = [key] if isinstance(key, str) else [name for name in listed(key) if isinstance(name, str)]
    return names[0] if len(names) == 1 else tuple(names) or None


def _publisher(package: dict[str, Any]) -> str:
    people = [mapping(each) for each in listed(package.get("contributors"))]
    publishers = [each for each in people if "publisher" in (each.get("role"), *listed(each.get("roles")))]
    return said(publishers[0].get("title")) if publishers else ""


def _csv(resource: dict[str, Any], fields: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = {"separator": mapping(resource.get("dialect")).get("delimiter"), "encoding": resource.get("encoding")}
    found["decimal"] = next((field["decimalChar"] for field in fields if field.get("decimalChar") not in (None, ".")), None)
    usual = {"separator": ",", "encoding": "utf-8", "decimal": "."}
    return [(key, text) for key, text in found.items() if isinstance(text, str) and text.lower() != usual[key]]


def _variable(field: dict[str, Any], missing: list[str]) -> Variable:
    kind, limits = str(field.get("type", "string")), mapping(field.get("constraints"))
    holds = _HOLDS.get(kind, UNKNOWN)
    own = field.get("missingValues")
    missing = [text for text in own if isinstance(text, str)] if isinstance(own, list) else missing
    categories, nothing = _categories(field, limits)
    recode: tuple[tuple[str, str], ...] = ()
    if holds == BOOLEANS and not categories:
        categories, recode = _booleans(field)
    form = form_of_days(field.get("format")) if holds == DATES else None
    return Variable(
        column=written(field.get("name")) or "",
        holds=holds,
        title=said(field.get("title")),
        description=said(field.get("description")),
        categories=categories,
        ordered=field.get("categoriesOrdered") is True,
        low=end(limits.get("minimum"), limits.get("exclusiveMinimum"), holds, 1),
        high=end(limits.get("maximum"), limits.get("exclusiveMaximum"), holds, -1),
        recode=recode,
        may_be_missing=not limits.get("required") or nothing,
        missing_values=tuple(text for text in missing if text),
        form=form,
        remarks=tuple(_remarks(field, limits, kind, holds, form)),
    )


def _categories(field: dict[str, Any], limits: dict[str, Any]) -> tuple[tuple[Category, ...], bool]:
    if found := listed(field.get("categories")):
        pairs = [(each.get("value"), said(each.get("label"))) if isinstance(each, dict) else (each, "") for each in found]
        labels = {text: label for value, label in pairs if (text := written(value))}
        return categories_of([value for value, _ in pairs], labels)
    return categories_of(limits["enum"]) if isinstance(limits.get("enum"), list) else ((), False)


def _booleans(field: dict[str, Any]) -> tuple[tuple[Category, ...], tuple[tuple[str, str], ...]]:
    """False and true by their first spellings; the others are read as these."""
    spelt = {
        key: [each for each in listed(field.get(key)) if isinstance(each, str)] or usual for key, usual in _SPELLINGS.items()
    }
    categories = tuple(Category(spelt[key][0]) for key in ("falseValues", "trueValues"))
    return categories, tuple((other, first) for first, *others in spelt.values() for other in others)


def _remarks(field: dict[str, Any], limits: dict[str, Any], kind: str, holds: str, form: str | None) -> list[str]:
    unread = [key for key in ("pattern", "minLength", "maxLength", "groupChar") if key in limits | field]
    remarks = [f"not taken from the schema: {', '.join(unread)}"] if unread else []
    remarks += [f"the schema's type is {kind}"] if holds == UNKNOWN else []
    if holds == DATES and field.get("format") not in (None, "default", "any", "%Y-%m-%d") and form is None:
        remarks.append(f"dates are written {field['format']}")
    return remarks


ENTRY = DescribingFormat(
    "frictionless", 1, "Frictionless table schema or data package", "JSON with fields, or with resources", _claims, _describe
)
