"""Files in which a bundle describes itself to people and programs, one per module: publishing, the list of files and
`verify --recompute` go through them. Each is a function of the one description, and written nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from schemas.registry import Registry
from tasks.publishing.description import WHAT, Description, stem_of


@dataclass(frozen=True)
class DescribingFile:
    """`write` makes the whole file; the same description makes the same bytes."""

    name: str  # of the file
    place: int
    what: str  # it holds, as the page's list of files says
    write: Callable[[Description], bytes]


DESCRIBING = Registry(__name__, DescribingFile)


def describing_files() -> frozenset[str]:
    """The names of all that there are."""
    return frozenset(each.name for each in DESCRIBING.entries())


def describing_among(files: Iterable[str]) -> frozenset[str]:
    """Those among a bundle's files; earlier versions made none of them, or fewer."""
    return describing_files().intersection(files)


def written(description: Description) -> dict[str, bytes]:
    """Every describing file by its name."""
    return {each.name: each.write(description) for each in DESCRIBING.entries()}


def what_it_holds(name: str) -> str:
    """Of any file that a manifest names."""
    known = {each.name: each.what for each in DESCRIBING.entries()}
    return known.get(name) or WHAT[stem_of(name)]
