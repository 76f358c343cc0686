"""Registries with one entry per file: a folder's modules are its entries, so adding one is adding one file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Generic, Protocol, TypeVar

from schemas.errors import SpecError


class _Entry(Protocol):
    """What every entry has: the name it is asked for by, and its place among the others, smaller first."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> int: ...


Entry = TypeVar("Entry", bound=_Entry)


@dataclass(frozen=True)
class Registry(Generic[Entry]):
    """The entries of a package: every module in it holds one of this kind, under the name ENTRY."""

    package: str
    kind: type[Entry]

    def entries(self) -> tuple[Entry, ...]:
        """All of them, in the order of their places."""
        modules = _modules(self.package, tuple(import_module(self.package).__path__))
        found = sorted((self._read(module) for module in modules), key=lambda entry: (entry.place, entry.name))
        if len({entry.name for entry in found}) < len(found):
            raise TypeError(f"two files of {self.package} hold an entry of the same name: {', '.join(map(_name, found))}")
        return tuple(found)

    def named(self, name: str) -> Entry:
        """The entry of that name; a SpecError that lists what there is, where there is none."""
        entries = self.entries()
        for entry in entries:
            if entry.name == name:
                return entry
        raise SpecError(f"there is no {name!r}; known are {', '.join(map(_name, entries))}.")

    def _read(self, module: ModuleType) -> Entry:
        entry = getattr(module, "ENTRY", None)
        if not isinstance(entry, self.kind):
            raise TypeError(f"{module.__name__} must hold ENTRY, a {self.kind.__name__}; it has {type(entry).__name__}")
        return entry


@cache
def _modules(package: str, folders: tuple[str, ...]) -> tuple[ModuleType, ...]:
    """What lies in a package's folders; they are listed once, however many files a source has."""
    return tuple(import_module(f"{package}.{module.name}") for module in iter_modules(folders))


def _name(entry: _Entry) -> str:
    return entry.name
