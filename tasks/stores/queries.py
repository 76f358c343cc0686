"""What is read from the ledger's table, in whichever version it is."""

from __future__ import annotations

import sqlalchemy as sql

from .charging import Account
from .database import ENTRIES, columns_of
from .entries import NO_HASH, Entry, Head, Totals


def read_entries(connection: sql.Connection, **columns: str | None) -> list[Entry]:
    """In order; those whose columns have these values, None being no wish."""
    wanted = [ENTRIES.c[name] == value for name, value in columns.items() if value is not None]
    rows = connection.execute(sql.select(*columns_of(connection)).where(*wanted).order_by(ENTRIES.c.seq))
    return [Entry(**row) for row in rows.mappings()]


def read_by_key(connection: sql.Connection, key: str) -> Entry | None:
    return next(iter(read_entries(connection, key=key)), None)


def read_head(connection: sql.Connection) -> Head:
    last = connection.execute(sql.select(ENTRIES.c.seq, ENTRIES.c.hash).order_by(ENTRIES.c.seq.desc()).limit(1)).first()
    return (last.seq, last.hash) if last else (0, NO_HASH)


def read_totals(connection: sql.Connection, population: str | None) -> Totals:
    columns = sql.select(ENTRIES.c.granted_after, ENTRIES.c.charged_after)
    last = columns.where(ENTRIES.c.population == population).order_by(ENTRIES.c.seq.desc()).limit(1)
    found = connection.execute(last).first()
    return Totals(found.granted_after, found.charged_after) if found else Totals()


def read_account(connection: sql.Connection, population: str) -> Account | None:
    """The first grant fixes relation, unit and measure; the last one says at which δ to quote ε."""
    grants = read_entries(connection, kind="grant", population=population)
    if not grants:
        return None
    terms, totals = grants[0].details, read_totals(connection, population)
    return Account(
        population,
        totals.granted,
        totals.charged,
        terms["neighbours"],
        terms["unit"],
        grants[0].measure or "pure",
        grants[-1].details.get("delta"),
    )


def read_accounts(connection: sql.Connection) -> list[Account]:
    names = connection.scalars(sql.select(ENTRIES.c.population).where(ENTRIES.c.kind == "grant").distinct())
    return [account for name in sorted(names) if (account := read_account(connection, name)) is not None]
