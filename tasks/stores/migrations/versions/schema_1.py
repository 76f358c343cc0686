"""The table of entries, which the database itself keeps append-only and within the grants."""

from __future__ import annotations

import sqlalchemy as sql
from alembic.operations import Operations

revision, down_revision = "1", None

_BIG = sql.BigInteger().with_variant(sql.Integer, "sqlite")
_KINDS = ("grant", "charge", "seal", "approve", "reject", "abandon", "burn", "publish", "evaluate")

_SQLITE = (
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE deletes without firing delete triggers: an entry may only come after all others.
    "CREATE TRIGGER only_append BEFORE INSERT ON entries"
    " WHEN NEW.seq <> (SELECT COALESCE(MAX(seq), 0) + 1 FROM entries)"
    " OR EXISTS (SELECT 1 FROM entries WHERE key = NEW.key OR hash = NEW.hash OR previous = NEW.previous)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
_POSTGRESQL = (
    "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    "CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
)
_TRIGGERS = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    op.create_table("meta", sql.Column("schema_version", sql.Integer, primary_key=True), sqlite_strict=True)
    op.create_table(
        "entries",
        sql.Column("seq", _BIG, primary_key=True, autoincrement=False),
        sql.Column("at", sql.Text, nullable=False),
        sql.Column("actor", sql.Text, nullable=False),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("population", sql.Text, index=True),
        sql.Column("release", sql.Text, index=True),
        sql.Column("key", sql.Text, nullable=False, unique=True),
        sql.Column("amount", _BIG, nullable=False),
        sql.Column("granted_after", _BIG, nullable=False),
        sql.Column("charged_after", _BIG, nullable=False),
        sql.Column("body", sql.Text, nullable=False),
        sql.Column("previous", sql.Text, nullable=False, unique=True),
        sql.Column("hash", sql.Text, nullable=False, unique=True),
        sql.CheckConstraint("charged_after <= granted_after", name="never_beyond_the_grant"),
        sql.CheckConstraint("seq >= 1 AND amount >= 0 AND charged_after >= 0", name="never_negative"),
        sql.CheckConstraint("kind IN ('" + "', '".join(_KINDS) + "')", name="known_kind"),
        sql.CheckConstraint("(kind IN ('grant', 'charge')) = (amount > 0)", name="only_grants_and_charges_have_amounts"),
        sqlite_strict=True,
    )
    for statement in _TRIGGERS[op.get_context().dialect.name]:
        op.execute(statement)
    op.execute("INSERT INTO meta (schema_version) VALUES (1)")
