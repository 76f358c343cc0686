"""Attributes: the public categories or bins of one column, and what to do with missing and outside values."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from schemas.spec.attribute_base import MOST_CATEGORIES, READING, AttributeBase
from schemas.spec.moments import DateAttribute, TimeAttribute
from schemas.spec.numbers import Integer, Numeric
from schemas.spec.values import EPOCH, Label, as_date

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


class _Named(AttributeBase):
    categories: tuple[Label, ...] = Field(
        min_length=1,
        max_length=MOST_CATEGORIES,
        description="Every label that may occur, as the data write it: a text, a whole number, `true` or `false`.",
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
        meanings = self._meanings().items()
        return self.code_of | {text: self.present if meant is None else self.code_of[meant] for text, meant in meanings}

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for text, meant in self._meanings().items():
            if meant is not None and meant not in self.code_of:
                raise ValueError(f"{self.name}: recode makes {text!r} into {meant!r}, which is none of its categories")
            if meant is None and text in self.code_of:
                raise ValueError(f"{self.name}: {text!r} is a category and means missing; keep one")
        return self


class Categorical(_Named):
    kind: Literal["categorical"] = Field(description="Labels without an order.")


class Ordinal(_Named):
    kind: Literal["ordinal"] = Field(description="Labels in the order given.")


Named = Categorical | Ordinal
Ranged = Integer | Numeric | DateAttribute | TimeAttribute
Attribute = Annotated[Named | Ranged, Field(discriminator="kind")]
