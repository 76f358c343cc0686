"""What attributes of every kind have: a name, a policy for missing values, and what values of a file mean."""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from schemas.spec.reading import MOST_VALUES, NO_VALUES, Recode, Texts
from schemas.spec.values import invisible, missing_policy
from schemas.spec.yaml import Strict

MOST_CATEGORIES = 100_000
_NAME = re.compile(r"[^\W\d][^\"'`\\;]{0,127}")  # a letter of any alphabet, or _
READING = ("missing_values", "recode", "format")  # keys that say how files write an attribute, left out where not used


class AttributeBase(Strict):
    name: str = Field(description="The column's name in the source and in the synthetic sets.")
    missing: Annotated[Literal["forbid", "category"], BeforeValidator(missing_policy)] = Field(
        default="forbid",
        description="A missing value fails validation (`forbid`), or is a category of its own (`category`); a list such as "
        '[-9, "NA"] says `category`, and which values mean missing.',
    )
    missing_values: Texts = Field(
        default=(),
        max_length=MOST_VALUES,
        description="Values that mean missing, besides empty ones: a list of texts or numbers.",
    )
    recode: Recode = Field(
        default=NO_VALUES,
        max_length=MOST_VALUES,
        description='What values of the file mean: {"1": male, "2": female}; null means missing. Others are read as they are.',
    )

    @model_validator(mode="before")
    @classmethod
    def _values_that_mean_missing(cls, asked: Any) -> Any:
        """`missing: [-9]` says two things: there is a category of missing values, and -9 is one of them."""
        if not isinstance(asked, dict) or not isinstance(asked.get("missing"), tuple | list):
            return asked
        if "missing_values" in asked:
            raise ValueError("missing lists values already; leave missing_values out")
        return asked | {"missing": "category", "missing_values": asked["missing"]}

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is read as it stands is written, and hashed, as before there were other ways."""
        return {name: value for name, value in plain(self).items() if name not in READING or value}

    def __hash__(self) -> int:
        """By all that can be hashed; what cannot, recode, is left to comparison."""
        return hash(tuple(getattr(self, name) for name in type(self).model_fields if name != "recode"))

    def _meanings(self) -> dict[str, str | None]:
        """What values of the file mean; None is missing. Each means one thing."""
        if both := [value for value in self.missing_values if value in self.recode]:
            raise ValueError(f"{self.name}: {both[0]!r} stands in recode and among the values that mean missing; keep one")
        meanings = self.recode | dict.fromkeys(self.missing_values)
        if self.missing == "forbid" and None in meanings.values():
            raise ValueError(f"{self.name}: values that mean missing need missing: category")
        return meanings

    def as_published(self) -> Self:
        """The attribute of synthetic records, which have nothing left to be read in another way."""
        plain = {name: type(self).model_fields[name].default for name in READING if name in type(self).model_fields}
        return self.model_copy(update=plain)

    @field_validator("name")
    @classmethod
    def _usable_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name) or name != name.strip() or invisible(name) is not None:
            raise ValueError(
                f"{name!r} cannot name an attribute: begin with a letter; no quotes, semicolons, line breaks or "
                "characters that cannot be seen"
            )
        return name

    @property
    def binned(self) -> bool:
        """Whether a category stands for a range of values."""
        return False

    @property
    @abstractmethod
    def present(self) -> int:
        """The number of categories, the missing one left out."""

    @property
    @abstractmethod
    def present_labels(self) -> tuple[str, ...]:
        """One readable label per category that is not the missing one."""

    @cached_property
    def size(self) -> int:
        """The number of categories, the missing one included."""
        return self.present + (self.missing == "category")

    @property
    def missing_code(self) -> int | None:
        return self.present if self.missing == "category" else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One readable label per category code."""
        return (*self.present_labels, *(("(missing)",) if self.missing == "category" else ()))
