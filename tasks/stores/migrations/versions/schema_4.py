"""The same table without a list of kinds: which there are is the program's to say, and `budget verify` reports any other.

Amounts stay the database's: only grants and charges have one, and no charge goes beyond the grants.
"""

from __future__ import annotations

import sqlalchemy as sql
from alembic.operations import Operations

revision, down_revision = "4", "3"

_SQLITE_TRIGGERS = (
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER only_append BEFORE INSERT ON entries"
    " WHEN NEW.seq <> (SELECT COALESCE(MAX(seq), 0) + 1 FROM entries)"
    " OR EXISTS (SELECT 1 FROM entries WHERE key = NEW.key OR hash = NEW.hash OR previous = NEW.previous)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER one_measure BEFORE INSERT ON entries"
    " WHEN EXISTS (SELECT 1 FROM entries WHERE population = NEW.population AND measure IS NOT NEW.measure)"
    " BEGIN SELECT RAISE(ABORT, 'a population has one measure'); END",
)


def upgrade(op: Operations) -> None:
    if op.get_context().dialect.name == "postgresql":
        op.drop_constraint("known_kind", "entries")
    else:
        _rebuild(op)
    op.execute("UPDATE meta SET schema_version = 4")


def _rebuild(op: Operations) -> None:
    """SQLite cannot drop a constraint: a second table takes the entries over and then the name, in this transaction."""
    texts = [sql.Column(name, sql.Text, nullable=False) for name in ("at", "actor", "kind")]
    numbers = [sql.Column(name, sql.Integer, nullable=False) for name in ("amount", "granted_after", "charged_after")]
    op.create_table(
        "entries_4",
        sql.Column("seq", sql.Integer, primary_key=True, autoincrement=False),
        *texts,
        sql.Column("population", sql.Text),
        sql.Column("release", sql.Text),
        sql.Column("key", sql.Text, nullable=False, unique=True),
        *numbers,
        sql.Column("body", sql.Text, nullable=False),
        sql.Column("previous", sql.Text, nullable=False, unique=True),
        sql.Column("hash", sql.Text, nullable=False, unique=True),
        sql.Column("measure", sql.Text),
        sql.CheckConstraint("charged_after <= granted_after", name="never_beyond_the_grant"),
        sql.CheckConstraint("seq >= 1 AND amount >= 0 AND charged_after >= 0", name="never_negative"),
        sql.CheckConstraint("(kind IN ('grant', 'charge')) = (amount > 0)", name="only_grants_and_charges_have_amounts"),
        sql.CheckConstraint("measure IS NULL OR (measure = 'zcdp' AND population IS NOT NULL)", name="known_measure"),
        sqlite_strict=True,
    )
    op.execute("INSERT INTO entries_4 SELECT * FROM entries ORDER BY seq")
    op.execute("DROP TABLE entries")
    op.execute("ALTER TABLE entries_4 RENAME TO entries")
    for column in ("population", "release"):
        op.create_index(f"ix_entries_{column}", "entries", [column])
    for statement in _SQLITE_TRIGGERS:
        op.execute(statement)
