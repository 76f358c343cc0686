"""datapackage.json: a Frictionless data package, with a table schema for every set: of its CSV where there is one.

Readers of Parquet in that world go through pandas: a missing whole number comes as NaN among numbers, and neither size nor
hash is known to them. The schema of a Parquet file is such that they can check it; manifest.json has its hash.
"""

from __future__ import annotations

import json
from typing import Any

from schemas.spec.linked import HouseholdTable, PersonTable
from schemas.tables import HOUSEHOLD, PERSON
from tasks.publishing.columns import Column, column_of, derived_column, weight_columns
from tasks.publishing.description import MEDIA, Description, File, stem_of
from tasks.publishing.descriptions import DescribingFile
from tasks.publishing.formats.csv import harmless
from tasks.publishing.listings import LISTED

CSV = MEDIA[".csv"]
MOST_LISTED = 1000  # categories; codebook.csv has all of them
TYPES = {
    "categorical": "string",
    "ordinal": "string",
    "integer": "integer",
    "numeric": "number",
    "date": "date",
    "time": "time",
    "weight": "number",
}


def _write(said: Description) -> bytes:
    domain = said.domain
    package = {
        "profile": "data-package",
        "name": said.release,
        "title": said.name,
        "description": said.text,
        "version": said.made_at,
        "created": f"{said.made_at}T00:00:00Z",
        "keywords": ["synthetic data", "differential privacy", said.plan.population],
        "licenses": [_licence(domain.licence)] if domain.licence else None,
        "contributors": [_publisher(said)] if domain.publisher else None,
        "sources": [{"title": domain.source}] if domain.source else None,
        "privacy": said.guarantee.model_dump(mode="json"),
        "resources": [
            *(_resource(said, file) for file in _tables(said)),
            *(_linked(said, file) for file in _linked_files(said)),
        ],
    }
    return _json(package)


def _json(value: Any) -> bytes:
    """For people too: what is not given is left out."""
    given = {key: part for key, part in value.items() if part is not None}
    return (json.dumps(given, ensure_ascii=False, indent=1) + "\n").encode()


def _licence(licence: str) -> dict[str, str]:
    return {"path": licence} if "://" in licence else {"name": licence}


def _publisher(said: Description) -> dict[str, str]:
    contact = said.domain.contact or ""
    reached = {"path": contact} if "://" in contact else {"email": contact} if "@" in contact else {}
    return {"title": said.domain.publisher or "", "role": "publisher", **reached}


def _tables(said: Description) -> list[File]:
    """A file per set, and the listings."""
    sets = [min(files, key=lambda file: file.media != CSV) for files in said.sets.values()]
    return [*sets, *(file for file in said.files if file.name in LISTED)]


def _linked_files(said: Description) -> list[File]:
    """Of linked tables those of every set."""
    found = [file for file in said.files if stem_of(file.name) in (HOUSEHOLD, PERSON)]
    text = {file.name.rsplit(".", 1)[0] for file in found if file.media == CSV}
    return [file for file in found if (file.media == CSV) == (file.name.rsplit(".", 1)[0] in text)]


def _linked(said: Description, file: File) -> dict[str, Any]:
    """With its keys: persons are of the households of their set."""
    tables, kind, of_text = said.domain.tables, stem_of(file.name), file.media == CSV
    assert tables is not None
    own: HouseholdTable | PersonTable = tables.household if kind == HOUSEHOLD else tables.person
    keys = [HOUSEHOLD] if kind == HOUSEHOLD else [HOUSEHOLD, PERSON]
    columns = [column_of(attribute.as_published()) for attribute in own.attributes]
    columns += [derived_column(following) for following in said.domain.of_table(own).followings]
    columns += weight_columns(said.domain)
    fields = [{"name": key, "type": "integer", "constraints": {"required": True, "minimum": 1}} for key in keys]
    fields += [_field(column, of_text) for column in columns]
    schema: dict[str, Any] = {"fields": fields, "missingValues": [""] if of_text else ["", "nan"], "primaryKey": keys}
    if kind == PERSON:
        other = _name(file.name.replace(PERSON, HOUSEHOLD, 1))
        schema["foreignKeys"] = [{"fields": [HOUSEHOLD], "reference": {"resource": other, "fields": [HOUSEHOLD]}}]
    return _facts(file) | {"schema": schema}


def _name(file: str) -> str:
    return file.replace(".", "-")


def _resource(said: Description, file: File) -> dict[str, Any]:
    columns = LISTED[file.name] if file.set is None else {}
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    of_text = file.media == CSV
    missing = [""] if of_text else ["", "nan"]
    return _facts(file) | {"schema": {"fields": fields or _fields(said, of_text), "missingValues": missing}}


def _facts(file: File) -> dict[str, Any]:
    suffix = file.name.rsplit(".", 1)[1]
    facts: dict[str, Any] = {
        "name": _name(file.name),
        "path": file.name,
        "description": f"{file.what}{f', set {file.set}' if file.set else ''}",
        "format": suffix,
        "mediatype": file.media,
    }
    if file.media == CSV:
        checked = {"bytes": file.facts.size, "hash": f"sha256:{file.facts.sha256}"}
        facts |= {"encoding": "utf-8", "profile": "tabular-data-resource", **checked}
    return facts


def _fields(said: Description, of_text: bool) -> list[dict[str, Any]]:
    return [_field(column, of_text) for column in said.columns]


def _field(column: Column, of_text: bool) -> dict[str, Any]:
    """In a CSV a label that a spreadsheet would run stands behind an apostrophe."""
    kind = TYPES[column.kind]
    if kind == "integer" and column.may_be_missing and not of_text:
        kind = "number"
    words = {"title": column.words.title, "description": column.words.description}
    given = {key: text for key, text in words.items() if text}
    written = {"format": "%H:%M"} if kind == "time" and of_text else {}
    return {"name": column.name, "type": kind, **written, **given, "constraints": _limits(column, of_text)}


def _limits(column: Column, of_text: bool) -> dict[str, Any]:
    limits: dict[str, Any] = {"required": not column.may_be_missing}
    if column.kind == "time":  # whose bounds are not written as a schema writes times
        return limits
    if column.bounds is not None:
        ends = zip(("minimum", "maximum"), column.bounds, strict=True)
        return limits | {name: end for name, end in ends if end is not None}
    if len(column.labels) <= MOST_LISTED:
        limits["enum"] = [harmless(label) for label in column.labels] if of_text else list(column.labels)
    return limits


ENTRY = DescribingFile("datapackage.json", 2, "this folder for programs that read Frictionless data packages", _write)
