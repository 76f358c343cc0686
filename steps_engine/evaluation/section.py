"""What a measure has to tell a reader, as data: headlines, a text, a picture's figures, tables. How it looks is the page's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True)
class Headline:
    """One figure in large type, and what it is."""

    value: float | None
    words: str
    digits: int = 3


@dataclass(frozen=True)
class Listing:
    """A table. With a title it is folded away under it, unless `unfolded`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 3
    title: str = ""
    unfolded: bool = False


@dataclass(frozen=True)
class Distributions:
    """Shares of the records in equal bins from 0 to 1, by whose they are: original and synthetic."""

    shares: Mapping[str, tuple[float, ...]]
    x: str
    y: str


@dataclass(frozen=True)
class Scatter:
    """Pairs of shares between 0 and 1, by series, the most important first; equal shares lie on the diagonal."""

    points: Mapping[str, tuple[tuple[float, float], ...]]
    x: str
    y: str


@dataclass(frozen=True)
class Grid:
    """A square table of numbers by the same classes down (y) and across (x)."""

    counts: tuple[tuple[int, ...], ...]
    classes: tuple[str, ...]
    x: str
    y: str


@dataclass(frozen=True)
class Interval:
    """An estimate within its 95% interval."""

    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Intervals:
    """(name, original, synthetic, whether they count for the picture's width); it ends at ± `farthest`, where given."""

    rows: tuple[tuple[str, Interval | None, Interval | None, bool], ...]
    x: str
    farthest: float | None = None


Picture = Distributions | Scatter | Grid | Intervals


@dataclass(frozen=True)
class Section:
    """What the page says about one measure."""

    title: str
    headlines: tuple[Headline, ...]
    text: str = ""
    picture: Picture | None = None
    listings: tuple[Listing, ...] = ()
    notes: str = ""


def figure(value: float | None, digits: int = 3) -> str:
    """A figure as it is shown.

    >>> figure(0.12345), figure(None)
    ('0.123', 'not defined')
    """
    return "not defined" if value is None else f"{value:.{digits}f}"
