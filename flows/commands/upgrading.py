"""`steps budget migrate`: the ledger's tables, brought up to date by who owns them."""

from __future__ import annotations

import click

from flows.commands.answers import Answered, answers, known_home


@click.command()
@answers
def migrate() -> Answered:
    """Bring the tables of an earlier version up to date, without an entry. Otherwise the first entry does it.

    For a ledger on PostgreSQL whose tables belong to another account than the one that runs releases.
    """
    from flows.output import terminal
    from tasks.stages.audit import must_be_current_ledger
    from tasks.stores.database import SCHEMA_VERSION
    from tasks.stores.writing import migrate as bring_up_to_date

    ledger = must_be_current_ledger(known_home())
    before = bring_up_to_date(ledger.database, ledger.anchor)
    return {"ledger": ledger.database.name, "from": before, "to": SCHEMA_VERSION}, terminal.migrated
