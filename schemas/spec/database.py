"""A source in a database: where it is, and which table or query holds the records. No password is ever part of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from schemas.spec.yaml import Strict

FILES: Final = {"sqlite": "SQLite", "duckdb": "DuckDB"}  # databases that are one file
TITLES: Final = {"postgresql": "PostgreSQL", **FILES}
FORMS = "postgresql://host:5432/database, sqlite:///path.db or duckdb:///path.duckdb"
# What an address may add. None of it is a secret, or leads to another server than the one that the address names.
PARAMETERS = ("connect_timeout", "sslmode", "sslrootcert", "target_session_attrs")
WITHOUT_PASSWORD = (
    "the address holds a password, which would be kept with the spec; take it out (and change it, if others have seen the "
    "file). It is read from the environment (PGPASSWORD) or from ~/.pgpass"
)
_LONGEST = 100_000  # characters of a query
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):/", re.IGNORECASE)


class DatabaseSource(Strict):
    """Records in a database: the rows of a table, or of one query."""

    url: str = Field(
        description=f"The address: {FORMS}; after three slashes a path starts at the folder of this file, after four at the "
        "root. May hold a period. Never a password: PGUSER, PGPASSWORD and the like, or ~/.pgpass, say who reads."
    )
    table: str | None = Field(
        default=None, description="The table or view, written as it is stored: people, or survey.people. May hold a period."
    )
    query: str | None = Field(
        default=None,
        max_length=_LONGEST,
        description="In place of `table`: one SELECT. It is run once to validate and once to count, and changes nothing.",
    )

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        must_be_address(url)
        return url

    @field_validator("table", "query")
    @classmethod
    def _not_empty(cls, asked: str | None) -> str | None:
        if asked is not None and (not asked.strip() or "\0" in asked):
            raise ValueError("is empty, or holds a NUL character; write it out, or remove the key")
        return asked

    @field_validator("table")
    @classmethod
    def _a_name(cls, table: str | None) -> str | None:
        if table is not None and not all(table.split(".")):
            raise ValueError("a table is written people, or survey.people with its schema")
        return table

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.table is None) == (self.query is None):
            found = "neither" if self.table is None else "both"
            raise ValueError(f"a source in a database has a table or a query; found {found}. Keep one of them")
        return self

    def __str__(self) -> str:
        return f"{self.url} ({'a query' if self.table is None else f'table {self.table}'})"

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def title(self) -> str:
        return TITLES[self.scheme]

    @property
    def path(self) -> str | None:
        """Of a database that is one file."""
        return self.url.partition(":///")[2] if self.scheme in FILES else None

    @property
    def sql(self) -> str:
        """The rows that are asked for, as one SELECT."""
        if self.query is not None:
            return self.query.rstrip().rstrip(";")
        assert self.table is not None
        return "SELECT * FROM " + ".".join('"' + part.replace('"', '""') + '"' for part in self.table.split("."))

    def at(self, folder: str) -> DatabaseSource:
        """The same, its path made whole from the folder of release.yaml."""
        if self.path is None:
            return self
        return self.model_copy(update={"url": f"{self.scheme}:///{Path(folder).absolute() / self.path}"})

    def filled(self, fill: Any) -> DatabaseSource:
        """The same with its period filled in."""
        return self.model_copy(update={name: fill(part) for name, part in self.texts.items()})

    @property
    def texts(self) -> dict[str, str]:
        """Everything that may hold a period."""
        return {name: part for name in ("url", "table", "query") if (part := getattr(self, name)) is not None}


def is_address(text: str) -> bool:
    """Whether a text is meant as the address of a database, not as a path.

    >>> is_address("postgresql://host/db"), is_address("data/2026/*.parquet")
    (True, False)
    """
    found = _SCHEME.match(text)
    return found is not None and "://" in text


def must_be_address(url: str) -> None:
    """Refuses what is no address, and one with a password; never repeats what was found, which may hold one.

    >>> must_be_address("postgresql://reader:secret@host/db")
    Traceback (most recent call last):
    ...
    ValueError: the address holds a password, which would be kept with the spec; take it out (and change it, if others have \
seen the file). It is read from the environment (PGPASSWORD) or from ~/.pgpass
    """
    if re.search(r"://[^/]*:[^/]*@", url) or "password" in unquote(url.partition("?")[2]).casefold():
        raise ValueError(WITHOUT_PASSWORD)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"is no address; write {FORMS}") from None
    if parts.scheme not in TITLES or not url.startswith(f"{parts.scheme}://") or "\0" in url or "#" in url:
        raise ValueError(f"is no address of a database that can be read; write {FORMS}")
    if parts.scheme in FILES:
        if parts.netloc or "?" in url or not parts.path.strip("/"):
            raise ValueError(f"names no file; write {parts.scheme}:///path, without anything after it")
    else:
        _must_be_server(parts.path, parts.netloc, parts.query, port)


def _must_be_server(path: str, place: str, query: str, port: int | None) -> None:
    if not path.strip("/") or "/" in path.strip("/"):
        raise ValueError("names no database; write postgresql://host:5432/database")
    if "," in place or port == 0:
        raise ValueError("names more than one server, or none; write postgresql://host:5432/database")
    unknown = [name for name, _ in parse_qsl(query, keep_blank_values=True) if name not in PARAMETERS]
    if unknown or (query and not parse_qsl(query)):
        raise ValueError(f"has settings after the question mark that are not used here; there may be {', '.join(PARAMETERS)}")


def server_of(url: str) -> tuple[str, int | None, str]:
    """Host, port and database of a server's address: what it leads to, whoever reads there.

    >>> server_of("postgresql://reader@DB.example:5432/payroll?sslmode=require")
    ('db.example', 5432, 'payroll')
    """
    parts = urlsplit(url)
    return unquote(parts.hostname or ""), parts.port, unquote(parts.path.strip("/"))


def _which(value: Any) -> str:
    if isinstance(value, LinkedSources) or isinstance(value, dict) and value.keys() & LinkedSources.model_fields.keys():
        return "linked tables"
    return "a database" if isinstance(value, dict | DatabaseSource) else "files"


OneSource = Annotated[
    Annotated[str, Tag("files")] | Annotated[DatabaseSource, Tag("a database")],
    Discriminator(_which),
]


class LinkedSources(Strict):
    """Of a dataset of linked tables: where each of them lies."""

    household: OneSource = Field(description="One row per household: files, or a table or query of a database.")
    person: OneSource = Field(description="One row per person, with the key of its household.")

    def each(self, changed: Callable[[str | DatabaseSource], str | DatabaseSource]) -> LinkedSources:
        return LinkedSources(household=changed(self.household), person=changed(self.person))

    @property
    def both(self) -> tuple[str | DatabaseSource, str | DatabaseSource]:
        return self.household, self.person

    def __str__(self) -> str:
        return f"{self.household} and {self.person}"


AnySource = Annotated[
    Annotated[str, Tag("files")]
    | Annotated[DatabaseSource, Tag("a database")]
    | Annotated[LinkedSources, Tag("linked tables")],
    Discriminator(_which),
]
