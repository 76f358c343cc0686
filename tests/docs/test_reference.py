"""Reference pages and JSON Schemas say what the models say; what they let pass and refuse is what a spec's author expects."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import Field

from schemas.spec import yaml
from schemas.spec.domain import Domain
from schemas.spec.release import ReleaseSpec
from schemas.spec.yaml import Strict
from scripts import reference

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
SCHEMAS = {"dataset": reference.dataset_schema(), "release": reference.release_schema()}
DATASET = "name: a\npopulation: b\nattributes:\n  - {name: x, kind: numeric, bounds: [0, 0.5], bins: 2}\n"
RELEASE = "name: a\ndataset: d.yaml\nsource: r.csv\nprivacy: {epsilon: 0.5}\n"

# (which file, a line more, why an editor should mark it)
WRONG = [
    ("dataset", "expected_rows: many", "a number is wanted"),
    ("dataset", "expected_row: 5", "no such key"),
    ("dataset", "unit: {rows_per_person: 0}", "at least one row"),
    ("dataset", "unit: {excess: ignore}", "no such word"),
    ("dataset", "rules: [{never: {}}]", "an empty rule"),
    ("dataset", "rules: [{never: {x: {from: 0, to: 1}}}]", "a range is from and below"),
    ("dataset", "rules: [{always: {x: 1}}]", "a comparison is a text"),
    ("dataset", f"title: {'x' * 201}", "a title is short"),
    ("dataset", "derived: [{name: y, by: t.csv}]", "from is needed"),
    ("dataset", "derived: [{name: y, from: x, by: 5}]", "a table is a file or written out"),
    ("release", "approval: maybe", "no such word"),
    ("release", "method: {decomposition: forest}", "no such method"),
    ("release", "method: {sets: {count: 0}}", "at least one set"),
    ("release", "method: {decomposition: tree, order: 5}", "an order is a list"),
    ("release", "method: {decomposition: tree, elect: {layers: 2, share: a tenth}}", "a share is a number"),
    ("release", "formats: [excel]", "no such format"),
    ("release", "seed: 1", "no seed in a release"),
]
WRONG_ATTRIBUTES = [
    "{name: y, kind: numeric, bounds: [0, 1, 2], bins: 3}",
    "{name: y, kind: integer, bounds: [0, 1.5]}",
    "{name: y, kind: categorical}",
    "{name: y, kind: categorical, categories: [1, 2.5]}",
    "{name: y, kind: categorical, categories: [' blank']}",
    "{name: y, kind: categorical, categories: [a], missing: never}",
    "{name: y, kind: categorical, categories: [a], recode: [1, 2]}",
    "{name: y, kind: colour, categories: [red]}",
    "{name: y, kind: date, bounds: [1980, 1990]}",
    "{name: y, kind: time, bounds: [8, 17]}",
    "{name: y, kind: numeric, bounds: [0, 1], bins: 2, at: zero}",
    "{name: y, kind: numeric, bounds: [0, 1], bins: 2, above: {shape: normal, mean: 3}}",
    "{name: y, kind: numeric, bounds: [0, 1], bins: 2, within: normal}",
    "{name: y, kind: numeric, bounds: [0, 1], bins: 2, multiples_of: 0}",
    "{name: y, kind: date, bounds: [1980-01-01, 1990-01-01], at: 1985-01-01}",
    "{name: 'a;b', kind: integer, bounds: [0, 1]}",
]
RIGHT = [
    ("dataset", "rules: [{never: {x: {from: 0, below: 0.25}}}]"),
    ("dataset", "ignore: [note]\nrename: {X: x}\ncsv: {separator: ';', decimal: ',', encoding: latin-1}"),
    ("dataset", "  - {name: y, kind: ordinal, categories: [1, 2, '=x'], missing: [-9, 'NA'], recode: {'7': 2, z: null}}"),
    (
        "dataset",
        "title: T\ndescription: D\nlicence: CC-BY-4.0\nderived: [{name: y, from: x, by: {'[0, 0.25)': a, '[0.25, 0.5]': b}}]",
    ),
    (
        "dataset",
        "  - {name: y, kind: integer, bounds: [0, 9], bins: 2, at: [0, 5], above: {shape: exponential, mean: 20}, why: so}",
    ),
    (
        "dataset",
        "  - {name: y, kind: numeric, bounds: [1, 9], bins: 1, within: {weights: [[2, 1], [3, 0.5]]}, labels: {'[1, 9]': all}}",
    ),
    ("dataset", "  - {name: y, kind: time, bounds: [08:00, 24:00], edges: [08:00, 12:00, 24:00], format: '%H.%M'}"),
    ("release", "title: Wages of {year}\ndescription: What it is for."),
    ("dataset", "unit: {column: person, rows_per_person: 3, excess: drop}"),
    ("release", "method: {decomposition: tree, order: [a, [b, c]], shares: [1, 2.5, 1]}"),
    ("release", "method: {decomposition: cascade, order: elected}"),
    ("release", "method: {decomposition: tree, elect: {layers: 2, share: 0.1}, shares: cube_root}"),
]


def as_json(value: Any) -> Any:
    """What an editor sees: lists and plain numbers in place of tuples and Decimals."""
    if isinstance(value, dict):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(part) for part in value]
    return float(value) if isinstance(value, Decimal) else value


def accepts(which: str, text: str) -> bool:
    return jsonschema.Draft7Validator(SCHEMAS[which]).is_valid(as_json(yaml.parse(text).data))


@pytest.mark.parametrize("path", reference.files(), ids=lambda path: path.name)
def test_the_committed_file_is_what_the_models_say(path: Path):
    assert path.read_text(encoding="utf-8") == reference.files()[path], "run: python -m scripts.reference"


def test_every_key_has_a_meaning():
    assert list(without_meaning(SCHEMAS)) == []


def test_a_key_without_a_meaning_is_noticed():
    class Silent(Strict):
        key: int = 1

    assert list(without_meaning(reference.schema_of(Silent))) == ["key"]


def without_meaning(part: Any) -> list[str]:
    if isinstance(part, list):
        return [name for each in part for name in without_meaning(each)]
    if not isinstance(part, dict):
        return []
    keys = part.get("properties", {})
    silent = [key for key, value in keys.items() if "description" not in value and set(keys) != {"from", "below"}]
    return silent + [name for value in part.values() for name in without_meaning(value)]


def test_every_validator_that_changes_a_type_is_told_apart():
    """A validator that is renamed would silently give the type of the Python value."""
    assert reference.AsWritten.used == set(reference.AS_WRITTEN)


@pytest.mark.parametrize("which", SCHEMAS)
def test_the_schema_is_one(which: str):
    jsonschema.Draft7Validator.check_schema(SCHEMAS[which])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_fits_and_names_its_schema(path: Path):
    text = path.read_text(encoding="utf-8")
    assert accepts(path.stem, text)
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (path.parent / named).resolve() == ROOT / "docs" / "schemas" / f"{path.stem}.schema.json"


@pytest.mark.parametrize(("which", "line"), RIGHT)
def test_what_steps_accepts_an_editor_accepts(which: str, line: str):
    model, text = {"dataset": (Domain, DATASET), "release": (ReleaseSpec, RELEASE)}[which]
    yaml.validate(model, yaml.parse(text + line))
    assert accepts(which, text + line)


@pytest.mark.parametrize(("which", "line", "why"), WRONG, ids=[why for *_, why in WRONG])
def test_an_editor_marks_what_is_wrong(which: str, line: str, why: str):
    text = {"dataset": DATASET, "release": RELEASE}[which]
    assert accepts(which, text) and not accepts(which, f"{text}{line}\n")


@pytest.mark.parametrize("attribute", WRONG_ATTRIBUTES)
def test_an_editor_marks_a_wrong_attribute(attribute: str):
    assert not accepts("dataset", f"{DATASET}  - {attribute}\n")


def test_epsilon_is_a_number_above_zero():
    assert not accepts("release", RELEASE.replace("0.5", '"0.5"')) and not accepts("release", RELEASE.replace("0.5", "0"))


class Tall(Strict):
    decomposition: Literal["tall"] = Field("tall", description="Tall.")
    height: int = Field(description="How tall.")


class Wide(Strict):
    decomposition: Literal["auto"] = Field("auto", description="Wide.")


def test_each_method_has_its_own_keys_where_it_has_a_spec_of_its_own():
    schema = reference.release_schema({"tall": Tall, "auto": Wide})
    fits = jsonschema.Draft7Validator(schema["properties"]["method"]).is_valid
    assert fits({"decomposition": "tall", "height": 3}) and fits({"decomposition": "auto"}) and fits({})
    assert not fits({"decomposition": "auto", "height": 3}) and not fits({"decomposition": "tall"})
    page = reference.page("release.yaml", "", schema)
    assert "`method` of decomposition `tall`" in page and "| `height` | whole number | **needed** | How tall. |" in page
