"""What must hold between the parts of a domain: names that differ, columns that mean one thing, weights that fit the rest."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from schemas.counted import many
from schemas.nearest import meant
from schemas.spec.yaml import problem_at

MOST_DIGITS = 4300  # of a whole number in text, unless Python is told otherwise
Domain = Any  # which asks, and so cannot be imported here


def must_differ(domain: Domain) -> None:
    """Attributes, levels of places, what is derived, the unit's column and the one of weights have names of their own."""
    first: dict[str, str] = {}
    entries = [*(("attributes", place, name) for place, name in enumerate(domain.names))]
    entries += [("attributes", place, level) for place in domain.geographies for level in domain.coarser]
    entries += [("derived", place, each.name) for place, each in enumerate(domain.derived)]
    if len(domain.geographies) > 1:
        raise problem_at(("attributes", domain.geographies[1]), "two attributes have a geography; a record lies in one place")
    for key, place, name in entries:
        if first.setdefault(alike(name), name) is not name:
            text = f"{first[alike(name)]!r} stands twice (upper and lower case count as the same)"
            raise problem_at((key, place), text)
    column = domain.unit.column
    if column is not None and column in domain.names:
        raise ValueError(f"unit column {column!r} says whose row it is: it cannot be released as an attribute")
    if column in domain.coarser:
        raise ValueError(f"{column!r} says whose row it is: it cannot be a level of places")
    if domain.weight is not None and alike(domain.weight.column) in (*first, alike(column or "")):
        taken = "weights are no attribute, nothing derived and not whose row it is; leave one of both out"
        raise problem_at(("weight", "column"), f"{domain.weight.column!r} stands twice: {taken}")


def must_be_told(domain: Domain) -> None:
    """How many cells there are stands in every plan, and a longer number is read by neither Python nor its JSON."""
    if domain.all_cells >= 10**MOST_DIGITS:
        found, most = map(many, (domain.all_cells, 10**MOST_DIGITS))
        text = f"the attributes have {found} combinations of categories; at most {most} can be told"
        raise problem_at(("attributes",), f"{text}. Leave attributes out, or give them fewer bins or coarser categories")


def must_stand_in_tables(domain: Domain) -> None:
    """What each of linked tables says of its own columns."""
    for key in ("ignore", "rename") if domain.tables else ():
        if getattr(domain, key):
            raise problem_at((key,), f"{key} stands in each of the tables; leave it out here")


def must_overlap_others(domain: Domain) -> None:
    if domain.population in domain.overlaps or len(set(domain.overlaps)) < len(domain.overlaps):
        raise problem_at(("overlaps",), f"name each other population once, and not {domain.population!r} itself")


def must_weigh(domain: Domain) -> None:
    """What weights count follows from the rest, or it is said here why not; of linked tables, of all persons of a household."""
    if domain.tables is None:
        assert domain.weighing is None or domain.weighing.units_per_row
    elif domain.weight is not None:
        try:
            domain.weight.weighing(domain.expected_rows, domain.tables.person.at_most, by_household=True)
        except PydanticCustomError as error:
            path, text = (error.context or {})["path"], (error.context or {})["text"]
            raise problem_at(("tables", "household", *path), text) from None


def must_name_columns(domain: Domain) -> None:
    """Every column of the source means one thing."""
    for column, name in domain.rename.items():
        if name not in domain.names:
            raise problem_at(("rename", column), f"there is no attribute {name!r}; {meant(name, domain.names)}")
        if column in (*domain.ignore, *domain.names, *domain.own_columns):
            raise problem_at(("rename", column), f"{column!r} is ignored, an attribute or the unit's column already")
    if len(set(domain.rename.values())) < len(domain.rename):
        raise problem_at(("rename",), "two columns get the same name; keep one, and ignore the other")
    if wanted := next((name for name in domain.ignore if name in (*domain.names, *domain.own_columns)), None):
        raise problem_at(("ignore",), f"{wanted!r} is an attribute, or says whose row it is: it cannot be ignored")


def must_come_apart(domain: Domain) -> None:
    """Of linked tables every flat one that is made of them later can be made, or it is said here why not."""
    if domain.tables is None:
        return
    tables = {"household": domain.tables.household, "person": domain.tables.person}
    made: list[tuple[str, Callable[[], Domain]]] = [(name, partial(domain.of_table, each)) for name, each in tables.items()]
    made += [("person", lambda: domain.counted), ("person", lambda: domain.own)]
    for name, make in made:
        try:
            make()
        except ValidationError as error:
            first = error.errors()[0]
            within = (*first["loc"], *first.get("ctx", {}).get("path", ()))
            raise problem_at(("tables", name, *within), first["msg"].removeprefix("Value error, ")) from None


def alike(name: str) -> str:
    """What a name has in common with all that a person, or a program, would take for it.

    >>> alike("Straße") == alike("STRASSE"), alike("K") == alike("\u212a")
    (True, True)
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
