"""dataset.yaml and release.yaml from a description and a few choices, with comments that say what came from where."""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from schemas.spec.described import LONGEST_TEXT, LONGEST_TITLE, licence_of
from schemas.spec.yaml import GAP, GAPS, MOST_VALUES
from tasks.describing.attributes import OPEN, Gap, Written, attribute_of, plain
from tasks.describing.description import Description
from tasks.describing.naming import names_of

WIDTH = 110
MOST_ATTRIBUTES = 1000  # of a domain
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"  # in a work tree; an installation has none
_LABEL_LINES = 6  # more labels than that stand one below the other
HINTS = """\
# ignore: [NAME]          # columns of the records that are not released: their attributes are taken out above
# rules:                  # structural zeros, if there are any
#   - never: {a: x, b: y}
"""


@dataclass(frozen=True)
class Choices:
    """What no codebook knows, and a person decides."""

    name: str
    population: str
    source: str
    guessed: bool = False  # the source: nothing says where the records lie
    epsilon: str = "1.0"
    who: str = "person"
    person: str | None = None
    rows_per_person: int | None = None
    expected_rows: int | None = None
    only: tuple[str, ...] = ()


def dataset_text(found: Description | None, choices: Choices, folder: Path) -> str:
    """dataset.yaml as text."""
    spec = _mapping()
    origin = found.origin if found else ""
    _put(spec, "name", choices.name)
    for key, text in _words(found).items() if found else ():
        _put(spec, key, text)
    _put(spec, "population", choices.population, "whose budget is spent: people, not files; a grant names it")
    rows = choices.expected_rows or (found.expected_rows if found else None)
    if rows:
        _put(spec, "expected_rows", rows, "public and approximate; never counted from the records")
    unit = _unit(found, choices)
    _put(spec, "unit", unit)
    hints = (
        [] if rows else ["expected_rows: 45000 would guide the plan: public and approximate, never counted from the records"]
    )
    hints += [] if "column" in unit else ["unit: {column: NAME, rows_per_person: 1} where a column says whose row it is"]
    if hints:
        spec.yaml_set_comment_before_after_key("unit", before="\n".join(hints))
    if found and found.csv:
        _put(spec, "csv", _flow(dict(found.csv)))
    _attributes(spec, found, choices)
    head = [
        "What anybody may know about the data before looking at them: categories, bounds and rules come from the",
        "questionnaire, never from the records. Every key: docs/reference/dataset.md.",
        *([f"Written by `steps init` from the {origin}; look it through."] if found else ["Written by `steps init`."]),
        *(f"Note: {remark}." for remark in (found.remarks if found else ())),
    ]
    return _text(spec, "dataset", folder, head) + (HINTS.partition("\n")[2] if "ignore" in spec else HINTS)


def release_text(choices: Choices, folder: Path) -> str:
    """release.yaml as text."""
    spec = _mapping()
    _put(spec, "name", f"{choices.name}-{{year}}q{{quarter}}", "filled from the run's time, or --period 2026q4")
    _put(spec, "dataset", "dataset.yaml")
    guess = "a guess: " if choices.guessed else ""
    _put(spec, "source", choices.source, f"{guess}{GAPS['source']}, from the folder of this file")
    _put(spec, "privacy", _flow({"epsilon": _Number(choices.epsilon)}))
    method = _mapping()
    _put(method, "decomposition", "auto", "steps plan says what it chose, and why")
    _put(method, "sets", _flow({"count": 5, "budget": "shared"}))
    _put(spec, "method", method)
    _put(spec, "formats", _flow(["parquet", "csv"]))
    head = [
        "What to release, and at what cost: ε is the whole of it. Every key: docs/reference/release.md.",
        f"Next: steps plan release.yaml, steps validate release.yaml, steps budget grant {choices.population} ε --why TEXT.",
    ]
    return _text(spec, "release", folder, head)


def _words(found: Description) -> dict[str, str]:
    limits = {"title": LONGEST_TITLE, "description": LONGEST_TEXT, "publisher": LONGEST_TITLE}
    words = {key: plain(getattr(found, key), longest) for key, longest in limits.items()}
    try:
        words["licence"] = licence_of(found.licence)
    except ValueError:  # in words, which a catalogue could not read
        pass
    words["source"] = "" if found.bare else plain(found.origin, LONGEST_TEXT)
    return {key: text for key, text in words.items() if text}


def _unit(found: Description | None, choices: Choices) -> Any:
    column = choices.person or (found.person if found else None)
    rows = choices.rows_per_person or (found.rows_per_person if found else None) or 1
    who = {"who": choices.who} if choices.who != "person" else {}
    return _flow({**who, **({"column": column} if column else {}), "rows_per_person": rows})


def _attributes(spec: Any, found: Description | None, choices: Choices) -> None:
    if found is None:
        _put(spec, "attributes", OPEN, GAPS["attributes"])
        return
    person = choices.person or found.person
    names = names_of(found.variables)
    wanted = _only(found, choices, person)
    released = [each for each in found.variables if each.column in wanted]
    made = [attribute_of(each, names[each.column]) for each in released]
    _must_fit(made)
    spec["attributes"] = _sequence(map(_attribute, made))
    renamed = {each.column: names[each.column] for each in released if names[each.column] != each.column}
    if renamed:
        _put(spec, "rename", _block(renamed))
    if ignored := [each.column for each in found.variables if each.column not in wanted and each.column != person]:
        _put(spec, "ignore", _flow(ignored))


def _must_fit(made: list[Written]) -> None:
    """A spec is read by people, and within limits."""
    if len(made) > MOST_ATTRIBUTES:
        raise SpecError(f"{len(made):,} variables are described; at most {MOST_ATTRIBUTES:,} fit. Choose: --only NAME,NAME.")
    parts = [value for attribute in made for value in attribute.keys.values()]
    values = sum(2 * len(part) if isinstance(part, dict) else len(part) if isinstance(part, list) else 1 for part in parts)
    if values > 4 * MOST_VALUES // 5:  # the keys of attributes need room, too
        raise SpecError(
            f"a dataset.yaml of all that would hold {values:,} values, more than is read with ease; choose the variables to "
            "release: --only NAME,NAME."
        )


def _only(found: Description, choices: Choices, person: str | None) -> set[str]:
    columns = [each.column for each in found.variables]
    if unknown := [name for name in choices.only if name not in columns]:
        raise SpecError(
            f"--only names {unknown[0]!r}; {found.file} describes {', '.join(columns[:20])}{', …' * (len(columns) > 20)}."
        )
    wanted = set(choices.only or columns) - {person}
    if not wanted:
        raise SpecError(f"{found.file}: nothing is left to release but {person!r}, which says whose row it is.")
    return wanted


def _attribute(made: Written) -> Any:
    keys = _mapping()
    for key, value in made.keys.items():
        if isinstance(value, dict):
            value = _flow(value) if len(value) <= _LABEL_LINES else _block(value)
        _put(keys, key, _flow(value) if isinstance(value, list) else value, made.comments.get(key, ""))
    return keys


class _Number(str):
    """Digits that are written as they are."""


def _mapping() -> Any:
    from ruamel.yaml.comments import CommentedMap

    return CommentedMap()


def _sequence(parts: Any) -> Any:
    from ruamel.yaml.comments import CommentedSeq

    return CommentedSeq(parts)


def _block(values: dict[str, Any]) -> Any:
    made = _mapping()
    made.update({_scalar(key): _scalar(value) for key, value in values.items()})
    return made


def _flow(values: Any) -> Any:
    made = _block(values) if isinstance(values, dict) else _sequence(_scalar(value) for value in values)
    made.fa.set_flow_style()
    return made


def _put(spec: Any, key: str, value: Any, comment: str = "") -> None:
    spec[key] = _scalar(value)
    if comment:
        spec.yaml_add_eol_comment(plain(comment, 300), key)


def _scalar(value: Any) -> Any:
    """A text is quoted wherever it could be taken for anything else; a gap never is."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, PlainScalarString

    if not isinstance(value, str) or isinstance(value, PlainScalarString):
        return value
    if isinstance(value, _Number):
        return float(value) if float(value) != int(float(value)) or "." in value else int(value)
    return PlainScalarString(value) if isinstance(value, Gap) or _is_plain(value) else DoubleQuotedScalarString(value)


def _is_plain(text: str) -> bool:
    """Whether nobody could take it for a number, a word of YAML or a gap; what else YAML would quote, the writer quotes."""
    return bool(re.match(r"[^\W\d_]|\.?\.?/", text)) and text.lower() not in ("true", "false", "null") and text != GAP


def _text(spec: Any, kind: str, folder: Path, head: list[str]) -> str:
    from ruamel.yaml import YAML

    writer, stream = YAML(typ="rt", pure=True), io.StringIO()
    writer.width, writer.allow_unicode = WIDTH, True
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.dump(spec, stream)
    return (
        "".join(f"# {line}\n" for line in (*_schema_line(kind, folder), *(plain(line, 300) for line in head)))
        + stream.getvalue()
    )


def _schema_line(kind: str, folder: Path) -> list[str]:
    """For editors that know JSON Schema, where the schemas are at hand."""
    schema = SCHEMAS / f"{kind}.schema.json"
    return [f"yaml-language-server: $schema={os.path.relpath(schema, folder.resolve())}"] if schema.is_file() else []
