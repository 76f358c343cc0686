"""Places within places: an attribute whose categories are the finest places of a public tree, and the levels above them.

The table has a line per finest place, its levels coarsest first. Every place lies in one place of the level above; places of
one level have names of their own. Some may be empty of people: that they exist is public, and how many live there is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from schemas.spec.attribute_base import MOST_CATEGORIES, AttributeName
from schemas.spec.values import Label
from schemas.spec.yaml import Strict, problem_at

MOST_LEVELS = 6
_PART = re.compile(r"([0-9]{1,9})\s*/\s*([1-9][0-9]{0,8})")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
Row = tuple[str, ...]  # a finest place and the places that it lies in, coarsest first


def _rows(table: Any) -> Any:
    if not isinstance(table, tuple | list):
        raise ValueError(f"is a CSV file beside this one with a column for each level and a line for each place, not {table!r}")
    return tuple(tuple(row) if isinstance(row, tuple | list) else row for row in table)


def _share(share: Any) -> Any:
    """As it is written in a spec: 1/4, 0.25 or 25%.

    >>> _share("1/4"), _share("25%"), _share(Decimal("0.25"))
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 4))
    """
    if isinstance(share, str) and (part := _PART.fullmatch(share)):
        return Fraction(int(part[1]), int(part[2]))
    if isinstance(share, str) and (percent := _PERCENT.fullmatch(share)):
        return Fraction(percent[1]) / 100
    if isinstance(share, bool) or not isinstance(share, int | Decimal | Fraction):
        raise ValueError(f"is a share such as 1/4, 0.25 or 25%, not {share!r}")
    return Fraction(share)


Share = Annotated[Fraction, BeforeValidator(_share), PlainSerializer(str, return_type=str)]


class Geography(Strict):
    """A tree of public places."""

    levels: tuple[AttributeName, ...] = Field(
        min_length=2,
        max_length=MOST_LEVELS,
        description="Coarsest first, such as [region, county, tract]; the last one is the attribute's own name, the others are "
        "columns of synthetic sets too. In the source they are not read: `ignore` them there.",
    )
    table: Annotated[tuple[tuple[Label, ...], ...], BeforeValidator(_rows)] = Field(
        min_length=1,
        max_length=MOST_CATEGORIES,
        description="A CSV file with a column for each level and a line for each finest place, those without people included. "
        "It is public: a bundle holds it.",
    )
    shares: Literal["equal", "least_error"] | dict[str, Share] = Field(
        default="least_error",
        description="How the part of the budget that places get is divided among their levels: `least_error`, so that fewest "
        "rows are misplaced over all levels, with more for those that `analyses` name; `equal`; or a number for each, such as "
        "{region: 1/4, county: 1/4, tract: 1/2}. Only `decomposition: places` and `households` measure levels.",
    )

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        if len(set(self.levels)) < len(self.levels):
            raise problem_at(("levels",), "a level stands twice; each has a name of its own")
        for place, row in enumerate(self.table):
            if len(row) != len(self.levels):
                raise problem_at(("table", place), f"has {len(row)} places, and there are {len(self.levels)} levels")
        if problem := tree_problem(self.levels, self.table):
            raise problem_at(("table",), problem[1])
        if self.table != in_tree_order(self.table):
            raise problem_at(("table",), "places that lie in one place stand together")
        if isinstance(self.shares, dict):
            self._must_be_shares(self.shares)
        return self

    def _must_be_shares(self, shares: dict[str, Fraction]) -> None:
        if set(shares) != set(self.levels) or not all(share > 0 for share in shares.values()) or sum(shares.values()) != 1:
            said = ", ".join(f"{level}: 1/{len(self.levels)}" for level in self.levels)
            raise problem_at(("shares",), f"give every level a share above 0, which sum to 1: {{{said}}}")

    def __hash__(self) -> int:
        return hash((self.levels, self.table))

    @property
    def places(self) -> tuple[str, ...]:
        """The finest ones: the attribute's categories."""
        return tuple(row[-1] for row in self.table)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The places of every level, coarsest first, in the order of the tree."""
        return tuple(tuple(dict.fromkeys(row[level] for row in self.table)) for level in range(len(self.levels)))

    @cached_property
    def ancestors(self) -> tuple[tuple[int, ...], ...]:
        """Of every level, the number of the place in which each finest place lies; it never falls."""
        number = [{label: code for code, label in enumerate(labels)} for labels in self.labels]
        return tuple(tuple(number[level][row[level]] for row in self.table) for level in range(len(self.levels)))


def geography_of(attribute: Any) -> Any:
    """That of an attribute; None where its categories are no places within places."""
    return getattr(attribute, "geography", None)


def tree_problem(levels: Sequence[str], table: Sequence[Row]) -> tuple[int, str] | None:
    """The first row that makes the table no tree, and why."""
    above: list[dict[str, tuple[int, str]]] = [{} for _ in levels]
    for number, row in enumerate(table):
        for level in range(1, len(levels)):
            first, parent = above[level].setdefault(row[level], (number, row[level - 1]))
            if parent != row[level - 1]:
                return number, (
                    f"{levels[level]} {row[level]!r} lies in {levels[level - 1]} {parent!r} and in {row[level - 1]!r}; every "
                    "place has one parent. Give two places of one name names of their own, such as their codes"
                )
            if level == len(levels) - 1 and first != number:
                return number, f"{levels[level]} {row[level]!r} stands twice; keep one"
    return None


def in_tree_order(table: Sequence[Row]) -> tuple[Row, ...]:
    """Places that lie in one place side by side, in the order in which each was first named."""
    first: list[dict[str, int]] = [{} for _ in table[0]]
    for row in table:
        for seen, label in zip(first, row, strict=True):
            seen.setdefault(label, len(seen))
    return tuple(sorted(table, key=lambda row: tuple(seen[label] for seen, label in zip(first, row, strict=True))))
