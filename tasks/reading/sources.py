"""The records at the door: which files, which columns, and a DuckDB that can read those files and nothing else.

What is said here reaches terminals and logs, so it names files and limits; never a column found, a value or a number of rows.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import duckdb
import pyarrow as pa

from schemas.errors import InfrastructureFault, SpecError
from schemas.spec.database import DatabaseSource
from schemas.spec.domain import Domain
from schemas.spec.reading import PLAIN_CSV, Csv
from tasks.reading.databases import DATABASES, described
from tasks.reading.formats import FORMATS, Columns, Ends, SourceFormat, Unpack, Unreadable, format_of, titles
from tasks.reading.locked_down import LOCKED_DOWN, literal, lock
from tasks.reading.partitions import as_written, keys_of, partitioned
from tasks.reading.places import files_at
from tasks.stores.files import disk_faults

T = TypeVar("T")

LOCK = ".lock"
_UNPACKED = "unpacked_records"
NO_MORE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """One table: files of one format, with the same columns in the same order, or the rows that a database is asked for.

    Columns are called as the domain calls them. What comes from a database is read from the Parquet file that it becomes.
    """

    files: tuple[str, ...]
    format: str
    columns: Columns
    csv: Csv = PLAIN_CSV
    found: Columns = ()  # as the files call them
    ignored: frozenset[str] = frozenset()
    database: DatabaseSource | None = None
    keys: tuple[str, ...] = ()  # of folders, which are the last columns

    @property
    def title(self) -> str:
        """Of the format or the database."""
        return self.database.title if self.database else FORMATS.named(self.format).title

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(name for name in self.names if name not in self.ignored)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def relation(self) -> str:
        """The table as SQL, its columns called c0, c1, … so that no name from a file is ever part of a query."""
        return _UNPACKED if self.database or self._unpack else self._relation(self.files)

    def _relation(self, files: Sequence[str]) -> str:
        width = len(self.columns) - len(self.keys)
        return partitioned(self.files, files, self.keys, width, self._table) if self.keys else self._table(files)

    def _table(self, files: Sequence[str]) -> str:
        names = [f"c{i}" for i in range(len(self.columns) - len(self.keys))]
        return FORMATS.named(self.format).relation(f"[{', '.join(map(literal, files))}]", names, self.csv)

    @property
    def _unpack(self) -> Unpack | None:
        return FORMATS.named(self.format).unpack(self.csv)

    def unpacked(self, folder: Path) -> tuple[str, ...]:
        """The files that DuckDB reads: the source's own, or what was unpacked of each into a confidential folder."""
        if self._unpack is None and self.database is None:
            return self.files
        parts = self.files or (None,)
        made = tuple(str(folder / f"{number}.unpacked") for number in range(len(parts)))
        words = None
        for file, target in zip(parts, made, strict=True):
            try:
                with disk_faults(Path(target)):
                    self._unpack_into(Path(target), file)
            except Unreadable as error:
                words = str(error)
            if words is not None:
                raise ReadingFailed(words)
        return made

    def _unpack_into(self, target: Path, file: str | None) -> None:
        if self.database is not None:
            wanted = {place for place, name in enumerate(self.names) if name not in self.ignored}
            DATABASES.named(self.database.scheme).unpack(self.database, target, self.found, wanted)
        elif self._unpack is not None and file is not None:
            self._unpack(file, target, self.found, self.csv)


class ReadingFailed(Exception):
    """DuckDB could not read the records. Its own words quote them: they are for the confidential page alone."""

    def __init__(self, confidential: str):
        super().__init__("the records cannot be read")
        self.confidential = confidential


def open_source(path: Path | str | DatabaseSource, domain: Domain | None = None) -> Source:
    """What lies at a path, a folder, a glob or in a database, checked without reading records (footers, headers, names)."""
    if not isinstance(path, DatabaseSource):
        return open_files(files_at(str(path)), path, domain)
    found = described(path)
    return Source((), "parquet", _named(found, domain), PLAIN_CSV, found, _ignored(domain), path)


def open_files(files: tuple[str, ...], path: Path | str, domain: Domain | None = None) -> Source:
    """These files as one table, their columns called as the domain says; `path` is what was asked for."""
    found = {format_.name: format_ for format_ in map(_format, files)}
    if len(found) > 1:
        mixed = " and ".join(format_.title for format_ in sorted(found.values(), key=lambda each: each.place))
        raise SpecError(f"source {path}: {mixed} files together; give files of one format.")
    (format_,) = found.values()
    csv = format_.settle(files[0], domain.csv if domain else PLAIN_CSV)
    columns = format_.columns(files, csv)
    for file, named in zip(files, columns, strict=True):
        if named != columns[0]:
            raise SpecError(
                f"source {path}: {Path(file).name} and {Path(files[0]).name} differ in their columns, the columns' order or "
                "types; give files of one shape."
            )
    keys = keys_of(files, path, columns[0], domain)
    named = _named(columns[0] + as_written(keys), domain)
    return Source(files, format_.name, named, csv, columns[0], _ignored(domain), keys=keys)


def _named(columns: Columns, domain: Domain | None) -> Columns:
    """As the domain calls them."""
    return tuple((domain.rename.get(name, name), holds) for name, holds in columns) if domain else columns


def _ignored(domain: Domain | None) -> frozenset[str]:
    return frozenset(domain.ignore if domain else ())


def _format(file: str) -> SourceFormat:
    """By content where it speaks, by suffix otherwise."""
    ends = _ends(file)
    if not ends.first:
        raise SpecError(f"source {file}: the file is empty; not even a header stands in it.")
    found = format_of(ends)
    if found is None:
        hints = "; ".join(each.known_by for each in FORMATS.entries() if each.known_by)
        raise SpecError(f"source {file}: neither {titles('nor')} ({hints}); convert it.")
    return found


def _ends(file: str) -> Ends:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise SpecError(f"source {file}: not a regular file; give {titles('or')} files.")
        with open(file, "rb") as stream:
            head = stream.read(4)
            stream.seek(-min(4, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            return Ends(file, head, stream.read(4))
    except OSError as error:
        reason = error.strerror
    raise SpecError(f"source {file}: cannot be read ({reason}); check the path and its permissions.")


@contextmanager
def connect(source: Source, scratch: Path, memory: Mapping[str, str] = NO_MORE) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in memory that may open the source's files and its spill folder: nothing else, no extension, no network."""
    with (
        short_lived(scratch, "spill") as folder,
        duckdb.connect(":memory:", config={**LOCKED_DOWN, "temp_directory": str(folder), **memory}) as connection,
    ):
        files = source.unpacked(folder)
        lock(connection, files)
        if files != source.files:
            query(connection, f"CREATE TEMP VIEW {_UNPACKED} AS SELECT * FROM {source._relation(files)}")
        yield connection


def query(connection: duckdb.DuckDBPyConnection, sql: str, values: Sequence[str] = ()) -> pa.Table:
    """The answer as an Arrow table."""
    return _answered(lambda: connection.execute(sql, values).to_arrow_table())


def query_in_blocks(connection: duckdb.DuckDBPyConnection, sql: str, rows: int) -> Iterator[pa.Table]:
    """The answer in blocks of so many rows, the last one aside; DuckDB makes each when it is asked for."""
    reader = iter(_answered(lambda: connection.execute(sql).to_arrow_reader(rows)))
    held, count = list[pa.RecordBatch](), 0
    while True:
        batch = _answered(lambda: next(reader, None))
        if batch is not None:
            held.append(batch)
            count += len(batch)
        if count >= rows or (batch is None and count):
            whole = pa.Table.from_batches(held)
            yield whole.slice(0, rows)
            held, count = whole.slice(rows).to_batches(), max(0, count - rows)
        if batch is None and not count:
            return


def _answered(ask: Callable[[], T]) -> T:
    """DuckDB's error texts quote records, so none of them leaves, not even as a context; nor as Arrow passes them on."""
    try:
        return ask()
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        words, is_memory = str(error), isinstance(error, duckdb.OutOfMemoryException | pa.ArrowMemoryError)
    if is_memory or "Out of Memory" in words or "No space left" in words:
        raise InfrastructureFault(
            "reading the source needs more memory than is set aside for it, or more space for spilling than the disk has. Free "
            "some space; and if there are far more rows than expected_rows says, correct it: memory is set aside by it."
        )
    raise ReadingFailed(words)


@contextmanager
def short_lived(place: Path, kind: str) -> Iterator[Path]:
    """A private folder (0700) for as long as it is used; that of a process that was killed goes when the next one comes."""
    for abandoned in [*place.glob("spill-*"), *place.glob("parts-*")]:
        _remove_unless_used(abandoned)
    folder, handle = _locked_folder(place, kind)
    try:
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def _locked_folder(place: Path, kind: str) -> tuple[Path, int]:
    """Its lock is held as long as this process lives: that of a dead one can be had by others, on any host."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=place))
        with suppress(FileNotFoundError):  # another process took the folder for a dead one's, before it was locked
            handle = _open_lock(folder)
            flock(handle, LOCK_EX)
            if (folder / LOCK).exists():
                return folder, handle
            os.close(handle)


def _remove_unless_used(folder: Path) -> None:
    with suppress(OSError):
        handle = _open_lock(folder)
        try:
            flock(handle, LOCK_EX | LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _open_lock(folder: Path) -> int:
    """A file rather than the folder itself: over NFS only what is open for writing can be locked."""
    return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
