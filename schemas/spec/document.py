"""A spec as it was read: what it says, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Keys = tuple[str | int, ...]  # keys and places in lists, from the document's top down


@dataclass(frozen=True)
class Document:
    """What a spec says, and the line on which each part of it stands."""

    name: str
    data: Any
    lines: dict[Keys, int]
    gaps: tuple[Keys, ...] = ()

    def place(self, key: Keys) -> str:
        """File and line of a key, or of what it would stand in."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.name}, line {self.lines.get(key, 1)}"
