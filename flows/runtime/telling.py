"""What a command did, told to the Prefect server that is configured, so that its automations hear of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from schemas.errors import StepsError
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger

if TYPE_CHECKING:
    from tasks.stores.entries import Entry


@contextmanager
def server_told(home: Home, name: str) -> Iterator[None]:
    """Tells what the ledger has gained about a release, however the block ends. The ledger is the record: a server that is
    out of reach is said to be so, and changes nothing."""
    if not os.environ.get("PREFECT_API_URL"):
        yield
        return
    seen = _entries(home, name)
    try:
        yield
    finally:
        if seen is not None and (gained := (_entries(home, name) or [])[len(seen) :]):
            _tell(home, gained)


def _entries(home: Home, name: str) -> Sequence[Entry] | None:
    """None: a name or a ledger that the command itself refuses, in its own words."""
    try:
        return open_ledger(home).entries(release=name)
    except StepsError:
        return None


def _tell(home: Home, gained: Sequence[Entry]) -> None:
    from flows.runtime.prefect_settings import log_in, quiet

    try:
        quiet(home.folder)
        log_in(home)
        from flows.output import events

        for entry in gained:
            events.tell_entry(entry, entry.population or "", by=events.post)
    except Exception as error:
        reason = type(error).__name__
        print(f"steps: this is done; Prefect's server could not be told of it ({reason}). Is it out of reach?", file=sys.stderr)
