"""The verified chain, as far as this process has walked it: balances and histories follow from it, never from an index.

A first look walks the whole table, in order and hash by hash; a later one reads what came after. An index of the database could
leave an entry out, and with it a charge: here every entry follows from the one before.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable

import sqlalchemy as sql

from .database import ENTRIES, columns_of
from .entries import NO_HASH, Entry, Head, Links
from .people import People
from .soundness import must_be_sound
from .waves import Waves


class Walk:
    """Entries that verify, with what follows from them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.people = People()
        self.waves = Waves()
        self.by_key: dict[str, Entry] = {}
        self.by_release: dict[str, list[Entry]] = defaultdict(list)
        self.by_population: dict[str, list[Entry]] = defaultdict(list)
        self._links = Links()

    @property
    def head(self) -> Head:
        return self._links.last

    @property
    def identity(self) -> str:
        """What tells this ledger from any other: the hash of its first entry."""
        return self.entries[0].hash if self.entries else NO_HASH

    def go_on(self, entries: Iterable[Entry]) -> list[str]:
        """Takes the entries that follow; what does not hold in them."""
        problems: list[str] = []
        for entry in entries:
            problems += [*self._links.problems(entry), *self.people.problems(entry, self.identity)]
            problems += self.waves.problems(entry)
            self.entries.append(entry)
            self.by_key.setdefault(entry.key, entry)
            for value, index in ((entry.release, self.by_release), (entry.population, self.by_population)):
                if value is not None:
                    index[value].append(entry)
        return problems


_walks: dict[str, Walk] = {}
_turn = threading.Lock()
os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)


def walked(connection: sql.Connection) -> Walk:
    """The whole ledger as this connection sees it; refuses one that does not verify."""
    name = connection.engine.url.render_as_string(hide_password=True)
    with _turn:
        walk = _walks.pop(name, None)
        if walk is None or not _holds(connection, walk.head):
            walk = Walk()
        problems = walk.go_on(read_after(connection, walk.head[0]))
        must_be_sound(connection.engine.url.database or name, problems, "Nothing was written")
        _walks[name] = walk
    return walk


def read_after(connection: sql.Connection, seq: int) -> list[Entry]:
    """The entries after this number, in the order of the table itself."""
    rows = connection.execute(sql.select(*columns_of(connection)).where(ENTRIES.c.seq > seq).order_by(ENTRIES.c.seq))
    return [Entry(*row) for row in rows.tuples()]


def _holds(connection: sql.Connection, head: Head) -> bool:
    """Whether the ledger still has what was walked: it may have been replaced meanwhile."""
    found = connection.scalar(sql.select(ENTRIES.c.hash).where(ENTRIES.c.seq == head[0]))
    return found == head[1] if head[0] else True
