"""Makes docs/reference/{dataset,release}.md and docs/schemas/*.schema.json from the models of the two files, and
docs/reference/commands.md from the commands.

`python -m scripts.reference` writes them; a test fails while they are not what the models say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

import steps_engine.methods  # noqa: F401  registers what `method:` may hold
from schemas.names import NAME
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.described import LONGEST_TEXT, LONGEST_TITLE
from schemas.spec.domain import Domain
from schemas.spec.method import METHOD_SPECS
from schemas.spec.release import ReleaseSpec
from schemas.spec.shapes import NAMED, Weighted
from scripts import commands
from tasks.publishing.formats import FORMATS

ROOT = Path(__file__).parents[1]
JsonSchema = dict[str, Any]

_NUMBER: JsonSchema = {"type": "number"}
_WORD: JsonSchema = {"type": "string"}
_FILE: JsonSchema = {"type": "string", "format": "file"}
_VALUES: list[JsonSchema] = [_WORD, _NUMBER, {"type": "boolean"}]
_LIST_OF_VALUES: JsonSchema = {"type": "array", "items": {"anyOf": _VALUES}}
_GROUP: JsonSchema = {"type": "array", "items": _WORD, "minItems": 1}
_RANGE_END: JsonSchema = {"anyOf": [_NUMBER, {"type": "string", "format": "date"}]}
_RANGE: JsonSchema = {
    "type": "object",
    "properties": {"from": _RANGE_END, "below": _RANGE_END},
    "additionalProperties": False,
    "minProperties": 1,
}
_TWO: JsonSchema = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_WEIGHTS = Weighted.model_fields["weights"].description
_WEIGHTED: JsonSchema = {
    "type": "object",
    "properties": {"weights": {"anyOf": [_FILE, {"type": "array", "items": _TWO}], "description": _WEIGHTS}},
    "required": ["weights"],
    "additionalProperties": False,
}
_ONE_VALUE = [_WORD, _NUMBER, {"type": "null"}, _RANGE]
_RULE_VALUE: JsonSchema = {"anyOf": [*_ONE_VALUE, {"type": "array", "items": {"anyOf": _ONE_VALUE}}]}

# What a key looks like in YAML, where a validator turns what is written into another type: by the validator's name.
AS_WRITTEN: dict[str, JsonSchema] = {
    "_from_spec": {"type": "number", "exclusiveMinimum": 0, "maximum": 10**6},
    "_rho_from_spec": {"type": "number", "exclusiveMinimum": 0, "maximum": 10**6},
    "_delta_from_spec": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "_exact": _NUMBER,
    "_within": {"anyOf": [_NUMBER, {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *%$", "format": "percentage"}]},
    "_keys": {},
    "_number": _NUMBER,
    "as_date": {"type": "string", "format": "date"},
    "_plain_label": {"anyOf": [_WORD | {"pattern": "^\\S", "maxLength": 200}, {"type": "integer"}, {"type": "boolean"}]},
    "_texts": _LIST_OF_VALUES,
    "missing_policy": {"anyOf": [{"enum": ["forbid", "category"]}, _LIST_OF_VALUES]},
    "_pairs": {"type": "object", "additionalProperties": {"anyOf": [*_VALUES, {"type": "null"}]}},
    "day_format": _WORD,
    "time_format": _WORD,
    "as_time": {"type": "string", "format": "time", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
    "_listed": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]},
    "_step_of": _NUMBER | {"exclusiveMinimum": 0},
    "_way_within": {"anyOf": [{"enum": list(NAMED)}, _WEIGHTED]},
    "_mapping": {"anyOf": [_FILE, {"type": "object", "additionalProperties": {"anyOf": _VALUES}}]},
    "_title": _WORD | {"maxLength": LONGEST_TITLE},
    "_text": _WORD | {"maxLength": LONGEST_TEXT},
    "licence_of": _WORD | {"maxLength": LONGEST_TITLE},
    "_labels": {
        "type": "object",
        "additionalProperties": {"anyOf": [_WORD | {"maxLength": LONGEST_TITLE}, {"type": "integer"}]},
    },
    "Csv._separates": {"anyOf": [_WORD | {"minLength": 1, "maxLength": 1}, {"type": "null"}]},
    "Csv._known": _WORD,
    "usable_name": {"type": "string", "pattern": "^[^\"'`\\\\;]{1,128}$"},
    "ReleaseSpec._plain": {"type": "string", "pattern": "^([a-z0-9_-]|\\{(year|quarter|month)\\})+$"},
    "plain_name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    "_grouped": {"type": "array", "items": {"anyOf": [_WORD, _GROUP]}, "minItems": 1},
    "not_empty": {"type": "object", "additionalProperties": _RULE_VALUE, "minProperties": 1},
}
_EDITOR_NOTE = "Checks the shape while you write; `steps plan` checks everything else."


def method_specs() -> Mapping[str, type[BaseModel]]:
    """What `method:` may hold, by decomposition."""
    return METHOD_SPECS


class AsWritten(GenerateJsonSchema):
    """JSON Schema of what stands in the YAML file, not of the Python value that it becomes."""

    used: set[str] = set()

    def function_before_schema(self, schema: Any) -> JsonSchema:
        return self._written(schema) or super().function_before_schema(schema)

    def function_after_schema(self, schema: Any) -> JsonSchema:
        return self._written(schema) or super().function_after_schema(schema)

    def _written(self, schema: Any) -> JsonSchema | None:
        name = schema["function"]["function"].__qualname__
        if name not in AS_WRITTEN:
            return None
        self.used.add(name)
        return dict(AS_WRITTEN[name])


def schema_of(model: type[BaseModel]) -> JsonSchema:
    """The model's JSON Schema in the old and plain form that editors know: nothing referred to, no titles."""
    made = model.model_json_schema(schema_generator=AsWritten)
    return _plain(made, made.get("$defs", {}))


def _plain(part: Any, definitions: JsonSchema) -> Any:
    if isinstance(part, list):
        return [_plain(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        part = definitions[part["$ref"].rpartition("/")[2]] | {key: part[key] for key in part if key != "$ref"}
    dropped = {"$defs", "discriminator", "title"} if not _names_properties(part) else set()
    plain = {key: _plain(value, definitions) for key, value in part.items() if key not in dropped}
    if "prefixItems" in plain:
        plain["items"] = plain.pop("prefixItems")[0]  # every pair of ours has two of a kind
    if plain.get("type") == "number" and isinstance(plain.get("default"), str):
        plain["default"] = float(Fraction(plain["default"]))
    return plain


def _names_properties(part: JsonSchema) -> bool:
    """Whether these are the properties of a model, where `title` would be a key of its own."""
    return all(isinstance(value, dict) for value in part.values()) and "type" not in part


def dataset_schema() -> JsonSchema:
    return _headed(schema_of(Domain), "dataset.yaml")


def release_schema(specs: Mapping[str, type[BaseModel]] | None = None) -> JsonSchema:
    """release.yaml; `method` is one of the given specs, told apart by its decomposition."""
    made = schema_of(ReleaseSpec)
    ways = [_of_decomposition(schema_of(spec), name) for name, spec in (specs or method_specs()).items()]
    made["properties"]["formats"]["items"] = {"enum": [each.name for each in FORMATS.entries()]}
    made["properties"]["analyses"]["items"] = {"oneOf": [_GROUP, _WORD, schema_of(TableAnalysis), schema_of(ModelAnalysis)]}
    made["properties"]["source"]["anyOf"] = made["properties"]["source"].pop("oneOf")  # files or a database: not a list of ways
    described = {"description": made["properties"]["method"]["description"]}
    made["properties"]["method"] = (ways[0] if len(ways) == 1 else {"oneOf": ways}) | described
    return _headed(made, "release.yaml")


def _of_decomposition(spec: JsonSchema, name: str) -> JsonSchema:
    if not name:
        return spec
    word = spec["properties"].get("decomposition", {}) | {"const": name}
    keys = {"decomposition": {key: value for key, value in word.items() if key not in ("enum", "type")}} | {
        key: value for key, value in spec["properties"].items() if key != "decomposition"
    }
    needed = [*spec.get("required", ()), *([] if name == "auto" else ["decomposition"])]
    return spec | {"properties": keys, "required": sorted(set(needed))}


def _headed(schema: JsonSchema, title: str) -> JsonSchema:
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, "$comment": _EDITOR_NOTE} | schema


# Pages


def page(title: str, opening: str, schema: JsonSchema) -> str:
    """Every key of a file, section by section."""
    return "\n".join([f"# {title}", "", opening, "", *_sections(schema, "")]).rstrip() + "\n"


def _sections(schema: JsonSchema, path: str, level: int = 2, heading: str = "") -> Iterator[str]:
    """A table of the keys at `path`, then a section for every key that holds keys of its own."""
    if path:
        yield f"{'#' * min(level, 4)} {heading or f'`{path}`'}"
        yield ""
    if path and "description" in schema and not heading:
        yield schema["description"]
        yield ""
    needed = schema.get("required", ())
    yield "| key | what it is | default | meaning |"
    yield "|---|---|---|---|"
    for key, value in sorted(schema["properties"].items(), key=lambda item: "const" not in item[1]):
        default = "**needed**" if key in needed else _default(value)
        yield f"| `{key}` | {_type(value)} | {default} | {_cell(value.get('description', ''))} |"
    yield ""
    for key, value in schema["properties"].items():
        yield from _below(value, f"{path}.{key}" if path else key, level + bool(path))


def _below(value: JsonSchema, path: str, level: int) -> Iterator[str]:
    for way in value.get("anyOf", [value]):
        if "properties" in way:
            yield from _sections(way, path, level)
        elif "oneOf" in way or "properties" in way.get("items", {}) or "oneOf" in way.get("items", {}):
            inner = way.get("items", way)
            tag = "kind" if "items" in way else "decomposition"
            ways = [one for one in inner.get("oneOf", [inner]) if "properties" in one]
            for each in ways:
                word = each["properties"].get(tag, {}).get("const")
                plain = f"`{path}`, each of them" if len(ways) == 1 else f"`{path}` with `{next(iter(each['properties']))}`"
                yield from _sections(each, path, level, f"`{path}` of {tag} `{word}`" if word else plain)


def _type(value: JsonSchema) -> str:
    """A type in words."""
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return " · ".join(f"`{word}`" for word in value["enum"])
    if ways := value.get("anyOf"):
        said = [_type(way) for way in ways if way.get("type") != "null"]
        return " or ".join(dict.fromkeys(said))
    if "oneOf" in value:
        plain = all("properties" not in way for way in value["oneOf"])
        return " or ".join(map(_type, value["oneOf"])) if plain else "keys, see below"
    return {
        "array": _list_type,
        "object": lambda _: "keys, see below" if "properties" in value else _mapping_type(value),
        "integer": lambda _: "whole number" + _range(value),
        "number": lambda _: "number" + _range(value),
        "boolean": lambda _: "`true` · `false`",
        "string": lambda _: {each: each for each in ("date", "time", "file", "percentage")}.get(
            value.get("format", ""), "name" if "pattern" in value else "text"
        ),
    }[value["type"]](value)


def _mapping_type(value: JsonSchema) -> str:
    within = value.get("additionalProperties")
    known = {
        "column: attribute": _WORD,
        "value: value": AS_WRITTEN["_pairs"]["additionalProperties"],
        "category: text": AS_WRITTEN["_labels"]["additionalProperties"],
        "category: category": {"anyOf": _VALUES},
    }
    return next((words for words, each in known.items() if each == within), "attribute: value")


def _list_type(value: JsonSchema) -> str:
    items, fixed = value["items"], value.get("minItems") == value.get("maxItems") is not None
    if "properties" in items or "oneOf" in items:
        return "list, see below"
    if items.get("anyOf") == [_WORD, _GROUP]:
        return "list of names, or of lists of them,"
    if items in ({"anyOf": _VALUES}, AS_WRITTEN["_plain_label"]):
        return "list of values" if items == {"anyOf": _VALUES} else "list of labels"
    inner = _type(items)
    return f"[{inner}, {inner}]" if fixed else f"list of {inner}{'' if '`' in inner or '[' in inner else 's'}"


def _range(value: JsonSchema) -> str:
    low, high = value.get("minimum"), value.get("maximum")
    if "exclusiveMinimum" in value:
        below = f", below {value['exclusiveMaximum']}" if "exclusiveMaximum" in value else ""
        return f", above {value['exclusiveMinimum']}{below if high is None else f', at most {high:,}'}"
    return f", {low:,} to {high:,}" if low is not None and high is not None else ""


def _default(value: JsonSchema) -> str:
    default = value.get("default")
    if default is None or default == [] or isinstance(default, dict):
        return ""
    if isinstance(default, list):
        return f"`[{', '.join(map(str, default))}]`"
    return f"`{json.dumps(default) if isinstance(default, bool | int | float) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


DATASET = """\
What anybody may know about the data before looking at it. Take it from the questionnaire, never from the records: it is
published with every release."""
RELEASE = "One release: which data, which guarantee, which method."
OPENING = """\
{text} This page is made from the models in `schemas/spec/`. Unknown keys are refused, with their line
and the nearest known key.

Editors that know JSON Schema complete and check the file when its first line names [the schema](../schemas/{name}.schema.json):

```yaml
# yaml-language-server: $schema=PATH/TO/docs/schemas/{name}.schema.json
```"""


def files() -> dict[Path, str]:
    """Every file that is made, with what it should hold."""
    dataset, release = dataset_schema(), release_schema()
    docs = ROOT / "docs"
    return {
        docs / "schemas" / "dataset.schema.json": _json(dataset),
        docs / "schemas" / "release.schema.json": _json(release),
        docs / "reference" / "dataset.md": page("dataset.yaml", OPENING.format(name="dataset", text=DATASET), dataset),
        docs / "reference" / "commands.md": commands.page(),
        docs / "reference" / "release.md": page("release.yaml", OPENING.format(name="release", text=RELEASE), release),
    }


def _json(value: JsonSchema) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
