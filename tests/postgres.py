"""A PostgreSQL server (Debian's package) for a test session: own folder, own port, stopped at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

UNPRIVILEGED = "nobody"  # the server refuses to run as root


@dataclass(frozen=True)
class Postgres:
    """A server that can be stopped, killed and started again."""

    binaries: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://steps@127.0.0.1:{self.port}/postgres"

    @property
    def postmaster(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses=127.0.0.1 -c port={self.port} -c max_connections=120"
        self._control("-o", options, "start")

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")

    def _control(self, *words: str) -> None:
        control = [self.binaries / "pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log"]
        _run(self.folder, *control, *words)


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """An empty server that trusts local connections; skips when PostgreSQL is not installed."""
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)
    if binaries is None or not (binaries / "initdb").exists():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short: a socket's path has at most 107 bytes
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        server = Postgres(binaries, folder, _free_port())
        _run(folder, binaries / "initdb", "-D", folder / "data", "-U", "steps", "-A", "trust", "-E", "UTF8", "-N")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of such a server."""
    with running_postgres() as server:
        yield server.url


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _run(folder: Path, *command: object) -> None:
    account = {"user": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, **account)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"
