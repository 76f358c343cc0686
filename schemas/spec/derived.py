"""Attributes that follow from others by a public table: not counted, free of charge, added to synthetic rows at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.nearest import meant
from schemas.spec.attribute_base import MOST_CATEGORIES, NO_LABELS, AttributeName, must_be_categories
from schemas.spec.attributes import Attribute, Categorical
from schemas.spec.described import WORDS, CategoryLabels, Text, Title, without_silence
from schemas.spec.values import Label
from schemas.spec.yaml import Strict, problem_at


def _mapping(by: Any) -> Any:
    if not isinstance(by, dict):
        raise ValueError(f"is a CSV file of two columns beside this one, or {{category: derived category}}; not {by!r}")
    return by


class Derived(Strict):
    """An attribute that follows from another one."""

    name: AttributeName = Field(description="Its column in synthetic sets. In the source it is not read: `ignore` it there.")
    from_: str = Field(alias="from", description="The attribute from which it follows.")
    by: Annotated[dict[str, Label], BeforeValidator(_mapping)] = Field(
        min_length=1,
        max_length=MOST_CATEGORIES,
        description="A CSV file with a header and two columns, the attribute's category and what follows from it, or {Kent: "
        "South, Fife: Scotland}. It is public: a bundle holds it. Without a line for (missing), nothing follows from nothing.",
    )
    title: Title | None = Field(default=None, description="What it is called on the page.")
    description: Text | None = Field(default=None, description="What it means, in a sentence or two.")
    label_texts: CategoryLabels = Field(
        default=NO_LABELS, alias="labels", max_length=MOST_CATEGORIES, description="What its categories mean."
    )
    source: Text | None = Field(default=None, description="Where the table is publicly known from.")
    why: Text | None = Field(default=None, description="The reason for it.")

    @model_validator(mode="after")
    def _labels_have_categories(self) -> Self:
        must_be_categories(self.label_texts, list(dict.fromkeys(self.by.values())), self.name)
        return self

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said = {type(self).model_fields[name].alias or name: value for name, value in plain(self).items()}
        return without_silence(said, *WORDS)

    def __hash__(self) -> int:
        return hash((self.name, self.from_))

    def following(self, place: int, attribute: Attribute) -> Following:
        """What follows from each category of the attribute; every one but the missing one needs a line."""
        known = set(attribute.labels)
        if unknown := next((category for category in self.by if category not in known), None):
            raise ValueError(f"{attribute.name} has no category {unknown!r}; {meant(unknown, attribute.labels, 'it has')}")
        if lacking := [label for label in attribute.present_labels if label not in self.by]:
            more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
            raise ValueError(f"nothing is said of {lacking[0]!r} of {attribute.name}{more}; add it")
        categories = tuple(dict.fromkeys(self.by[label] for label in attribute.labels if label in self.by))
        number = {category: code for code, category in enumerate(categories)}
        codes = tuple(number[self.by[label]] if label in self.by else None for label in attribute.labels)
        return Following(self, place, categories, codes)


@dataclass(frozen=True)
class Following:
    """A derived attribute beside the one from which it follows: its categories, and one of them per code of the other."""

    derived: Derived
    place: int
    categories: tuple[str, ...]
    codes: tuple[int | None, ...]  # None: nothing follows

    @cached_property
    def attribute(self) -> Categorical:
        """As an attribute of its own; missing where nothing follows."""
        return Categorical.model_construct(
            name=self.derived.name,
            kind="categorical",
            categories=self.categories,
            missing="category" if None in self.codes else "forbid",
        )

    @cached_property
    def filled(self) -> tuple[int, ...]:
        """As codes of that attribute."""
        return tuple(len(self.categories) if code is None else code for code in self.codes)


def followings_of(
    derived: Sequence[Derived], attributes: Sequence[Attribute], column: str | None = None
) -> tuple[Following, ...]:
    """Each with what it is for every category of the attribute from which it follows; `column` says whose row it is."""
    names, found = [attribute.name for attribute in attributes], []
    for number, each in enumerate(derived):
        try:
            if each.name == column:
                raise ValueError(f"{each.name!r} says whose row it is: it cannot be released")
            if each.from_ not in names:
                raise ValueError(f"there is no attribute {each.from_!r}; {meant(each.from_, names)}")
            place = names.index(each.from_)
            found.append(each.following(place, attributes[place]))
        except ValueError as error:
            raise problem_at(("derived", number), str(error)) from None
    return tuple(found)


def levels_of(attribute: Attribute, place: int) -> tuple[Following, ...]:
    """The coarser levels of an attribute's geography, as attributes that follow from it."""
    geography = getattr(attribute, "geography", None)
    if geography is None:
        return ()
    said = (
        (level, dict(zip(geography.places, (row[k] for row in geography.table), strict=True)))
        for k, level in enumerate(geography.levels[:-1])
    )
    derived = [Derived.model_validate({"name": level, "from": attribute.name, "by": by}) for level, by in said]
    nowhere: tuple[None, ...] = (None,) * (attribute.size - attribute.present)  # a place that is not known
    codes = [(*ancestors, *nowhere) for ancestors in geography.ancestors]
    return tuple(map(Following, derived, (place,) * len(derived), geography.labels, codes))
