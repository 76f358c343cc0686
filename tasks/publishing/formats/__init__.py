"""Formats that a bundle gives its synthetic records in, one per file. Publishing, the list of files and verify go through them.

Parquet is how records are sealed, so it is always there; any other file must hold the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from schemas.errors import KeyRefused
from schemas.nearest import meant
from schemas.registry import Registry
from tasks.tables_on_disk import Stored

SEALED = "parquet"
Pieces = Callable[[Iterator[pa.Table]], Iterator[bytes]]


@dataclass(frozen=True)
class BundleFormat:
    """`write` makes a file from the bytes of the sealed Parquet file, `holds` says whether one holds exactly these records."""

    name: str  # as release.yaml says it
    place: int
    suffix: str
    write: Callable[[bytes], bytes]
    holds: Callable[[bytes, pa.Table], bool]
    pieces: Pieces | None = None  # the same file from records in blocks, so that neither need fit in memory

    def write_into(self, target: IO[bytes], sealed: Path) -> None:
        if self.pieces is None:
            target.write(self.write(sealed.read_bytes()))
        else:
            target.writelines(self.pieces(Stored(sealed).blocks()))

    def is_copy(self, path: Path, records: Stored) -> bool:
        if self.pieces is None:
            return self.holds(path.read_bytes(), records.read())
        with path.open("rb") as file:
            return all(file.read(len(piece)) == piece for piece in self.pieces(records.blocks())) and not file.read(1)


FORMATS = Registry(__name__, BundleFormat)


def must_be_known(names: Iterable[str]) -> None:
    """Refuses a format that is not here, before anything is planned or paid for."""
    known = [each.name for each in FORMATS.entries()]
    for name in names:
        if name not in known:
            raise KeyRefused(f"formats names {name!r}; {meant(name, known, 'known are')}", "formats")


def formats_among(files: Iterable[str]) -> tuple[str, ...]:
    """The formats of which there are records among the files of a bundle, by their names alone."""
    records = [name for name in files if name.startswith("synthetic-")]
    return tuple(each.name for each in FORMATS.entries() if any(name.endswith(each.suffix) for name in records))


def copies(stage: str, files: Mapping[str, Path]) -> Iterator[tuple[str, BundleFormat]]:
    """Files that say the same as the sealed one of a set, each with its format."""
    others = ((f"{stage}{each.suffix}", each) for each in FORMATS.entries() if each.name != SEALED)
    return ((name, each) for name, each in others if name in files)
