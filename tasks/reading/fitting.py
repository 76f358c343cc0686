"""Whether a source can be one of a domain, from its file names, headers and footers alone: no record is read.

What is said here reaches terminals: it names the domain's columns, which are public, and never a column that was found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.expectations import accepted, wanted_columns
from schemas.spec.database import DatabaseSource
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from tasks.reading.sources import Source, open_source

SHOWN = 8


@dataclass(frozen=True)
class Look:
    """What would be read, and why it cannot be."""

    files: tuple[str, ...]  # none of a database
    title: str
    problems: tuple[str, ...]
    database: DatabaseSource | None = None
    beside: Look | None = None  # of the other of two linked tables

    @property
    def words(self) -> str:
        return f"{self._words} and {self.beside._words}" if self.beside else self._words

    @property
    def _words(self) -> str:
        """In one line: a file by its name, several by their number, a table by its name and a query as one."""
        if self.database is not None:
            return f"{f'the table {self.database.table}' if self.database.table else 'a query'} of {self.title}"
        files = self.files[: len(self.files) - len(self.beside.files)] if self.beside else self.files
        if len(files) == 1:
            return f"one {self.title} file, {Path(files[0]).name}"
        return f"{len(files):,} {self.title} files, {Path(files[0]).name} to {Path(files[-1]).name}"


def look_at_release(release: Release) -> Look:
    """At the one table of a release, or at both that are linked."""
    domain, tables = release.domain, release.domain.tables
    if tables is None:
        return look_at(release.source, domain)
    household, person = release.sources
    first, second = look_at(household, domain.of_table(tables.household)), look_at(person, domain.of_table(tables.person))
    named = [f"household: {problem}" for problem in first.problems] + [f"person: {problem}" for problem in second.problems]
    if tables.person.key is not None and tables.person.key not in open_source(person, domain.of_table(tables.person)).names:
        named.append(f"person: lacks the column {tables.person.key}")
    return replace(first, files=(*first.files, *second.files), problems=tuple(named), beside=second)


def look_at(path: str | DatabaseSource, domain: Domain) -> Look:
    source = open_source(path, domain)
    return Look(source.files, source.title, tuple(_problems(source, domain)), source.database)


def _problems(source: Source, domain: Domain) -> list[str]:
    wanted = wanted_columns(domain)
    lacking = [name for name in wanted if name not in source.names]
    others = len(set(source.names) - {*wanted, *domain.ignore})
    problems = [f"lacks the column{'s' * (len(lacking) > 1)} {_some(lacking)}"] if lacking else []
    if others:
        named = f"has {others:,} column{'s' * (others > 1)} that the domain does not name"
        problems.append(f"{named}; leave columns out by ignore: in dataset.yaml")
    if max(Counter(name.casefold() for name in source.names if name not in domain.ignore).values(), default=1) > 1:
        problems.append("has a column that stands twice (upper and lower case count as the same)")
    kinds = dict(source.columns)
    weights = {domain.weight.column: "numeric"} if domain.weight else {}
    for name, kind in zip(
        wanted,
        [*(a.kind for a in domain.attributes), *(weights.get(each, "person") for each in domain.own_columns)],
        strict=True,
    ):
        if name in kinds and kinds[name] not in accepted(kind):
            problems.append(f"{name} is stored as {kinds[name]}; {' or '.join(accepted(kind))} is wanted")
    return problems


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
