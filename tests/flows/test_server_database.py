"""Prefect's records of an embedded run: a new home gets a copy of an empty database, everything else is left to Prefect."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import tests.prefect_server  # noqa: F401  settings that come before Prefect


def database(path: Path, revision: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE alembic_version (version_num TEXT)")
        made.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        made.commit()
    return path


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PREFECT_HOME without a database, beside a cache with an empty one of the Prefect that is installed."""
    import prefect
    from prefect.settings import PREFECT_HOME, PREFECT_SERVER_DATABASE_CONNECTION_URL, temporary_settings

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    database(tmp_path / f"cache/steps-release/prefect-{prefect.__version__}.db", "newest")
    home = tmp_path / "prefect"
    home.mkdir()
    url = f"sqlite+aiosqlite:///{home}/prefect.db"
    with temporary_settings({PREFECT_HOME: str(home), PREFECT_SERVER_DATABASE_CONNECTION_URL: url}):
        yield home


@pytest.fixture
def is_prepared() -> Callable[[], bool]:
    from flows.runtime.server_database import is_prepared

    return is_prepared


def test_a_new_home_gets_a_copy_and_needs_no_migration(state: Path, is_prepared):
    assert is_prepared() and is_prepared()
    assert [path.name for path in state.iterdir()] == ["prefect.db"] and (state / "prefect.db").stat().st_mode & 0o777 == 0o600


def test_a_database_of_another_prefect_is_left_for_prefect_to_migrate(state: Path, is_prepared):
    old = database(state / "prefect.db", "older").read_bytes()
    assert not is_prepared() and (state / "prefect.db").read_bytes() == old


@pytest.mark.parametrize("content", [b"", b"no database at all, and longer than a page of one would need" * 9])
def test_what_cannot_be_read_is_left_to_prefect(state: Path, is_prepared, content: bytes):
    (state / "prefect.db").write_bytes(content)
    assert not is_prepared() and (state / "prefect.db").read_bytes() == content


def test_without_a_place_for_the_empty_one_prefect_makes_its_own(state: Path, is_prepared, monkeypatch: pytest.MonkeyPatch):
    (state / "a file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(state / "a file"))
    assert not is_prepared() and not (state / "prefect.db").exists()


def test_a_database_that_the_person_chose_is_not_touched(state: Path, is_prepared):
    from prefect.settings import PREFECT_SERVER_DATABASE_CONNECTION_URL, temporary_settings

    with temporary_settings({PREFECT_SERVER_DATABASE_CONNECTION_URL: f"sqlite+aiosqlite:///{state}/mine.db"}):
        assert not is_prepared() and list(state.iterdir()) == []
