"""A first dataset.yaml and release.yaml in a folder: made from a description and choices, never over what is there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from schemas.spec import yaml
from schemas.spec.domain import Domain
from schemas.spec.unit import plain_name
from schemas.spec.wording import named
from tasks.describing.attributes import OPEN
from tasks.describing.description import Description
from tasks.describing.naming import slug
from tasks.describing.writing import Choices, dataset_text, release_text
from tasks.stores.files import disk_faults

FILES = ("dataset.yaml", "release.yaml")
DATA = (".csv", ".parquet", ".pq", ".sav", ".zsav", ".dta", ".sas7bdat", ".xpt")


@dataclass(frozen=True)
class Started:
    """What was written, what of it a person has to fill in, and what was taken from where. Public."""

    folder: Path
    origin: str
    attributes: int
    taken: tuple[str, ...]
    remarks: tuple[str, ...]
    gaps: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


def must_be_free(folder: Path) -> None:
    """Nothing that is there is overwritten."""
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is a file; give a folder for {' and '.join(FILES)}.")
    if there := [name for name in FILES if os.path.lexists(folder / name)]:
        raise SpecError(f"{folder / there[0]} exists, and is never overwritten; give another folder: steps init FOLDER.")


def choose(found: Description | None, folder: Path, **asked: Any) -> Choices:
    """A person's choices, and first ones where nothing was said."""
    given = {key: value for key, value in asked.items() if value not in (None, "", ())}
    described = (found.name or Path(found.records or found.file).name.split(".")[0]) if found else folder.resolve().name
    name = given.pop("name", None) or slug(described)
    population = given.pop("population", None) or name
    for text, key in ((name, "--name"), (population, "--population")):
        try:
            plain_name(text)
        except ValueError as error:
            raise SpecError(f"{key}: {error}.") from None
    source = _source(found, folder, given.pop("source", None))
    return Choices(name=name, population=population, source=source or f"{name}.csv", guessed=not source, **given)


def _source(found: Description | None, folder: Path, asked: str | None) -> str:
    """Where records lie, as release.yaml writes it: from its own folder. A path that leads nowhere is another computer's."""
    if asked:
        return asked if "://" in asked or os.path.isabs(asked) else os.path.relpath(asked, folder)
    if found is None or not found.records:
        return ""
    if os.path.lexists(found.records):
        return os.path.relpath(found.records, folder)
    name = found.records.replace("\\", "/").rpartition("/")[2]
    return name if Path(name).suffix.lower() in DATA else ""


def start(folder: Path, found: Description | None, choices: Choices) -> Started:
    """Writes both files, and says what is in them."""
    must_be_free(folder)
    texts = dict(zip(FILES, (dataset_text(found, choices, folder), release_text(choices, folder)), strict=True))
    documents = {name: yaml.parse(text, str(folder / name)) for name, text in texts.items()}  # it can be read again
    with disk_faults(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _write_new(folder / name, text)
    attributes = documents[FILES[0]].data["attributes"]
    return Started(
        folder=folder,
        origin=found.origin if found else "",
        attributes=len(attributes) if isinstance(attributes, tuple) else 0,
        taken=tuple(_taken(documents[FILES[0]].data)) if found else (),
        remarks=(*(found.remarks if found else ()), *([f"source {choices.source} is a guess"] if choices.guessed else [])),
        gaps=tuple(_gaps(documents.values())),
        problems=tuple(_problems(documents[FILES[0]])),
    )


def _write_new(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError(f"{path} exists, and is never overwritten; give another folder: steps init FOLDER.") from None


def _taken(data: dict[str, Any]) -> list[str]:
    """What was described, and of how many attributes."""
    attributes = data["attributes"]
    keys = ("title", "description", "categories", "labels", "bounds", "edges", "missing", "recode")
    counts = {key: sum(key in each and each[key] != OPEN for each in attributes) for key in keys}
    of_all = [key for key in ("title", "publisher", "licence", "expected_rows", "csv", "rename", "ignore") if key in data]
    whose = [f"{data['unit']['column']} says whose row it is"] if "column" in data["unit"] else []
    return [f"{len(attributes)} names", *(f"{key} of {n}" for key, n in counts.items() if n), *of_all, *whose]


def _gaps(documents: Iterable[yaml.Document]) -> list[dict[str, Any]]:
    return [
        {
            "file": Path(each.name).name,
            "line": each.lines[gap],
            "key": named(each, gap),
            "write": yaml.GAPS.get(str(gap[-1])),
        }
        for each in documents
        for gap in each.gaps
    ]


def _problems(document: yaml.Document) -> list[str]:
    """What `steps plan` would refuse besides gaps: told now, for a person to mend."""
    if document.gaps:
        return []
    try:
        yaml.validate(Domain, document)
    except SpecError as error:
        return str(error).split("\n")
    return []
