"""Documents that describe tables, opened carefully: a size limit, no entities, no names twice, nothing from a network."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from schemas.errors import SpecError

LARGEST = 64_000_000  # bytes of a codebook
DEEPEST = 100
_FOLDED = " "  # between an element's namespace and its name


@dataclass(frozen=True)
class Document:
    """A file, and what can be made of its text."""

    path: Path

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    @cached_property
    def start(self) -> bytes:
        """Its first bytes, without blanks and the mark of UTF-8."""
        with self.path.open("rb") as file:
            return file.read(512).removeprefix(b"\xef\xbb\xbf").lstrip()

    @property
    def is_json(self) -> bool:
        return self.start[:1] in (b"{", b"[")

    @property
    def is_xml(self) -> bool:
        return self.start[:1] == b"<" and not self.start.startswith(b"<stata")

    @property
    def looks(self) -> str:
        if self.is_json or self.is_xml:
            return "JSON" if self.is_json else "XML"
        named = f"called {self.suffix} without being it" if self.suffix in (".json", ".xml") else f"a {self.suffix}"
        return named if self.suffix else "a file without a suffix"

    @cached_property
    def content(self) -> bytes:
        with self.path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise SpecError(f"{self.path}: larger than {LARGEST:,} bytes; give a codebook, not the data.")
        return content

    @cached_property
    def json(self) -> Any:
        """The JSON object in it; {} where it is none."""
        if not self.is_json:
            return {}
        try:
            text = self.content.decode("utf-8-sig")
            read = json.loads(text, object_pairs_hook=_each_once, parse_float=Decimal, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise SpecError(f"{self.path}: not readable as JSON: {reason}.") from None
        return read if isinstance(read, dict) else {}

    @cached_property
    def xml(self) -> Element:
        try:
            return _tree(self.content)
        except expat.ExpatError as error:
            raise SpecError(
                f"{self.path}, line {error.lineno}: not readable as XML: {expat.ErrorString(error.code)}."
            ) from None
        except _Refused as error:
            raise SpecError(f"{self.path}: {error}.") from None

    def named(self, path: str) -> str:
        """A path that this document names, as seen from here: what it says is from its own folder."""
        return str(self.path.parent / path) if path and "://" not in path else path

    def beside(self, name: str) -> Document:
        """Another document that this one names: a file beside or below it, never an address or a way out."""
        path = (self.path.parent / name).resolve()
        if "://" in name or not path.is_relative_to(self.path.parent.resolve()):
            raise SpecError(f"{self.path}: names {name!r}; only files beside or below it are opened. Copy it there.")
        return open_document(path)


def open_document(path: Path) -> Document:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SpecError(f"{path}: not a regular file; give a codebook, a schema or a table.")
        path.open("rb").close()
    except (OSError, ValueError) as error:  # of a path with NUL, a ValueError
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise SpecError(f"cannot read {str(path)!r}: {reason}. Give a codebook, a schema or a table.") from None
    return Document(path)


class _Refused(Exception):
    """What a codebook has no use for."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object; keep one of them")
    return read


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _tree(content: bytes) -> Element:
    """Elements by their plain names. A document type could hold entities, which grow or open files: refused."""
    parser, builder, depth = expat.ParserCreate(namespace_separator=_FOLDED), TreeBuilder(), [0]

    def refuse(*_: Any) -> NoReturn:
        raise _Refused("a document type (<!DOCTYPE …>) or an entity stands in it; a codebook needs none. Remove it")

    def start(name: str, attributes: dict[str, str]) -> None:
        depth[0] += 1
        if depth[0] > DEEPEST:
            raise _Refused(f"nested more than {DEEPEST} levels deep")
        builder.start(_plain(name), {_plain(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        depth[0] -= 1
        builder.end(_plain(name))

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.Parse(content, True)
    return builder.close()


def _plain(name: str) -> str:
    return name.rpartition(_FOLDED)[2]
