"""Where Prefect's own server keeps its records. A new database takes a hundred migrations: they are run once per Prefect.

The empty database that they make lies in the user's cache folder and is copied for every new home.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from schemas.errors import StepsError
from tasks.stores.files import keep, temporary

_URL = "sqlite+aiosqlite:///{}"


def is_prepared() -> bool:
    """Whether the database is as this Prefect wants it, copied where there was none. If not, Prefect migrates it."""
    from prefect.settings import PREFECT_HOME, PREFECT_SERVER_DATABASE_CONNECTION_URL

    database = PREFECT_HOME.value() / "prefect.db"
    if PREFECT_SERVER_DATABASE_CONNECTION_URL.value() != _URL.format(database):
        return False
    try:
        empty = _empty_database()
        if not database.exists():
            _copy(empty, database)
        return _revision(database) == _revision(empty)
    except (OSError, RuntimeError, sqlite3.Error, StepsError):  # no cache, no room: it only takes longer
        return False


def _empty_database() -> Path:
    """An empty database, migrated by the Prefect that is installed; made on first use."""
    import prefect

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steps-release"
    path = cache / f"prefect-{prefect.__version__}.db"
    if not path.exists():
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory() as scratch:
            _copy(_migrated(Path(scratch)), path)
    return path


def _migrated(folder: Path) -> Path:
    from prefect.server.database import provide_database_interface
    from prefect.server.database.configurations import AioSqliteConfiguration
    from prefect.server.database.dependencies import temporary_database_config

    with temporary_database_config(AioSqliteConfiguration(_URL.format(folder / "migrated.db"))):
        asyncio.run(provide_database_interface().create_db())
    with closing(sqlite3.connect(folder / "migrated.db")) as database:
        database.execute("VACUUM INTO ?", (str(folder / "whole.db"),))  # in one file, whatever its journal held
    return folder / "whole.db"


def _copy(made: Path, final: Path) -> None:
    """A whole file under the final name, or another process's."""
    with temporary(final.parent) as file:
        file.write(made.read_bytes())
        keep(file, final)


def _revision(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT version_num FROM alembic_version").fetchall()
