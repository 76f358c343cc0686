"""A ledger's entries in other tables: from PostgreSQL into the file that a backup holds, and back into an empty database."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import sqlalchemy as sql

from schemas.errors import EvidenceBroken

from .database import ENTRIES, Database, open_database, raise_version
from .entries import Entry
from .home import Home
from .queries import read_entries


def as_file(database: Database, folder: Path) -> Path:
    """The entries as one snapshot sees them, in a SQLite file of its own."""
    with database.reading() as connection:
        entries = read_entries(connection)
    copy = Home(folder)
    fill(open_database(copy), entries)
    return copy.ledger_file


def fill(database: Database, entries: list[Entry]) -> None:
    """Puts them into tables that hold none, all or nothing. They are linked and signed already, and stay what they are."""
    with database.writing() as connection:
        if read_entries(connection):
            raise EvidenceBroken(f"the ledger {database.name} has entries already; nothing was added to it.")
        raise_version(connection)
        if entries:
            connection.execute(sql.insert(ENTRIES), [asdict(entry) for entry in entries])
