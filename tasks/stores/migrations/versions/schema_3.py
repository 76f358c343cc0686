"""In which measure a population's amounts are; the database itself refuses to mix two of them.

Entries that are there stay as they are: without a measure, which means ε.
"""

from __future__ import annotations

from alembic.operations import Operations

revision, down_revision = "3", "2"

_COLUMN = (
    "ALTER TABLE entries ADD COLUMN measure TEXT CONSTRAINT known_measure"
    " CHECK (measure IS NULL OR (measure = 'zcdp' AND population IS NOT NULL))"
)
_SQLITE = (
    "CREATE TRIGGER one_measure BEFORE INSERT ON entries"
    " WHEN EXISTS (SELECT 1 FROM entries WHERE population = NEW.population AND measure IS NOT NEW.measure)"
    " BEGIN SELECT RAISE(ABORT, 'a population has one measure'); END",
)
_POSTGRESQL = (
    "CREATE FUNCTION refuse_mixture() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF EXISTS (SELECT 1 FROM entries WHERE population = NEW.population AND measure IS DISTINCT FROM NEW.measure) THEN"
    " RAISE EXCEPTION 'a population has one measure' USING ERRCODE = 'integrity_constraint_violation'; END IF;"
    " RETURN NEW; END $$",
    "CREATE TRIGGER one_measure BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION refuse_mixture()",
)
_TRIGGERS = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def upgrade(op: Operations) -> None:
    op.execute(_COLUMN)
    for statement in _TRIGGERS[op.get_context().dialect.name]:
        op.execute(statement)
    op.execute("UPDATE meta SET schema_version = 3")
