"""One small survey, described in every format that `steps init` reads: wages of people, with everything a plan needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat

SECRET = 987_654  # a value that only a record, or a statistic of records, would tell

TABLE_SCHEMA: dict[str, Any] = {
    "fields": [
        {
            "name": "sector",
            "title": "Sector of the employer",
            "type": "integer",
            "categories": [{"value": 1, "label": "public"}, {"value": 2, "label": "private"}],
            "constraints": {"required": True},
        },
        {"name": "grade", "type": "string", "categories": ["junior", "senior", "head"], "categoriesOrdered": True},
        {"name": "age", "type": "integer", "constraints": {"minimum": 15, "maximum": 74, "required": True}},
        {"name": "pay", "type": "number", "description": "Gross pay a month.", "constraints": {"minimum": 0, "maximum": 20000}},
        {"name": "hired", "type": "date", "constraints": {"minimum": "1980-01-01", "maximum": "2026-12-31"}},
        {"name": "member", "type": "boolean", "trueValues": ["Y"], "falseValues": ["N"], "constraints": {"required": True}},
        {"name": "starts", "type": "time", "constraints": {"required": True}},
        {"name": "id", "type": "string"},
    ],
    "primaryKey": "id",
    "missingValues": ["", "-9"],
}
PACKAGE: dict[str, Any] = {
    "name": "wages",
    "title": "Wages in small firms",
    "licenses": [{"name": "CC-BY-4.0"}],
    "contributors": [{"title": "Office of Examples", "role": "publisher"}],
    "resources": [
        {"name": "wages", "path": "wages.csv", "encoding": "latin-1", "dialect": {"delimiter": ";"}, "schema": TABLE_SCHEMA}
    ],
}
CSVW: dict[str, Any] = {
    "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
    "url": "wages.csv",
    "dc:title": "Wages in small firms",
    "dc:license": {"@id": "https://creativecommons.org/licenses/by/4.0/"},
    "tableSchema": {
        "columns": [
            {
                "name": "sector",
                "titles": "Sector",
                "required": True,
                "datatype": {"base": "string", "format": "public|private"},
            },
            {"name": "age", "required": True, "datatype": {"base": "integer", "minimum": 15, "maximum": 74}},
            {"name": "pay", "null": ["", "NA"], "datatype": {"base": "decimal", "minimum": 0, "maximum": 20000}},
            {
                "name": "hired",
                "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "1980-01-01", "maximum": "2026-12-31"},
            },
            {"name": "member", "required": True, "datatype": {"base": "boolean", "format": "Y|N"}},
            {"name": "row", "virtual": True},
        ]
    },
}
CSVW_EO: dict[str, Any] = {
    "@context": ["http://www.w3.org/ns/csvw", "csvw-eo-context.jsonld"],
    "@type": "Table",
    "privacyUnit": "person",
    "maxContributions": 3,
    "maxLength": SECRET,
    "publicLength": 45_123,
    "tableSchema": {
        "columns": [
            {"name": "person", "datatype": "positiveInteger", "required": True, "privacyId": True, "maximum": SECRET},
            {
                "name": "sector",
                "datatype": "string",
                "required": True,
                "nullableProportion": 0.0,
                "keyValues": ["public", "private"],
                "exhaustiveKeys": True,
                "maxLength": SECRET,
            },
            {
                "name": "pay",
                "datatype": "double",
                "required": False,
                "nullableProportion": 0.987654,
                "partitions": [
                    {"predicate": {"lowerBound": low, "upperBound": high}, "maxLength": SECRET}
                    for low, high in ((0.0, 1500.0), (1500.0, 4000.0), (4000.0, 20000.0))
                ],
            },
            {"name": "visits", "datatype": "integer", "required": True, "minimum": 0, "maximum": 5},
        ]
    },
}
DDI = f"""<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5">
  <stdyDscr><citation><titlStmt><titl>Wages in small firms</titl></titlStmt>
    <distStmt><distrbtr>Office of Examples</distrbtr></distStmt></citation>
    <stdyInfo><abstract>What people in small firms earn.</abstract></stdyInfo></stdyDscr>
  <fileDscr ID="F1"><fileTxt><fileName>wages.csv</fileName><dimensns><caseQnty>45123</caseQnty></dimensns></fileTxt></fileDscr>
  <dataDscr>
    <var ID="V1" name="sector" files="F1" intrvl="discrete"><labl>Sector</labl>
      <qstn><qstnLit>For whom do you work?</qstnLit></qstn>
      <catgry><catValu>1</catValu><labl>public</labl><catStat type="freq">{SECRET}</catStat></catgry>
      <catgry><catValu>2</catValu><labl>private</labl></catgry>
      <catgry missing="Y"><catValu>-8</catValu><labl>no answer</labl></catgry>
      <sumStat type="vald">{SECRET}</sumStat><varFormat type="numeric"/></var>
    <var name="grade" files="F1" intrvl="discrete" nature="ordinal">
      <catgry><catValu>a</catValu><labl>junior</labl></catgry><catgry><catValu>b</catValu><labl>senior</labl></catgry>
      <varFormat type="character"/></var>
    <var name="age" files="F1" intrvl="contin" dcml="0"><valrng><range min="15" max="74"/></valrng>
      <sumStat type="max">{SECRET}</sumStat><varFormat type="numeric"/></var>
    <var name="pay" files="F1" intrvl="contin" dcml="2"><labl>Gross pay a month</labl>
      <valrng><range min="0" max="20000"/></valrng><invalrng><item VALUE="-9"/></invalrng>
      <catgry><catValu>0</catValu><labl>nothing</labl></catgry><varFormat type="numeric"/></var>
  </dataDscr>
</codeBook>
"""
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Wages in small firms",
    "type": "array",
    "items": {
        "type": "object",
        "required": ["sector", "age"],
        "properties": {
            "sector": {"oneOf": [{"const": 1, "title": "public"}, {"const": 2, "title": "private"}], "type": "integer"},
            "grade": {"$ref": "#/$defs/grade", "title": "Grade"},
            "age": {"type": "integer", "minimum": 15, "maximum": 74, "examples": [SECRET]},
            "pay": {"type": ["number", "null"], "minimum": 0, "maximum": 20000.5},
            "member": {"type": "boolean"},
        },
    },
    "$defs": {"grade": {"type": "string", "enum": ["junior", "senior", None]}},
}


def write_labelled(path: Path) -> Path:
    """A file of SPSS or Stata with labels, and a record whose values nobody may read."""
    frame = pd.DataFrame({"sector": [1.0, 2.0], "grade": [1.0, 3.0]})
    labels = {"sector": {1: "public", 2: "private"}, "grade": {1: "junior", 2: "senior", 3: "head"}}
    titles = {"sector": "Sector of the employer", "grade": "Grade"}
    if path.suffix == ".sav":
        missing = {"sector": [-9]}
        measures = {"sector": "nominal", "grade": "ordinal"}
        labels["sector"] = {**labels["sector"], -9: "no answer"}
        pyreadstat.write_sav(
            frame,
            str(path),
            column_labels=titles,
            variable_value_labels=labels,
            missing_ranges=missing,
            variable_measure=measures,
            file_label="Wages in small firms",
        )
    else:
        frame = frame.astype(int)
        pyreadstat.write_dta(
            frame, str(path), column_labels=titles, variable_value_labels=labels, file_label="Wages in small firms"
        )
    return path


def write(folder: Path, name: str) -> Path:
    """The survey in one format, complete: nothing is left to a person."""
    path = folder / name
    if path.suffix in (".sav", ".dta"):
        return write_labelled(path)
    texts = {
        "schema.json": TABLE_SCHEMA,
        "datapackage.json": PACKAGE,
        "wages.csv-metadata.json": CSVW,
        "wages-eo.json": CSVW_EO,
        "wages.schema.json": JSON_SCHEMA,
    }
    path.write_text(DDI if name == "wages.xml" else json.dumps(texts[name]), encoding="utf-8")
    return path


COMPLETE = (
    "schema.json",
    "datapackage.json",
    "wages.csv-metadata.json",
    "wages-eo.json",
    "wages.schema.json",
    "wages.xml",
    "wages.sav",
    "wages.dta",
)
