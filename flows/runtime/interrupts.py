"""Ctrl-C is the business of the process that was started. A terminal sends it to all: what that one began has to outlive it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unheard_by_children() -> Iterator[None]:
    """Processes begun here, or by threads begun here, never hear Ctrl-C: a blocked signal stays blocked in a child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
