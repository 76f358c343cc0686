"""Generated examples are the same in every run: a failure can be repeated, and a good day is not luck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.prefect_server import PrefectServer, serving

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[PrefectServer]:
    with serving() as server:
        yield server
