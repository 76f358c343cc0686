"""What attributes of every kind have: a name, a policy for missing values, and what values of a file mean."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from schemas.nearest import meant
from schemas.spec.described import WORDS, CategoryLabels, Text, Title, without_silence
from schemas.spec.reading import MOST_VALUES, NO_VALUES, Recode, Texts
from schemas.spec.values import missing_policy
from schemas.spec.yaml import Strict, problem_at
from schemas.visible import invisible

MOST_CATEGORIES = 100_000
_NAME = re.compile(r"[^\W\d][^\"'`\\;]{0,127}")  # a letter of any alphabet, or _
NO_LABELS: dict[str, str] = {}
SHAPES = ("at", "above", "within", "multiples_of", "geography")  # what is known of values beyond their bins, or silent
PLANNING = ("expected",)  # what guides the plan and nothing else, left out where not given
READING = ("missing_values", "recode", "format")  # keys that say how files write an attribute, left out where not used


def usable_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name != name.strip() or invisible(name) is not None:
        raise ValueError(
            f"{name!r} cannot name an attribute: begin with a letter; no quotes, semicolons, line breaks or "
            "characters that cannot be seen"
        )
    return name


AttributeName = Annotated[str, AfterValidator(usable_name)]


def must_be_categories(labels: Collection[str], known: Sequence[str], name: str, key: str = "labels") -> None:
    """What is said of categories is said of such as there are; `name` has them."""
    all_ = set(known)
    if unknown := [category for category in labels if category not in all_]:
        raise problem_at((key, unknown[0]), f"{name} has no category {unknown[0]!r}; {meant(unknown[0], known, 'it has')}")


class AttributeBase(Strict):
    name: AttributeName = Field(
        description="The column's name in the source and in the synthetic sets; none that draws have (`a × b`, `pair 1`, "
        "`person: a`)."
    )
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
    title: Title | None = Field(default=None, description="What the attribute is called on the page: Hours worked per week.")
    description: Text | None = Field(
        default=None, description="What it means, in a sentence or two: the question that was asked."
    )
    label_texts: CategoryLabels = Field(
        default=NO_LABELS,
        alias="labels",
        max_length=MOST_CATEGORIES,
        description='What categories mean, where their codes do not say it: {"1": employed, "2": unemployed}.',
    )
    source: Text | None = Field(
        default=None, description="Where its categories, bounds and bins are publicly known from: a questionnaire, an address."
    )
    why: Text | None = Field(default=None, description="The reason for its categories or bins.")

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
        said = {type(self).model_fields[name].alias or name: value for name, value in plain(self).items()}
        return without_silence(said, *READING, *SHAPES, *PLANNING, *WORDS)

    def __hash__(self) -> int:
        """By all that can be hashed; dictionaries are left to comparison."""
        return hash(tuple(value for name in type(self).model_fields if not isinstance(value := getattr(self, name), dict)))

    @model_validator(mode="after")
    def _labels_have_categories(self) -> Self:
        if self.label_texts:
            must_be_categories(self.label_texts, self.labels, self.name)
        return self

    def _read_as(self) -> dict[str, str | None]:
        """As what values of the file are read; None is missing. Each is one thing."""
        if both := [value for value in self.missing_values if value in self.recode]:
            raise ValueError(f"{self.name}: {both[0]!r} stands in recode and among the values that mean missing; keep one")
        read_as = self.recode | dict.fromkeys(self.missing_values)
        if self.missing == "forbid" and None in read_as.values():
            raise ValueError(f"{self.name}: values that mean missing need missing: category")
        return read_as

    def as_published(self) -> Self:
        """The attribute of synthetic records, which have nothing left to be read in another way."""
        plain = {name: type(self).model_fields[name].default for name in READING if name in type(self).model_fields}
        return self.model_copy(update=plain)

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

    @cached_property
    def expected_shares(self) -> tuple[float, ...]:
        """Of the rows, one per category code: even, where nothing else is said. Guides expectations only."""
        return (1 / self.size,) * self.size

    @property
    def meanings(self) -> tuple[str, ...]:
        """What each category code means by the labels that are given; empty where its category says it."""
        return tuple(self.label_texts.get(label, "") for label in self.labels)

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """One per category code: what it is called and, where that is said, what it means."""
        said = zip(self.labels, self.meanings, strict=True)
        return tuple(f"{label} · {meaning}" if meaning else label for label, meaning in said)
