"""Tables of a set in files that live until it is whole: those that are made side by side, and those that workers make apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas import tables
from schemas.spec.release import Release
from steps_engine.methods.blocks import Block
from tasks.reading.sources import short_lived
from tasks.stores.files import disk_faults, keep, private_folder, temporary
from tasks.stores.home import Home
from tasks.tables_on_disk import writing

Ready = Callable[[str], Iterator[pa.Table]]  # the blocks of one of a set's tables


def only(made: Iterator[dict[str, pa.Table]]) -> Ready:
    [whole] = made
    return lambda kind: iter([whole[kind]])


@contextmanager
def waiting(home: Home, release: Release, made: Iterator[dict[str, pa.Table]]) -> Iterator[Ready]:
    with short_lived(private_folder(home.staging / release.name), "parts") as folder, disk_faults(folder):
        with ExitStack() as opened:
            files = {kind: opened.enter_context((folder / kind).open("wb")) for kind in _schemas(release)}
            _write_all(files, _schemas(release), made)
        yield lambda kind: in_turn([str(folder / kind)])


def _schemas(release: Release) -> dict[str, pa.Schema]:
    return {**tables.linked(release.domain), tables.SYNTHETIC: tables.records(release.domain)}


def _write_all(files: Mapping[str, IO[bytes]], schemas: Mapping[str, pa.Schema], made: Iterator[dict[str, pa.Table]]) -> None:
    """Tables that are made side by side, a row group each time."""
    with ExitStack() as opened:
        write = {kind: opened.enter_context(writing(files[kind], schema, kind)) for kind, schema in schemas.items()}
        for some in made:
            for kind, table in some.items():
                write[kind](table)


def keep_part(release: Release, blocks: Sequence[Block], made: Iterator[dict[str, pa.Table]], path: Path) -> None:
    """A file for each table of every block that is wanted: a block of households may come in several pieces."""
    for place, block in enumerate(blocks):
        if block.wanted:
            with ExitStack() as opened:
                schemas = _schemas(release)
                files = {kind: opened.enter_context(temporary(path.parent)) for kind in schemas}
                _write_all(files, schemas, _of_block(made, block.rows))
                for kind, file in files.items():
                    keep(file, _of_part(path, place, len(blocks), kind))


def _of_block(made: Iterator[dict[str, pa.Table]], rows: int) -> Iterator[dict[str, pa.Table]]:
    """The next ones, until there are so many household rows."""
    for some in made:
        yield some
        rows -= len(some[tables.SYNTHETIC])
        if rows <= 0:
            return


def _of_part(path: Path, place: int, blocks: int | str, kind: str) -> Path:
    return path.with_name(f"{path.stem}-{place}-of-{blocks}-{kind}")


def blocks_in_turn(parts: Sequence[str], kind: str) -> Iterator[pa.Table]:
    """One table's, each block from the part that has it, all of its pieces; the first one says how many there are."""
    first = _of_part(Path(parts[0]), 0, "*", kind)
    [blocks] = (int(found.name.split("-of-")[1].split("-")[0]) for found in first.parent.glob(first.name))
    for place in range(blocks):
        yield from in_turn([str(_of_part(Path(parts[place % len(parts)]), place, blocks, kind))])


def in_turn(parts: Sequence[str]) -> Iterator[pa.Table]:
    """The first block of every part, then the second …"""
    groups = [pq.read_metadata(path).num_row_groups for path in parts]
    for place in range(max(groups)):
        for path in (path for path, number in zip(parts, groups, strict=True) if place < number):
            with pq.ParquetFile(path) as file:
                yield file.read_row_group(place)
