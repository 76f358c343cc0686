"""Prefect's own server within this process: nothing is imported twice, and nothing is left of it when the process is killed.

Only this process knows the secret that its API asks for: no other account, and no page in a browser, gets in.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from flows.runtime.server_database import is_prepared
from schemas.errors import InfrastructureFault
from tasks.stores.keys import passing_secret

if TYPE_CHECKING:
    from uvicorn import Server

PATIENCE = 180.0  # seconds for a database of an older Prefect to be migrated
LAST_WORDS = 10.0  # seconds for what was logged and recorded to be written down


@contextmanager
def serving() -> Iterator[None]:
    """Prefect's API for what runs inside, on a free port of loopback; where another server is configured, that one."""
    from prefect.settings import PREFECT_API_URL, PREFECT_SERVER_EPHEMERAL_ENABLED, temporary_settings

    if PREFECT_API_URL.value() or not PREFECT_SERVER_EPHEMERAL_ENABLED.value():
        yield
        return
    with socket.create_server(("127.0.0.1", 0)) as listener, temporary_settings(_settings(listener.getsockname()[1])):
        server = _server()
        thread = threading.Thread(target=copy_context().run, args=(server.run, [listener]), daemon=True)
        thread.start()
        try:
            _must_start(server, thread)
            yield
        finally:
            _drain()
            server.should_exit = True
            thread.join(LAST_WORDS)


def _settings(port: int) -> dict[Any, Any]:
    """What Prefect's client and server are told; services that nobody here would notice stay off."""
    from prefect import settings

    secret = passing_secret()
    return {
        settings.PREFECT_API_URL: f"http://127.0.0.1:{port}/api",
        settings.PREFECT_API_AUTH_STRING: secret,
        settings.PREFECT_SERVER_API_AUTH_STRING: secret,
        settings.PREFECT_SERVER_CORS_ALLOWED_ORIGINS: f"http://127.0.0.1:{port}",
        settings.PREFECT_API_DATABASE_MIGRATE_ON_START: not is_prepared(),
        settings.PREFECT_API_BLOCKS_REGISTER_ON_START: False,
        settings.PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION: False,  # would import every collection to see whether one is new
        settings.PREFECT_API_SERVICES_TRIGGERS_ENABLED: False,
    }


def _server() -> Server:
    from prefect.server.api.server import create_app
    from uvicorn import Config, Server

    app = create_app(ephemeral=True, final=True)
    # A stage may keep this process busy for longer than a ping waits; no signal of ours is uvicorn's: it runs in a thread.
    return Server(Config(app, log_config=None, lifespan="on", ws_ping_interval=None, timeout_graceful_shutdown=2))


def _must_start(server: Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + PATIENCE
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise InfrastructureFault("Prefect's server could not start. Is there room for its database? Then run again.")
        time.sleep(0.01)


def _drain() -> None:
    """Everything that was logged or happened reaches the server before it stops."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=LAST_WORDS)
