from __future__ import annotations

import pytest

from tests.prefect_server import PrefectServer


@pytest.fixture(scope="session")
def prefect_api(prefect_server: PrefectServer) -> str:
    return prefect_server.url
