"""Where a run works: a command's run in the home that the command names, with what it names; a worker's run in the worker's
own home, with what the worker owns.

No parameter decides it, since whoever asks a server for a run chooses the parameters. A run that no command of ours embeds is
taken for a worker's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from schemas.spec.release import Release
from tasks.ownership import Owned, owned_by
from tasks.stores.home import Home

_home: ContextVar[Home | None] = ContextVar("home", default=None)


@dataclass(frozen=True)
class Place:
    """A home, and what may be touched from it; None: everything that the account of the command may."""

    home: Home
    owned: Owned | None

    def release_file(self, name: str) -> Path:
        return self.owned.release_file(name) if self.owned else Path(name)

    def must_own(self, release: Release) -> None:
        if self.owned:
            self.owned.must_own(release)

    def must_own_files(self, release: Release) -> None:
        if self.owned:
            self.owned.must_own_files(release)


@contextmanager
def embedded_in(home: Home) -> Iterator[None]:
    """Flows called here, in this process, are a command's and work in this home."""
    token = _home.set(home)
    try:
        yield
    finally:
        _home.reset(token)


def home_of_run() -> Home:
    """Embedded, the command's home; otherwise that of the worker's environment."""
    return _home.get() or Home.from_environment()


def is_embedded() -> bool:
    return _home.get() is not None


def place_of_run() -> Place:
    """Read anew by every run: what the worker owns may have changed since the last one."""
    home = home_of_run()
    return Place(home, None if is_embedded() else owned_by(home))
