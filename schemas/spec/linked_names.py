"""Names in linked tables: which ones published tables, their keys and the draws of a plan have taken already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from schemas.spec.attribute_base import usable_name
from schemas.spec.consistent import alike
from schemas.spec.geography import geography_of
from schemas.spec.linked import HouseholdTable, PersonRule, PersonTable, Tables
from schemas.spec.yaml import Keys, problem_at

TAKEN = {
    "household": "what a key of the published tables is called",
    "person": "what a key of the published tables is called",
    "rows_of": "the column by which published counts tell households from persons",
}
BEFORE = "person: "  # what is measured of members is named so
TWICE = (
    "stands in both tables, or is what the composition or the reference person is called (upper and lower case count as the "
    "same); rename one"
)


def must_be_free(tables: Tables, flat: Sequence[str]) -> None:
    """`flat` are the names of a member's row, and of what is derived."""
    for at, name in _written(tables):
        if alike(name) in TAKEN:
            raise problem_at(at, f"{name!r} is {TAKEN[alike(name)]}; rename the attribute")
        if alike(name).startswith(BEFORE):
            raise problem_at(at, f"{name!r} begins with {BEFORE!r}, as what is measured of persons does; rename the attribute")
    first: dict[str, str] = {}
    for name in flat:
        if alike(name) in first:
            raise problem_at(("person", "attributes"), f"{name!r} {TWICE}")
        first[alike(name)] = name
    weight = tables.household.weight
    keys = (tables.household.key, tables.person.column, tables.person.key or "")
    if weight is not None and alike(weight.column) in (*first, *map(alike, keys)):
        text = f"{weight.column!r} stands twice: weights are no attribute, nothing derived, in neither table, and no key"
        raise problem_at(("household", "weight", "column"), f"{text}; leave one of both out")


def must_lie_in_one_place(tables: Tables) -> None:
    """A household, with everybody in it, lies in one place: that is an attribute of its own, and only one."""
    placed = [("household", number) for number in _placed(tables.household)][1:]
    placed += [("person", number) for number in _placed(tables.person)]
    for which, number in placed:
        name = getattr(tables, which).attributes[number].name
        text = f"{name} has a geography; of linked tables one attribute of households has one: write its categories instead"
        raise problem_at((which, "attributes", number, "geography"), text)


def must_name_no_place(rule: PersonRule, tables: Tables) -> None:
    """Members are drawn given their household, and counted by places of the coarsest level alone."""
    compared = (part.strip() for part in re.split("<=|==|<", rule.always or ""))
    named = {*(rule.never or ()), *rule.when, *compared}
    if found := [level for level in places_in(tables) if level in named]:
        raise ValueError(f"it names {found[0]}, a place; rules of persons name none, those of households may")


def places_in(tables: Tables) -> tuple[str, ...]:
    """The levels of the place that households lie in, the finest last; none where there is no geography."""
    household = tables.household
    return tuple(level for number in _placed(household) for level in geography_of(household.attributes[number]).levels)


def _placed(table: HouseholdTable | PersonTable) -> list[int]:
    return [number for number, attribute in enumerate(table.attributes) if geography_of(attribute) is not None]


def must_count_kinds(names: Sequence[str]) -> None:
    """The number of members of a kind is an attribute, called by the kind."""
    for name in names:
        try:
            usable_name(name)
        except ValueError as error:
            raise problem_at(("person", "kinds"), f"members are counted by kind, and {error}; rename the category") from None


def _written(tables: Tables) -> Iterator[tuple[Keys, str]]:
    """Every name that an author gave, and where."""
    for which in ("household", "person"):
        table = getattr(tables, which)
        for key in ("attributes", "derived"):
            yield from (((which, key, number), each.name) for number, each in enumerate(getattr(table, key)))
    if tables.household.weight is not None:
        yield ("household", "weight", "column"), tables.household.weight.column
    at = ("household", "attributes")
    yield from (((*at, number, "geography"), level) for number in _placed(tables.household) for level in places_in(tables)[:-1])
