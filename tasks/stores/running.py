"""Which releases are being run: a lock that a run holds while its process lives, whatever host it is on."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .entries import must_be_name
from .files import disk_faults, private_folder
from .home import Home


@contextmanager
def running(home: Home, release: str) -> Iterator[None]:
    """Says that this release is being run while the block runs; several runs may share it."""
    with _opened(_lock(home, release)) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


@contextmanager
def not_running(home: Home, release: str) -> Iterator[bool]:
    """Whether no run of this release is going on; if so, none begins while the block runs."""
    with _opened(_lock(home, release)) as descriptor:
        free = False
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        yield free


def is_running(home: Home, release: str) -> bool:
    if not (home.path / "runs" / f"{release}.lock").exists():  # nobody ever ran it: looking makes no lock
        return False
    with not_running(home, release) as free:
        return not free


def _lock(home: Home, release: str) -> Path:
    return private_folder(home.folder / "runs") / f"{must_be_name('release', release)}.lock"


@contextmanager
def _opened(lock: Path) -> Iterator[int]:
    with disk_faults(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
