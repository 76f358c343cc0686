"""What is known from the ledger's table, in whichever version it is: through the verified chain, whatever an index says."""

from __future__ import annotations

import sqlalchemy as sql

from .charging import Account
from .entries import Entry, Head, Totals
from .walk import Walk, read_after, walked


def read_entries(connection: sql.Connection, **columns: str | None) -> list[Entry]:
    """In order. Without a wish all that the table holds, sound or not; else the verified ones that have these values."""
    wanted = {name: value for name, value in columns.items() if value is not None}
    if not wanted:
        return read_after(connection, 0)
    return [entry for entry in _near(walked(connection), wanted) if all(getattr(entry, n) == v for n, v in wanted.items())]


def _near(walk: Walk, wanted: dict[str, str]) -> list[Entry]:
    """Where to look."""
    if "release" in wanted:
        return walk.by_release.get(wanted["release"], [])
    return walk.by_population.get(wanted["population"], []) if "population" in wanted else walk.entries


def read_by_key(connection: sql.Connection, key: str) -> Entry | None:
    return walked(connection).by_key.get(key)


def read_head(connection: sql.Connection) -> Head:
    return walked(connection).head


def read_totals(connection: sql.Connection, population: str | None) -> Totals:
    entries = walked(connection).by_population.get(population, []) if population is not None else []
    return Totals(entries[-1].granted_after, entries[-1].charged_after) if entries else Totals()


def read_account(connection: sql.Connection, population: str) -> Account | None:
    """The first grant fixes relation, unit and measure; the last one says at which δ to quote ε."""
    grants = read_entries(connection, kind="grant", population=population)
    if not grants:
        return None
    terms, totals, waves = grants[0].details, read_totals(connection, population), walked(connection).waves
    return Account(
        population,
        totals.granted,
        totals.charged,
        terms["neighbours"],
        terms["unit"],
        grants[0].measure or "pure",
        grants[-1].details.get("delta"),
        waves.loss(waves.group(population)),
    )


def read_accounts(connection: sql.Connection) -> list[Account]:
    names = sorted(walked(connection).by_population)
    return [account for name in names if (account := read_account(connection, name)) is not None]
