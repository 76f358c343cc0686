"""The ledger's table on SQLite or PostgreSQL; the database itself refuses to forget or to overspend."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import sqlalchemy as sql
from sqlalchemy import exc

from schemas.errors import EvidenceBroken, InfrastructureFault, SpecError, StepsError

from .files import alone, disk_faults
from .home import Home

SCHEMA_VERSION = 5  # the last of migrations/versions
PATIENCE = 30.0  # seconds to wait for another writer
MOST_PROBLEMS = 20  # told of a damaged file
IN_DOUBT = (
    "Whether the last entry was written is not known. Run the same again: an entry that is there is found, not written twice."
)

_METADATA = sql.MetaData()
_BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")

# What is read and written; how the tables are made, with their checks and triggers, is in migrations/versions.
META = sql.Table("meta", _METADATA, sql.Column("schema_version", sql.Integer, primary_key=True))
ENTRIES = sql.Table(
    "entries",
    _METADATA,
    sql.Column("seq", _BIG, primary_key=True, autoincrement=False),
    sql.Column("at", sql.Text, nullable=False),
    sql.Column("actor", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False),
    sql.Column("population", sql.Text, index=True),
    sql.Column("release", sql.Text, index=True),
    sql.Column("key", sql.Text, nullable=False, unique=True),
    sql.Column("amount", _BIG, nullable=False),
    sql.Column("granted_after", _BIG, nullable=False),
    sql.Column("charged_after", _BIG, nullable=False),
    sql.Column("body", sql.Text, nullable=False),
    sql.Column("previous", sql.Text, nullable=False, unique=True),
    sql.Column("hash", sql.Text, nullable=False, unique=True),
    sql.Column("measure", sql.Text),  # since version 3
)
_CREATION_LOCK = 0x57E95  # PostgreSQL's advisory lock for making the tables
_NOT_ALLOWED = "42501"  # PostgreSQL's insufficient_privilege


@dataclass(frozen=True)
class Database:
    """A ledger's tables. Reading sees a snapshot; writing is alone, all or nothing, and durable when the block ends."""

    engine: sql.Engine
    name: str  # without a password
    lock: Path | None  # SQLite: its own locking alone lets some writers wait for many seconds
    patience: float

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        with self._faults(), self.engine.connect() as connection:
            if self.lock is None:  # one snapshot for all that is read: the version, and entries as that version has them
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        with self._alone(), self._faults(), self.engine.connect() as connection:
            transaction = connection.execution_options(writes=True).begin()
            with transaction:
                if self.lock is None:  # the row lock makes the chain serial across hosts
                    connection.execute(sql.select(META).with_for_update())
                yield connection
                with self._faults(IN_DOUBT):
                    transaction.commit()

    def problems(self) -> list[str]:
        """Where the file contradicts itself: a broken page, or an index that leaves out or adds an entry."""
        if self.lock is None:
            return []
        with self._faults(), self.engine.connect() as connection:
            found = [str(row[0]) for row in connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
        return [f"the file {self.name} is damaged: {problem}" for problem in found if problem != "ok"]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self.lock is None:
            yield
        else:
            with alone(self.lock, self.patience):
                yield

    @contextmanager
    def _faults(self, kept: str = "Nothing was written; run again later.") -> Iterator[None]:
        try:
            yield
        except exc.DBAPIError as error:
            self._explain(error, kept)

    def _explain(self, error: exc.DBAPIError, kept: str) -> NoReturn:
        # The statement and its values stay out of the message: exceptions are shown and stored elsewhere.
        said = (str(error.orig).splitlines() or [""])[0]
        if isinstance(error, exc.IntegrityError):
            text = f"the ledger {self.name} refused an entry that breaks its rules. Nothing was written; verify it."
            raise EvidenceBroken(text) from None
        if type(error) is exc.DatabaseError or _is_damage(error):
            text = f"{self.name} is not a readable ledger ({said}). Restore it from its newest backup."
            raise EvidenceBroken(text) from None
        if getattr(error.orig, "sqlstate", None) == _NOT_ALLOWED:
            text = f"the ledger {self.name} does not allow this account what is asked ({said}). Nothing was written. "
            raise StepsError(
                text + "Tables are made (steps budget show) and migrated (steps budget migrate) by their owner; who writes "
                "entries needs SELECT, INSERT ON entries and SELECT, UPDATE ON meta."
            ) from None
        text = f"the ledger {self.name} is busy, locked or out of reach ({said}). {kept}"
        raise InfrastructureFault(text) from None


def _is_damage(error: exc.DBAPIError) -> bool:
    """SQLite's words for a broken page; text that is not UTF-8 comes from one too."""
    primary = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error.orig)


def open_database(home: Home, patience: float = PATIENCE) -> Database:
    """The tables of this home's ledger, made on first use; those of a newer version are left untouched."""
    database = _postgresql(home.ledger_url, patience) if home.ledger_url else _sqlite(home.ledger_file, patience)
    is_empty = database.lock is not None and home.ledger_file.stat().st_size == 0
    if is_empty or not _is_made(database):
        _make(database)
    if database.lock is not None:
        _must_be_whole(database, home.ledger_file)
    return database


_whole: dict[Path, tuple[int, ...]] = {}  # what each file looked like when it was last found whole


def _must_be_whole(database: Database, path: Path) -> None:
    """One flipped bit in an index hides a charge; a file that nobody changed since the last look is not looked at again."""
    with disk_faults(path):
        found = [each.stat() for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]
    looks = tuple(number for each in found for number in (each.st_ino, each.st_size, each.st_mtime_ns))
    if _whole.get(path) == looks:
        return
    if problems := database.problems():
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise EvidenceBroken(
            f"{problems[0]}{more}. Nothing was written. Copy the file away first. If it is only an index that is wrong, "
            f'sqlite3 {path} "REINDEX" makes it anew from the entries, and then steps budget verify must hold; otherwise '
            "restore the newest backup."
        )
    _whole[path] = looks


def _make_file(path: Path) -> None:
    """An empty file for its owner alone, where there is none.

    One that exists is never opened here: under POSIX whoever closes a file loses all locks that the process has on it, those of
    other threads' connections too; and then another process that has read takes their write-ahead log away, entries included.
    """
    with disk_faults(path):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            if not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _sqlite(path: Path, patience: float) -> Database:
    _make_file(path)
    url = sql.URL.create("sqlite", database=str(path))
    arguments = {"timeout": patience, "isolation_level": None}
    engine = sql.create_engine(url, poolclass=sql.NullPool, hide_parameters=True, connect_args=arguments)

    @sql.event.listens_for(engine, "connect")
    def _durable(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = FULL")

    @sql.event.listens_for(engine, "begin")
    def _begin(connection: sql.Connection) -> None:
        # A deferred transaction that turns into a writing one fails at once when another writer came first.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return Database(engine, str(path), path.with_suffix(".lock"), patience)


def _postgresql(url: str, patience: float) -> Database:
    try:
        address = sql.make_url(url).set(drivername="postgresql+psycopg")
    except (exc.ArgumentError, ValueError):
        raise SpecError("STEPS_LEDGER cannot be read as a URL. Write postgresql://user@host:port/database.") from None
    settings = f"-c lock_timeout={round(patience * 1000)} -c synchronous_commit=on"
    engine = sql.create_engine(
        address,
        poolclass=sql.NullPool,
        hide_parameters=True,
        isolation_level="READ COMMITTED",  # what is read after the row lock is what was committed before it
        connect_args={"options": settings, "connect_timeout": max(2, round(patience))},
    )
    return Database(engine, address.render_as_string(hide_password=True), None, patience)


def _is_made(database: Database) -> bool:
    with database.reading() as connection:
        tables = {META.name, ENTRIES.name} & set(sql.inspect(connection).get_table_names())
        if not tables:
            return False
        version = connection.scalar(sql.select(META.c.schema_version)) if META.name in tables else None
    if version is None or ENTRIES.name not in tables:
        raise EvidenceBroken(f"the ledger {database.name} lacks one of its tables. Restore it from its newest backup.")
    if version > SCHEMA_VERSION:
        raise StepsError(
            f"the ledger {database.name} was made by a newer version of this software (format {version}; "
            f"this one knows {SCHEMA_VERSION}). Nothing was touched; upgrade and run again."
        )
    return True


def version_of(connection: sql.Connection) -> int:
    return int(connection.execute(sql.select(META.c.schema_version)).scalar_one())


def columns_of(connection: sql.Connection) -> list[sql.ColumnElement[Any]]:
    """The columns of an entry; tables before version 3 have no measure, and are read as they are."""
    has_measure = version_of(connection) >= 3
    return [column if column.name != "measure" or has_measure else sql.null().label("measure") for column in ENTRIES.c]


def raise_version(connection: sql.Connection) -> None:
    """Migrates the tables with the first entry that this version writes: older programs then refuse them."""
    if (version := version_of(connection)) < SCHEMA_VERSION:
        _migrate(connection, version)


def _migrate(connection: sql.Connection, version: int) -> None:
    from .migrations import upgrade  # alembic is needed once in a ledger's life

    upgrade(connection, version)


def _make(database: Database) -> None:
    with database._alone():
        if database.lock is not None:
            with database._faults(), database.engine.connect() as connection:
                connection.connection.cursor().execute("PRAGMA journal_mode = WAL")
        with database._faults(), database.engine.connect() as connection:
            with connection.execution_options(writes=True).begin():
                if database.lock is None:
                    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_CREATION_LOCK)))
                if sql.inspect(connection).has_table(META.name):
                    return  # another process made them meanwhile
                _migrate(connection, 0)
