"""Registries with one entry per file: a folder's modules are its entries, so adding one is adding one file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
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
        """All of them, in the order of their places. The folder is listed anew each time, a module is run once."""
        names = [module.name for module in iter_modules(import_module(self.package).__path__)]
        found = sorted((self._read(name) for name in names), key=lambda entry: (entry.place, entry.name))
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

    def _read(self, module: str) -> Entry:
        entry = getattr(import_module(f"{self.package}.{module}"), "ENTRY", None)
        if not isinstance(entry, self.kind):
            raise TypeError(f"{self.package}.{module} must hold ENTRY, a {self.kind.__name__}; it has {type(entry).__name__}")
        return entry


def _name(entry: _Entry) -> str:
    return entry.name
