from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tests.postgres import running_server


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def ledger(home: Home) -> Ledger:
    return open_ledger(home)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest.fixture
def postgres_home(server: str, home: Home) -> Iterator[Home]:
    """A home whose ledger is an empty database of its own."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS ledger WITH (FORCE)")
        connection.execute("CREATE DATABASE ledger")
    yield Home(home.path, ledger_url=server.rpartition("/")[0] + "/ledger")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def any_home(request: pytest.FixtureRequest) -> Home:
    """The same promise on both databases."""
    return request.getfixturevalue("home" if request.param == "sqlite" else "postgres_home")


@pytest.fixture
def ask() -> Callable[..., ChargeRequest]:
    """A request for ε=0.1 of population "youth", with whatever the test changes."""

    def make(release: str = "voter-1", **changes: object) -> ChargeRequest:
        terms = {"population": "youth", "nanos": 100_000_000, "neighbours": "add_remove", "unit": "person"}
        hashes = {"plan_hash": "plan", "spec_hash": "spec", "fingerprint": "secret-fingerprint"}
        return ChargeRequest(**{"release": release} | terms | hashes | changes)

    return make
