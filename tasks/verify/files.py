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
from steps_engine.methods.checked import Findings, printable
from tasks.publishing import bundle
from tasks.publishing.formats import formats_among
from tasks.verify.ways import MOST_SETS

MOST_TABLE_ROWS = 2**31


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
    names = bundle.file_names(sets, formats_among(manifest.files), bundle.listings_among(manifest.files))
    for name in sorted(files.keys() - names):
        found.add(printable(name), "does not belong to a bundle")
    for name in sorted(names - files.keys() - bundle.UNLISTED):
        found.add(name, "is missing")
    if manifest.files.keys() != names - bundle.UNLISTED:
        found.add(bundle.MANIFEST, "lists other files than a bundle of this many sets has")
    sound = {}
    for name in sorted(names & files.keys() & manifest.files.keys()):
        if _facts(files[name]) == (manifest.files[name].sha256, manifest.files[name].size):
            sound[name] = files[name]
        else:
            found.add(name, "is not the file that was signed: its hash or size differs")
    return sound


def _facts(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size


def read_table(path: Path, schema: pa.Schema, rows: int | None = None) -> pa.Table:
    """A table of exactly this schema and number of rows, without notes of pandas or anybody else."""
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema, check_metadata=False):
            raise ValueError("does not have the columns and types of this format")
        if set(file.metadata.metadata or {}) - {b"ARROW:schema"} or b"pandas" in (file.schema_arrow.metadata or {}):
            raise ValueError("carries notes (of pandas, or of another program) that do not belong there")
        if file.metadata.num_rows > MOST_TABLE_ROWS or rows not in (None, file.metadata.num_rows):
            raise ValueError("does not have as many rows as its whole counts say" if rows is not None else "has too many rows")
        return file.read()
