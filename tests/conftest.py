"""Generated examples are the same in every run: a failure can be repeated, and a good day is not luck."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest
from hypothesis import settings

from steps_engine import laws
from tests.prefect_server import PrefectServer, serving

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A release has few scales, its tests together hundreds: each table is made once, and is the same value as ever.
laws.two_sided_geometric_tables = lru_cache(maxsize=512)(laws.two_sided_geometric_tables.__wrapped__)

LONG = ("slow", "server", "browser", "postgres")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Coverage is measured on the tests that take seconds: tracing would make the long ones half as long again."""
    for item in items:
        if any(item.get_closest_marker(name) for name in LONG):
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[PrefectServer]:
    with serving() as server:
        yield server
