"""The files of a bundle: plain ones of the allow-list, each with the hash that was signed. Nothing else is opened."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import SpecError
from schemas.manifest import FileFacts
from steps_engine.methods.checked import Findings, printable
from tasks.publishing import bundle
from tasks.publishing.descriptions import describing_among
from tasks.publishing.formats import formats_among
from tasks.tables_on_disk import Stored
from tasks.verify.ways import MOST_SETS

MOST_TABLE_ROWS = 2**31
ROOM = 2**28  # bytes in memory that any table may take; a larger one takes at most so many per byte of its file:
MOST_UNPACKED = 256


def regular_files(folder: Path, found: Findings) -> dict[str, Path]:
    """Plain files of the folder by name; links, folders and devices are problems and are not opened."""
    files = {}
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise SpecError(f"{folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            files[entry.name] = Path(entry.path)
        else:
            found.add(printable(entry.name), "is not a plain file")
    return files


def content_of(files: Mapping[str, Path], name: str) -> bytes:
    if name not in files:
        raise ValueError("is missing")
    with files[name].open("rb") as file:
        return file.read(bundle.LARGEST_JSON + 1)


def sound_files(files: Mapping[str, Path], manifest: bundle.AnyManifest, found: Findings) -> dict[str, Path]:
    """The files that the manifest vouches for; anything extra, missing or different is a problem."""
    sets = manifest.composition.sets
    if not 1 <= sets <= MOST_SETS:
        raise ValueError(f"a bundle has 1 to {MOST_SETS} sets")
    among = manifest.files
    formats, listings = formats_among(among), bundle.listings_among(among)
    names = bundle.file_names(sets, formats, listings, describing_among(among), bundle.is_linked(among))
    for name in sorted(files.keys() - names):
        found.add(printable(name), "does not belong to a bundle")
    for name in sorted(names - files.keys() - {bundle.MANIFEST, bundle.SIGNATURE}):
        found.add(name, "is missing")
    if manifest.files.keys() != names - bundle.UNLISTED:
        found.add(bundle.MANIFEST, "lists other files than a bundle of this many sets has")
    sound = {}
    for name in sorted(names & files.keys() & manifest.files.keys()):
        if is_as_signed(files[name], manifest.files[name]):
            sound[name] = files[name]
        else:
            found.add(name, "is not the file that was signed: its hash or size differs")
    return sound


def is_as_signed(path: Path, facts: FileFacts) -> bool:
    """The size first: what is longer than was signed is not read."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != facts.size:
            return False
        return hashlib.file_digest(file, "sha256").hexdigest() == facts.sha256


def read_table(path: Path, schema: pa.Schema, rows: int | None = None) -> pa.Table:
    """A table of exactly this schema and number of rows, without notes of pandas or anybody else."""
    return open_table(path, schema, rows).read()


def open_table(path: Path, schema: pa.Schema, rows: int | None = None) -> Stored:
    """The same, for whoever needs not all rows at a time."""
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema, check_metadata=False):
            raise ValueError("does not have the columns and types of this format")
        if set(file.metadata.metadata or {}) - {b"ARROW:schema"} or b"pandas" in (file.schema_arrow.metadata or {}):
            raise ValueError("carries notes (of pandas, or of another program) that do not belong there")
        if file.metadata.num_rows > MOST_TABLE_ROWS or rows not in (None, file.metadata.num_rows):
            raise ValueError("does not have as many rows as its whole counts say" if rows is not None else "has too many rows")
        _must_have_room(file.metadata, schema, path.stat().st_size)
    return Stored(path)


def _must_have_room(footer: pq.FileMetaData, schema: pa.Schema, size: int) -> None:
    """What a table takes in memory, by its footer: rows and values of their types, and pages as they are before decoding.

    A few bytes can stand for a billion equal rows; tables of a release do not repeat themselves so.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    width = sum(_width(field.type) for field in schema)
    values = sum(column.num_values for column in columns)
    rows = max(footer.num_rows, sum(group.num_rows for group in groups))
    taken = (
        rows * width + 8 * max(0, values - rows * len(schema)) + max((c.total_uncompressed_size for c in columns), default=0)
    )
    if min(size, *(column.num_values for column in columns), footer.num_rows) < 0 or taken > max(ROOM, MOST_UNPACKED * size):
        raise ValueError(
            f"would take {taken:,} bytes in memory from a file of {size:,}, more than such a table does: it is not opened"
        )


def _width(kind: pa.DataType) -> int:
    """Bytes of a value in memory; of a text or a list those of its place, of a dictionary's value those of its number."""
    if pa.types.is_dictionary(kind):
        return _width(kind.index_type)
    return 8 if pa.types.is_list(kind) or pa.types.is_string(kind) else max(1, kind.bit_width // 8)
