"""Files that are either whole or absent: temporary file, fsync, link to the final name, fsync of the folder."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from schemas.errors import InfrastructureFault

TEMPORARY = ".writing-"
LEAST_ROOM = 64 * 2**20  # bytes: Prefect's database and logs, and artifacts of an ordinary release
PAUSE = 0.005  # seconds between two looks at a lock


def open_folder(path: Path) -> Path:
    """The folder, made on first use (0755, whatever the umask); one that exists is left as its owner made it."""
    with disk_faults(path):
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)
            sync_folder(path.parent)
    return path


def private_folder(path: Path) -> Path:
    """The folder, for its owner alone (0700) from its first moment on, and again if that was loosened."""
    with disk_faults(path):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
            sync_folder(path.parent)
        if path.stat().st_mode & 0o777 != 0o700:
            path.chmod(0o700)
        if not os.access(path, os.R_OK | os.X_OK):  # another account's
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_faults(place: Path) -> Iterator[None]:
    """A full disk, a missing permission, a lost mount: named after the place, worth a retry."""
    try:
        yield
    except OSError as error:
        raise InfrastructureFault(
            f"cannot use {place}: {error.strerror or type(error).__name__}. "
            "Nothing half-written was kept. Free space or restore access, then run again."
        ) from None


def must_have_room(folder: Path) -> None:
    """A full disk is met at the door, not minutes later in the midst of a run."""
    with disk_faults(folder):
        free = shutil.disk_usage(folder).free
    if free < LEAST_ROOM:
        raise InfrastructureFault(
            f"{folder} has {free / 2**20:,.0f} MiB of room; a run needs {LEAST_ROOM // 2**20} at least, for artifacts and "
            "Prefect's records. Nothing was begun. Free space, then run again."
        )


@contextmanager
def temporary(folder: Path) -> Iterator[IO[bytes]]:
    """A temporary file (0600), locked while its writer lives, gone afterwards."""
    with disk_faults(folder):
        file = _make_temporary(folder)
        try:
            with file:
                yield file
        finally:
            Path(file.name).unlink(missing_ok=True)
            sync_folder(folder)


def _make_temporary(folder: Path) -> IO[bytes]:
    while True:
        file = NamedTemporaryFile(prefix=TEMPORARY, dir=folder, delete=False)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):  # before the lock a sweep may have taken it for a dead writer's; now none can
            return file
        file.close()


def keep(file: IO[bytes], final: Path) -> bool:
    """Gives the temporary file its final name unless that is taken; False: another writer's file stands there."""
    file.flush()
    os.fsync(file.fileno())
    try:
        os.link(file.name, final)
    except FileExistsError:
        return False
    return True


def write_over(path: Path, content: bytes, mode: int) -> None:
    """The whole new file, on disk when this returns, or the one before."""
    with temporary(path.parent) as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
        os.replace(file.name, path)


def sweep(folder: Path) -> None:
    """Removes temporary files whose writer is dead: the system released their lock."""
    for path in folder.rglob(f"{TEMPORARY}*"):
        with disk_faults(path), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            path.unlink(missing_ok=True)


@contextmanager
def alone(lock: Path, patience: float) -> Iterator[None]:
    """Holds the lock file while the block runs; a holder that dies lets go."""
    with disk_faults(lock):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(descriptor, lock, time.monotonic() + patience)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, lock: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise InfrastructureFault(
                    f"{lock} is held by another process. Nothing was written; run again when it has finished."
                ) from None
            time.sleep(PAUSE)
