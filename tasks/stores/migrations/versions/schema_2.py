"""The same table: entries of format 2, which version 0.1.0 would misread, may stand among those of format 1."""

from __future__ import annotations

from alembic.operations import Operations

revision, down_revision = "2", "1"


def upgrade(op: Operations) -> None:
    op.execute("UPDATE meta SET schema_version = 2")
