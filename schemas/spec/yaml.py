"""Reads specs: the harmless part of YAML 1.2, with the line of every key, and numbers kept as they were written.

`no` is a word, not False; 0.1 is Decimal("0.1"), not a float; tags, anchors, duplicate keys, .nan and .inf are refused.
"""

from __future__ import annotations

import difflib
import errno
import re
import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from schemas.errors import SpecError
from schemas.spec.document import Document as Document
from schemas.spec.document import Keys as Keys
from schemas.spec.wording import explained, named

if TYPE_CHECKING:
    from ruamel.yaml import YAML
    from ruamel.yaml.events import Event, ScalarEvent

LARGEST_SPEC = 3_000_000  # bytes; of the slowest text a million takes a good second
DEEPEST = 16
MOST_VALUES = 210_000  # keys are values, too: as many take some five seconds; 100,000 categories and a rule about them fit
MOST_UNKNOWN = 20  # keys whose nearest one is looked for
GAP = "TODO"  # as a key's value, without quotes: a person has to fill it in

GAPS = {  # what belongs where a gap may be left
    "categories": "every answer that may occur, from the questionnaire: [a, b, c]",
    "bounds": "the lowest and highest value that may occur, from the questionnaire: [low, high]",
    "kind": "categorical or ordinal, and categories: [a, b, c]; or integer, numeric, date or time, and bounds: [low, high]",
    "attributes": "one entry per column: {name: …, kind: …, categories: […]} or {name: …, kind: …, bounds: […]}",
    "source": "where the records lie: a file, a folder or a glob",
    "population": "whose budget is spent: people, not files",
}

_INTEGER = re.compile(r"[-+]?[0-9]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"null": None, "~": None, "": None, "true": True, "false": False}
_NOT_NUMBERS = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """A frozen model that knows its keys, and names the nearest one when a key is unknown."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="wrap")
    @classmethod
    def _known_keys(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        names = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = [key for key in value if key not in names] if isinstance(value, dict) else []
        if not unknown:
            return read(value)
        meant = {key: difflib.get_close_matches(str(key), names, n=1, cutoff=0.5) for key in unknown[:MOST_UNKNOWN]}
        problems = [InitErrorDetails(type=_unknown(key, near, names), loc=(), input=None) for key, near in meant.items()]
        try:
            read({key: part for key, part in value.items() if key in names})
        except ValidationError as error:  # what is missing under a misspelt name was told with that name
            told = [tuple(near) for near in meant.values()]
            problems += [_again(each) for each in error.errors() if each["type"] != "missing" or each["loc"] not in told]
        raise ValidationError.from_exception_data(cls.__name__, problems, hide_input=True)

    def __copy__(self) -> Self:
        """What was computed from the fields stays behind: a copy may be given others."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def _unknown(key: Any, near: list[str], names: set[str]) -> PydanticCustomError:
    hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(sorted(names))}"
    return PydanticCustomError("unknown_key", "{text}", {"key": key, "text": f'unknown key "{key}"; {hint}'})


def _again(problem: ErrorDetails) -> InitErrorDetails:
    """A problem that was found, to be told together with others."""
    said = {**problem.get("ctx", {}), "text": problem["msg"]}
    return InitErrorDetails(
        type=PydanticCustomError(problem["type"], "{text}", said), loc=problem["loc"], input=problem["input"]
    )


def problem_at(path: Keys, text: str) -> PydanticCustomError:
    """A problem that a model finds as a whole, but that stands on one line of the document."""
    return PydanticCustomError("problem_at", "{text}", {"path": path, "text": text})


def read(path: Path | str) -> Document:
    """The document in a file; every way it can fail is a SpecError that names the file."""
    return parse(read_text(Path(path), LARGEST_SPEC), str(path))


def read_text(path: Path, largest: int, place: str = "") -> str:
    """A small file of UTF-8 text; `place` says who names it."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with path.open("rb") as file:
            content = file.read(largest + 1)
        if len(content) > largest:
            raise SpecError(f"{place}{path} is larger than {largest:,} bytes; a spec is a small text file.")
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # of a path with NUL, a ValueError
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        reason = "a path holds no NUL character" if "\0" in str(path) else reason
        what = "a CSV file" if place else "a YAML file"
        raise SpecError(f"{place}cannot read {_shown(path)}: {reason}. Give the path of {what}.") from None


def _shown(path: Path) -> str:
    return str(path).replace("\0", "\\0")


def parse(text: str, name: str = "spec") -> Document:
    """
    >>> parse("epsilon: 0.10\\nvoted: no").data
    {'epsilon': Decimal('0.10'), 'voted': 'no'}
    """
    from ruamel.yaml.error import YAMLError

    builder = _Builder(name)
    try:
        return Document(name, builder.document(_without_tags(name).parse(text)), builder.lines, tuple(builder.gaps))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise SpecError(f"{where}: not readable as YAML: {getattr(error, 'problem', None) or 'syntax error'}.") from None
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply; a spec has at most {DEEPEST} levels.") from None


def _without_tags(name: str) -> YAML:
    """A parser that refuses a tag where it begins: to read a long one to its end takes longer than any other text."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scanner import Scanner

    class WithoutTags(Scanner):
        def fetch_tag(self) -> NoReturn:
            raise SpecError(f"{name}, line {self.reader.line + 1}: tags (!…) are not used in specs; write a plain value.")

    reader = YAML(typ="safe", pure=True)
    reader.Scanner = WithoutTags
    return reader


def validate(model: type[Model], document: Document) -> Model:
    """The document as a model, or a SpecError that names file, line, key and what to write instead."""
    must_be_filled(document)
    if not isinstance(document.data, dict):
        raise SpecError(f"{document.name}: a spec is a list of `key: value` lines; found something else.")
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise SpecError("\n".join(explained(document, error.errors(include_url=False)))) from None


def must_be_filled(*documents: Document) -> None:
    """Refuses gaps that `steps init` left, or a person: all of them at once, each with its line and what belongs there."""
    told = [
        f"{document.place(gap)}: {named(document, gap)}: {_lacking(gap)}" for document in documents for gap in document.gaps
    ]
    if told:
        raise SpecError("\n".join((*told, f'(Where the word {GAP} itself is meant, write it in quotes: "{GAP}".)')))


def _lacking(gap: Keys) -> str:
    wanted = GAPS.get(str(gap[-1]))
    return f"still {GAP}; write {wanted}" if wanted else f"still {GAP}; fill it in"


class _Builder:
    """Builds plain values from parser events, refusing what a spec has no use for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Keys, int] = {}
        self.gaps: list[Keys] = []
        self.seen = 0

    def document(self, events: Iterator[Event]) -> Any:
        from ruamel.yaml.events import DocumentStartEvent, StreamEndEvent

        value, seen = None, False
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if seen:
                    self.refuse(event, "a second document begins; one file holds one spec")
                value, seen = self.value(next(events), events, ()), True
            elif isinstance(event, StreamEndEvent):
                break
        return value

    def value(self, event: Event, events: Iterator[Event], path: Keys) -> Any:
        from ruamel.yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

        self.lines[path] = self.count(event)
        if len(path) > DEEPEST:
            self.refuse(event, f"nested more than {DEEPEST} levels deep")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            self.refuse(event, "anchors and aliases (& and *) are not used in specs; write the value out")
        if isinstance(event, MappingStartEvent):
            return self.mapping(events, path)
        if isinstance(event, SequenceStartEvent):
            return self.sequence(events, path)
        assert isinstance(event, ScalarEvent)
        if event.value == GAP and not event.style and path and isinstance(path[-1], str):
            self.gaps.append(path)
        return self.scalar(event)

    def mapping(self, events: Iterator[Event], path: Keys) -> dict[str, Any]:
        from ruamel.yaml.events import MappingEndEvent, ScalarEvent

        result: dict[str, Any] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            if not isinstance(event, ScalarEvent) or event.anchor or event.value == "<<":
                self.refuse(event, "a key must be a plain word")
            if event.value in result:
                self.refuse(event, f'key "{event.value}" stands twice; keep one')
            line = self.count(event)
            result[event.value] = self.value(next(events), events, (*path, event.value))
            self.lines[(*path, event.value)] = line
        return result

    def sequence(self, events: Iterator[Event], path: Keys) -> tuple[Any, ...]:
        from ruamel.yaml.events import SequenceEndEvent

        result: list[Any] = []
        while not isinstance(event := next(events), SequenceEndEvent):
            result.append(self.value(event, events, (*path, len(result))))
        return tuple(result)

    def scalar(self, event: ScalarEvent) -> Any:
        text = event.value
        if event.style is not None and event.style != "":
            return text
        if _NOT_NUMBERS.fullmatch(text):
            self.refuse(event, f"{text} is not a number one can use; write a finite one")
        if text.lower() in _WORDS and text in (text.lower(), text.capitalize(), text.upper()):
            return _WORDS[text.lower()]
        if _INTEGER.fullmatch(text):
            return int(text) if len(text) <= 30 else self.refuse(event, "a number with more than 30 digits")
        return Decimal(text) if _DECIMAL.fullmatch(text) and len(text) <= 60 else text

    def count(self, event: Event) -> int:
        """One more key or value; its line."""
        self.seen += 1
        if self.seen > MOST_VALUES:
            self.refuse(event, f"more than {MOST_VALUES:,} keys and values; a spec is a small text file")
        return int(event.start_mark.line) + 1

    def refuse(self, event: Event, why: str) -> NoReturn:
        raise SpecError(f"{self.name}, line {event.start_mark.line + 1}: {why}.")
