"""Attributes: the public categories or bins of one column, and what to do with missing and outside values."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from schemas.spec.attribute_base import MOST_CATEGORIES, READING, AttributeBase, must_be_categories
from schemas.spec.geography import Geography
from schemas.spec.moments import DateAttribute, TimeAttribute
from schemas.spec.numbers import Integer, Numeric
from schemas.spec.values import EPOCH, Label, Number, as_date
from schemas.spec.yaml import problem_at

__all__ = [
    "EPOCH",
    "MOST_CATEGORIES",
    "READING",
    "Attribute",
    "Categorical",
    "DateAttribute",
    "Integer",
    "Named",
    "Numeric",
    "Ordinal",
    "Ranged",
    "TimeAttribute",
    "as_date",
]


NO_SHARES: dict[str, float] = {}
ALL = 1e-6  # shares of all categories may miss 1 by so much: they are written in decimals


class _Named(AttributeBase):
    categories: tuple[Label, ...] = Field(
        min_length=1,
        max_length=MOST_CATEGORIES,
        description="Every label that may occur, as the data write it: a text, a whole number, `true` or `false`.",
    )

    expected: dict[Label, Number] = Field(
        default=NO_SHARES,
        max_length=MOST_CATEGORIES,
        description="Shares of the rows that some categories are publicly known, or thought, to have: {yes: 0.03}; the others "
        "divide the rest evenly. Never counted from the records. Guides what `steps plan` expects of regressions only.",
    )

    @field_validator("categories")
    @classmethod
    def _distinct(cls, categories: tuple[str, ...]) -> tuple[str, ...]:
        often = Counter(categories)
        if len(often) < len(categories):
            twice = next(c for c in categories if often[c] > 1)
            raise ValueError(f"category {twice!r} stands twice; keep one")
        if alike := next((c for c in categories if f"'{c}" in often), None):
            raise ValueError(f"categories {alike!r} and {chr(39) + alike!r} may look alike in a spreadsheet; rename one")
        return categories

    @model_validator(mode="after")
    def _shares_of_a_whole(self) -> Self:
        must_be_categories(self.expected, self.labels, self.name, "expected")
        for category, share in self.expected.items():
            if not 0 < share < 1:
                raise problem_at(("expected", category), f"a share of the rows lies between 0 and 1, not {share:g}")
        named, whole = len(self.expected), sum(self.expected.values())
        if named == self.size > 0 and abs(whole - 1) > ALL:
            raise problem_at(("expected",), f"{self.name}: the shares of all categories are together {whole:g}; they make 1")
        if named < self.size and whole > 1 - ALL:
            raise problem_at(("expected",), f"{self.name}: shares of {whole:g} leave nothing to the other categories")
        return self

    @cached_property
    def expected_shares(self) -> tuple[float, ...]:
        rest = (1 - sum(self.expected.values())) / max(self.size - len(self.expected), 1)
        return tuple(self.expected.get(label, rest) for label in self.labels)

    @property
    def present(self) -> int:
        return len(self.categories)

    @property
    def present_labels(self) -> tuple[str, ...]:
        return self.categories

    @cached_property
    def code_of(self) -> dict[str, int]:
        """The code of each category."""
        return {category: code for code, category in enumerate(self.categories)}

    @cached_property
    def code_of_text(self) -> dict[str, int]:
        """The code of each text that a file may hold."""
        read_as = self._read_as().items()
        return self.code_of | {text: self.present if meant is None else self.code_of[meant] for text, meant in read_as}

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for text, meant in self._read_as().items():
            if meant is not None and meant not in self.code_of:
                raise ValueError(f"{self.name}: recode makes {text!r} into {meant!r}, which is none of its categories")
            if meant is None and text in self.code_of:
                raise ValueError(f"{self.name}: {text!r} is a category and means missing; keep one")
        return self


class Categorical(_Named):
    kind: Literal["categorical"] = Field(description="Labels without an order.")
    geography: Geography | None = Field(
        default=None,
        description="In place of `categories`: those are the finest places of a public tree, {levels: [region, county, tract], "
        "table: places.csv}. With `missing: category` a place that is not known is one more place of every level.",
    )

    @model_validator(mode="before")
    @classmethod
    def _places_are_categories(cls, asked: Any) -> Any:
        """The finest places of a geography's table."""
        geography = asked.get("geography") if isinstance(asked, dict) else None
        table = geography.get("table") if isinstance(geography, dict) else getattr(geography, "table", None)
        if not isinstance(table, tuple | list) or "categories" in asked:
            return asked
        return asked | {"categories": tuple(row[-1] for row in table if isinstance(row, tuple | list) and row)}

    @model_validator(mode="after")
    def _is_its_finest_level(self) -> Self:
        if self.geography is None:
            return self
        if self.geography.levels[-1] != self.name:
            raise problem_at(("geography", "levels"), f"the last level is the attribute itself: {self.name!r}")
        if self.categories != self.geography.places:
            raise problem_at(("categories",), f"the places of {self.name} are those of its geography's table; leave this out")
        if self.missing == "category" and any(self.labels[-1] in row for row in self.geography.table):
            raise problem_at(("missing",), f"a place is called {self.labels[-1]!r}, as one not known; call it otherwise")
        return self


class Ordinal(_Named):
    kind: Literal["ordinal"] = Field(description="Labels in the order given.")


Named = Categorical | Ordinal
Ranged = Integer | Numeric | DateAttribute | TimeAttribute
Attribute = Annotated[Named | Ranged, Field(discriminator="kind")]
