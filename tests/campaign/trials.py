"""What a family of trials is, and what a trial may find."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = ("lost", "overspent", "leaked")


@dataclass(frozen=True)
class Found:
    """How much was tried, and every sentence of what should not have happened."""

    tried: int = 1
    lost: tuple[str, ...] = ()  # a charge, a draw, a bundle; a lie or a damage that nobody noticed; an answer without words
    overspent: tuple[str, ...] = ()  # paid twice, drawn twice, more than the grant
    leaked: tuple[str, ...] = ()  # something of the records outside confidential/
    kind: str = ""

    @classmethod
    def in_one(cls, kind: str, lost: list[str], overspent: list[str] | None = None, leaked: list[str] | None = None) -> Found:
        """One trial counts once in a column, whatever it found."""
        sentences = ("; ".join(each)[:2000] for each in (lost, overspent or [], leaked or []))
        return cls(1, *((said,) if said else () for said in sentences), kind=kind)

    @property
    def good(self) -> bool:
        return not (self.lost or self.overspent or self.leaked)


@dataclass(frozen=True)
class Trial:
    """One trial: an empty folder of its own, chance that can be repeated, and what the family prepared for all of them."""

    family: str
    number: int
    seed: int
    folder: Path
    shared: dict[str, Any] = field(default_factory=dict)

    @property
    def chance(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.family}/{self.number}")


@contextmanager
def nothing_shared(_: Path) -> Iterator[dict[str, Any]]:
    yield {}


@dataclass(frozen=True)
class Family:
    """One way to attack: `trials` of it are a full campaign, unless what was prepared says how many there are ("trials"); `share`
    is its part of the time, about the seconds that all of them take on two idle cores."""

    name: str
    does: str
    share: float
    attempt: Callable[[Trial], Found]
    trials: int = 0
    preparing: Callable[[Path], AbstractContextManager[dict[str, Any]]] = nothing_shared
    at_once: int = 2


class CannotTry(Exception):
    """This machine lacks what a family needs; says what."""
