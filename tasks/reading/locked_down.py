"""A DuckDB that may open the files it is told of and nothing else: no extension, no network, bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from schemas.spec.domain import Domain
from steps_engine.accounting.effort import LEAST_COUNTING, counting_bytes

MEMORY = "512MB"  # more where there is more to count: `memory_for`
THREADS = 2
ONE_THREAD = {"threads": "1"}
LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "threads": THREADS,
    "preserve_insertion_order": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}


def memory_for(domain: Domain) -> dict[str, str]:
    """What counting a domain's records may hold, where that is more than what reading any source may."""
    wanted = counting_bytes(domain)
    return {"memory_limit": f"{wanted}B"} if wanted > LEAST_COUNTING else {}


def lock(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """From here on it opens these files and those of its spill folder; nothing in a query can change that."""
    connection.execute(f"SET allowed_paths = [{', '.join(map(literal, files))}]")
    connection.execute("SET enable_progress_bar = false")  # on by default where Python looks interactive; tells sizes
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def literal(text: str) -> str:
    """A text as an SQL literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
