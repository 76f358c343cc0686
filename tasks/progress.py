"""How far a long stage is, for whoever watches: stages say it here, and know nothing of who listens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)


def told(parts: Iterable[tuple[Callable[[], T], int]], total: int) -> Iterator[T]:
    """The parts, each made when its turn comes and held by nobody here; what share of the total is done is told as each is."""
    done = 0
    for make, size in parts:
        yield make()
        done += size
        listener = _listener.get()
        if listener is not None and total:
            listener(min(done / total, 1.0))


@contextmanager
def listening(listener: Callable[[float], None]) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
