"""The same table: lifetime caps over populations that share people, which older programs would not keep, may stand in it."""

from __future__ import annotations

from alembic.operations import Operations

revision, down_revision = "5", "4"


def upgrade(op: Operations) -> None:
    op.execute("UPDATE meta SET schema_version = 5")
