"""A PostgreSQL server (Debian's package) for a test session: own folder, own port, stopped at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

UNPRIVILEGED = "nobody"  # the server refuses to run as root


@contextmanager
def running_server() -> Iterator[str]:
    """The URL of an empty server that trusts local connections; skips when PostgreSQL is not installed."""
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=None)
    if binaries is None or not (binaries / "initdb").exists():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short: a socket's path has at most 107 bytes
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, UNPRIVILEGED)
        port = _free_port()
        _run(folder, binaries / "initdb", "-D", folder / "data", "-U", "steps", "-A", "trust", "-E", "UTF8", "-N")
        options = f"-k {folder} -c listen_addresses=127.0.0.1 -c port={port} -c max_connections=120"
        control = [binaries / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log"]
        _run(folder, *control, "-o", options, "start")
        try:
            yield f"postgresql://steps@127.0.0.1:{port}/postgres"
        finally:
            _run(folder, *control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _run(folder: Path, *command: object) -> None:
    account = {"user": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, **account)
    assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"
