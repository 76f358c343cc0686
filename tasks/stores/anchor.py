"""Heads of the ledger, appended to a file outside it: an old copy of the ledger lacks one of them."""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .entries import Head
from .files import disk_faults, sync_folder

LINE = re.compile(r"([1-9][0-9]*) ([0-9a-f]{64})")
TAIL = 4096  # bytes; about fifty lines


@dataclass(frozen=True)
class Anchored:
    """What an anchor file says; `torn` are the numbers of lines that a crash cut short: harmless, but worth telling."""

    heads: tuple[Head, ...]
    torn: tuple[int, ...]


@dataclass(frozen=True)
class Anchor:
    """An append-only file of `seq hash` lines. Its folder must exist: a lost mount must not look like a new anchor."""

    path: Path

    def must_be_writable(self) -> None:
        """Looked at before an entry is written: one that could not be anchored is not written at all."""
        with disk_faults(self.path):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))

    def append(self, seq: int, digest: str) -> None:
        """Durable before it returns; a line that is there already is not repeated."""
        with disk_faults(self.path):
            is_new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self._append_line(descriptor, f"{seq} {digest}\n".encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self.path.parent)

    @staticmethod
    def _append_line(descriptor: int, line: bytes) -> None:
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, TAIL, max(0, size - TAIL))
        if line in tail.splitlines(keepends=True):
            return
        if tail and not tail.endswith(b"\n"):  # a crash cut the last line short: it is left as it is, and ended
            line = b"\n" + line
        while line:
            line = line[os.write(descriptor, line) :]

    def last(self) -> Anchored:
        """The last heads, about fifty: all that a writer needs to compare, since each follows from those before it."""
        with disk_faults(self.path):
            if not self.path.exists():
                os.stat(self.path.parent)  # a lost mount is a fault, and no lost anchor
                return Anchored((), ())
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TAIL))
                tail = file.read()
        return _parsed(tail if size <= TAIL else tail.partition(b"\n")[2])

    def read(self) -> Anchored:
        """All heads; an absent file has none."""
        with disk_faults(self.path):
            return _parsed(self.path.read_bytes() if self.path.exists() else b"")


def _parsed(content: bytes) -> Anchored:
    text = content.decode("ascii", errors="replace")
    matches = {number: LINE.fullmatch(line) for number, line in enumerate(text.split("\n"), start=1) if line}
    heads = tuple((int(match[1]), match[2]) for match in matches.values() if match)
    return Anchored(heads, torn=tuple(number for number, match in matches.items() if match is None))
