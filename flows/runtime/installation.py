"""Two sizes of installation: the base verifies and analyses bundles, the extra `pipeline` makes them."""

from __future__ import annotations

from importlib.util import find_spec

from schemas.errors import SpecError

IN_BASE = frozenset({"verify", "data", "fit", "table", "sample"})  # the commands that need no more than the base
PIPELINE = ("prefect", "great_expectations", "duckdb", "sqlalchemy", "alembic", "matplotlib")


def must_be_installed_for(command: str) -> None:
    """Refuses a command of the pipeline at the door, before it leaves anything behind, where only the base is installed."""
    if command not in IN_BASE and any(find_spec(name) is None for name in PIPELINE):
        raise SpecError(f'steps {command} needs the pipeline; pip install "steps-release[pipeline]"')
