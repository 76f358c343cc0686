"""croissant.json: Croissant 1.0, JSON-LD in schema.org's words, with the privacy facts in its vocabulary of responsible use."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tasks.publishing.columns import Column
from tasks.publishing.description import Description, File
from tasks.publishing.descriptions import DescribingFile

TYPES = {
    "categorical": "sc:Text",
    "ordinal": "sc:Text",
    "integer": "sc:Integer",
    "numeric": "sc:Float",
    "date": "sc:Date",
    "time": "sc:Time",
    "weight": "sc:Float",
}
MEDIA = {"application/vnd.apache.parquet": "application/x-parquet"}  # as this vocabulary calls it
_OWN = (
    "citeAs column data dataType examples extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath "
    "key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField transform "
    "equivalentProperty"
)
_TYPED = {"data": "@json", "examples": "@json", "dataType": "@vocab"}
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{name: {"@id": f"cr:{name}", "@type": _TYPED[name]} if name in _TYPED else f"cr:{name}" for name in _OWN.split()},
}


def _write(said: Description) -> bytes:
    domain = said.domain
    publisher = {"@type": "sc:Organization", "name": domain.publisher} | _reached(domain.contact) if domain.publisher else None
    dataset = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": said.release,
        "alternateName": said.name if said.name != said.release else None,
        "description": said.text,
        "url": "index.html",
        "license": _licence(domain.licence) if domain.licence else None,
        "creator": publisher,
        "publisher": publisher,
        "datePublished": said.made_at,
        "version": f"{said.made_at.replace('-0', '-').replace('-', '.')}",
        "keywords": ["synthetic data", "differential privacy", said.plan.population],
        "isBasedOn": domain.source,
        "citeAs": _bibtex(said),
        "variableMeasured": [_variable(column) for column in said.columns],
        "additionalProperty": list(_privacy(said)),
        **_responsible_use(said),
        "distribution": [_file(file) for file in said.files],
        "recordSet": [_records(said, number) for number in said.sets],
    }
    given = {key: value for key, value in dataset.items() if value is not None}
    return (json.dumps(given, ensure_ascii=False, indent=1) + "\n").encode()


def _reached(contact: str | None) -> dict[str, str]:
    if contact is None:
        return {}
    return {"url": contact} if "://" in contact else {"email": contact} if "@" in contact else {}


def _licence(licence: str) -> str:
    return licence if "://" in licence else f"https://spdx.org/licenses/{licence}.html"


def _bibtex(said: Description) -> str:
    fields = {"title": said.name, "author": said.domain.publisher, "year": said.made_at[:4], "note": said.promise}
    plain = {name: text.translate({123: None, 125: None}) for name, text in fields.items() if text}  # without braces
    named = ", ".join(f"{name}={{{text}}}" for name, text in plain.items())
    return f"@misc{{{said.release}, {named}}}"


def _variable(column: Column) -> dict[str, Any]:
    words = {"alternateName": column.words.title, "description": column.words.description}
    return {"@type": "sc:PropertyValue", "name": column.name} | {key: text for key, text in words.items() if text}


def _privacy(said: Description) -> list[dict[str, Any]]:
    facts = {
        "privacy definition": said.guarantee.definition,
        **said.privacy,
        "privacy unit": said.plan.unit,
        "rows per privacy unit, at most": said.plan.rows_per_person,
        "neighbouring data": said.guarantee.neighbours,
    }
    return [{"@type": "sc:PropertyValue", "name": name, "value": value} for name, value in facts.items()]


def _responsible_use(said: Description) -> dict[str, Any]:
    return {
        "rai:personalSensitiveInformation": f"None: no row is, or stands for, a {said.plan.unit}. {said.guarantee.sentence}",
        "rai:dataManipulationProtocol": f"{'; '.join(said.guarantee.mechanisms)}. {said.composition}",
        "rai:dataLimitations": [
            "Not covered by the guarantee, because it is public: " + "; ".join(said.guarantee.unprotected) + ".",
            "Counts of small groups may be mostly noise: margins.csv says which. Rows alone give no honest errors.",
            said.combining,
        ],
        "rai:dataUseCases": [said.use],
    }


def _file(file: File) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "description": f"{file.what}{f', set {file.set}' if file.set else ''}",
        "contentUrl": file.name,
        "contentSize": f"{file.facts.size} B",
        "encodingFormat": MEDIA.get(file.media, file.media),
        "sha256": file.facts.sha256,
    }


def _records(said: Description, number: int) -> dict[str, Any]:
    """A set has the same records in every format; Parquet is how it was sealed."""
    name = f"synthetic-{number}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Synthetic records, set {number} of {said.plan.sets}. {said.combining}",
        "field": [_field(column, name) for column in said.columns],
    }


def _field(column: Column, name: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{name}/{quote(column.name, safe='')}",
        "name": column.name,
        "description": column.text or column.name,
        "dataType": TYPES[column.kind],
        "source": {"fileObject": {"@id": f"{name}.parquet"}, "extract": {"column": column.name}},
    }


ENTRY = DescribingFile("croissant.json", 3, "this folder for programs that read Croissant and schema.org (JSON-LD)", _write)
