"""Names in linked tables: which ones published tables, their keys and the draws of a plan have taken already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schemas.spec.attribute_base import usable_name
from schemas.spec.consistent import alike
from schemas.spec.linked import Tables
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


def must_have_no_places(tables: Tables) -> None:
    """Places within places are counted of one table only."""
    for which in ("household", "person"):
        for number, attribute in enumerate(getattr(tables, which).attributes):
            if getattr(attribute, "geography", None) is not None:
                text = f"{attribute.name} has a geography, and linked tables have none yet; write its categories instead"
                raise problem_at((which, "attributes", number, "geography"), text)


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
