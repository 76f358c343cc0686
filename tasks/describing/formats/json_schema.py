"""JSON Schema of a record: an object with properties, or an array of such objects. Only references within it are followed."""

from __future__ import annotations

from typing import Any

from schemas.errors import SpecError
from tasks.describing.description import BOOLEANS, DATES, NUMBERS, TEXT, TIMES, UNKNOWN, WHOLE, Category, Description, Variable
from tasks.describing.documents import Document
from tasks.describing.facts import categories_of, end, listed, said, written
from tasks.describing.formats import DescribingFormat

_HOLDS = {"string": TEXT, "integer": WHOLE, "number": NUMBERS, "boolean": BOOLEANS}
_NULLABLE = "x-or-null"  # that null may stand in its place, of a schema that was a choice
_FURTHEST = 20  # references that lead to references


def _claims(document: Document) -> bool:
    schema = document.json
    return (
        "properties" in schema or "json-schema.org" in str(schema.get("$schema")) or schema.get("type") in ("object", "array")
    )


def _describe(document: Document, asked: str | None) -> Description:
    record = _meant(document, document.json)
    if record.get("type") == "array" or "items" in record:
        record = _meant(document, record.get("items"))
    properties = record.get("properties")
    if not isinstance(properties, dict):
        raise SpecError(
            f"{document.path}: a JSON Schema without properties; give the schema of a record, or of a list of records."
        )
    required = listed(record.get("required"))
    variables = (_variable(name, _meant(document, said_), name in required) for name, said_ in properties.items())
    return Description(
        kind="JSON Schema",
        file=document.path.name,
        variables=tuple(variables),
        title=said(document.json.get("title") or record.get("title")),
        description=said(document.json.get("description") or record.get("description")),
    )


def _meant(document: Document, schema: Any) -> dict[str, Any]:
    """What a schema says, the part that it refers to included: its own words win."""
    for _ in range(_FURTHEST):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            if (only := _only(schema)) is None:
                return schema
            schema = only
            continue
        part: Any = document.json
        if not reference.startswith("#"):
            raise SpecError(f"{document.path}: refers to {reference}; only references within the file (#/…) are followed.")
        for key in reference.lstrip("#").strip("/").split("/"):
            part = part.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) and key else part
        schema = {**(part if isinstance(part, dict) else {}), **{key: own for key, own in schema.items() if key != "$ref"}}
    raise SpecError(f"{document.path}: a reference leads to itself; write the schema out.")


def _only(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Where there is a choice between one thing and null, or of one thing alone, that thing."""
    for key in ("anyOf", "oneOf", "allOf"):
        choice = [each for each in listed(schema.get(key)) if isinstance(each, dict)]
        kept = [each for each in choice if each.get("type") != "null"]
        if len(kept) == 1 and "const" not in kept[0]:
            rest = {name: part for name, part in schema.items() if name != key}
            return {**kept[0], **rest, _NULLABLE: len(kept) < len(choice) or bool(schema.get(_NULLABLE))}
    return None


def _variable(name: str, schema: dict[str, Any], required: bool) -> Variable:
    types = schema.get("type")
    types = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    categories, nothing = _categories(schema)
    holds = _HOLDS.get(next((str(kind) for kind in types if kind != "null"), ""), UNKNOWN)
    if holds == TEXT:
        holds = {"date": DATES, "date-time": DATES, "time": TIMES}.get(str(schema.get("format")), TEXT)
    if holds == BOOLEANS and not categories:
        categories = (Category("false"), Category("true"))
    unread: list[str] = [key for key in ("pattern", "multipleOf") if key in schema]
    unread += ["type"] if types and holds == UNKNOWN else []
    return Variable(
        column=name,
        holds=holds,
        title=said(schema.get("title")),
        description=said(schema.get("description")),
        categories=categories,
        low=end(schema.get("minimum", schema.get("formatMinimum")), schema.get("exclusiveMinimum"), holds, 1),
        high=end(schema.get("maximum", schema.get("formatMaximum")), schema.get("exclusiveMaximum"), holds, -1),
        may_be_missing=not required or "null" in types or nothing or bool(schema.get(_NULLABLE)),
        remarks=(f"not taken from the schema: {', '.join(unread)}",) if unread else (),
    )


def _categories(schema: dict[str, Any]) -> tuple[tuple[Category, ...], bool]:
    """From enum or const; or from a choice of constants, each with its title."""
    if isinstance(schema.get("enum"), list):
        return categories_of(schema["enum"])
    choice = listed(schema.get("oneOf")) or listed(schema.get("anyOf"))
    if "const" in schema:
        choice = [schema]
    if choice and all(isinstance(each, dict) and "const" in each for each in choice):
        labels = {
            text: said(each.get("title") or each.get("description"))
            for each in choice
            if (text := written(each["const"])) and each is not schema
        }
        return categories_of([each["const"] for each in choice], labels)
    return (), False


ENTRY = DescribingFormat("json schema", 3, "JSON Schema", "JSON with properties", _claims, _describe)
