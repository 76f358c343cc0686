"""The ledger's tables, version by version: how new ones are made is how old ones are brought up to date.

`meta.schema_version` says which step came last. Steps only lead upwards: an older version could not say what a newer one holds.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sql
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory


def upgrade(connection: sql.Connection, version: int) -> None:
    """Brings tables of this version (0: there are none) to the newest, within the caller's transaction."""
    scripts = ScriptDirectory(str(Path(__file__).parent))
    operations = Operations(MigrationContext.configure(connection))  # not alembic.op, which all threads share
    for step in reversed([*scripts.iterate_revisions("head", str(version) if version else "base")]):
        step.module.upgrade(operations)
