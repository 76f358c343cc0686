"""Ledgers that earlier versions made: the frozen ones, and on PostgreSQL the same entries in tables of that version."""

from __future__ import annotations

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import sqlalchemy as sql
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from tasks.stores import migrations
from tasks.stores.home import Home

FROZEN = Path(__file__).parents[2] / "frozen"
NAMES = {1: ("0.1.0", "finished"), 2: ("0.2.0.dev0-pure", "two-populations")}  # by the version of their tables


def unpack_old(version: int, place: Path) -> Home:
    """A home with a SQLite ledger whose tables are of this version."""
    release, name = NAMES[min(version, max(NAMES))]
    with tarfile.open(FROZEN / release / "homes" / f"{name}.tar.gz") as archive:
        archive.extractall(place, filter="tar")
    home = Home(place / name / "home")
    if version not in NAMES:
        with sql.create_engine(f"sqlite:///{home.ledger_file}", poolclass=sql.NullPool).begin() as connection:
            make_tables(connection, version, max(NAMES))
    return home


def make_tables(connection: sql.Connection, version: int, after: int | None = None) -> None:
    """Tables of this version, by the steps that lead to it from the one before, or from none."""
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    for step in reversed([*scripts.iterate_revisions(str(version), str(after) if after else "base")]):
        step.module.upgrade(Operations(MigrationContext.configure(connection)))


def copy_to_postgresql(home: Home, version: int, url: str) -> Home:
    """The same home with its ledger on PostgreSQL."""
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        raw.row_factory = sqlite3.Row
        rows = [dict(row) for row in raw.execute("SELECT * FROM entries ORDER BY seq")]
    engine = sql.create_engine(sql.make_url(url).set(drivername="postgresql+psycopg"), poolclass=sql.NullPool)
    with engine.begin() as connection:
        make_tables(connection, version)
        connection.execute(sql.insert(sql.table("entries", *(sql.column(name) for name in rows[0]))), rows)
    return Home(home.path, ledger_url=url)
