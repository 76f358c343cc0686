"""Linked tables of a dataset: households, and the persons in them, as their author writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.nearest import meant
from schemas.spec.attributes import Attribute, Named
from schemas.spec.derived import Derived, Following, followings_of
from schemas.spec.described import without_silence
from schemas.spec.reading import PLAIN_CSV, Csv
from schemas.spec.rules import Rule, spoken
from schemas.spec.values import Label
from schemas.spec.weights import Weight
from schemas.spec.yaml import Strict, problem_at

NO_NAMES: dict[str, str] = {}
NO_BOUNDS: dict[str, int] = {}
MOST_PERSONS = 100  # in one household


class _Table(Strict):
    attributes: tuple[Attribute, ...] = Field(
        min_length=1, max_length=1000, description="One per column of its source, in any order, as in a dataset of one table."
    )
    derived: tuple[Derived, ...] = Field(
        default=(), max_length=100, description="What follows from its attributes, as in a dataset of one table."
    )
    ignore: tuple[str, ...] = Field(default=(), max_length=2000, description="Columns of its source that are not read.")
    rename: dict[str, str] = Field(default=NO_NAMES, max_length=1000, description="What columns of its source are called here.")
    csv: Csv = Field(default=PLAIN_CSV, description="How its CSV files are written.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def followings(self) -> tuple[Following, ...]:
        """Each with what it is for every category of the attribute from which it follows."""
        return followings_of(self.derived, self.attributes)

    @model_validator(mode="after")
    def _derived_follow(self) -> Self:
        assert self.followings is not None  # or one says why not
        return self

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        silent = ("derived", "ignore", "rename", "csv", "key", "kinds", "most", "expected_rows", "rules", "weight")
        return without_silence(plain(self), *silent)


class HouseholdTable(_Table):
    """One row per household."""

    key: str = Field(description="The column that tells households apart. It is never released.")
    weight: Weight | None = Field(
        default=None,
        description="The column of survey weights, where households are a sample: `total` is of households, and every person "
        "has the weight of the household.",
    )
    rules: tuple[Rule, ...] = Field(
        default=(), max_length=1000, description="Structural zeros among the household's attributes, `n_…` and `reference_…`."
    )


class PersonRule(Rule):
    """A rule of persons; a comparison may hold for some of them only."""

    when: dict[str, Any] = Field(
        default={},
        description="For whom a comparison holds: {relation: child}, values as in `never`; for everybody without it.",
    )

    @model_validator(mode="after")
    def _compares_if_it_has_a_condition(self) -> Self:
        if self.when and self.always is None:
            raise ValueError("when says for whom a comparison holds (always: …); put its attributes into never instead")
        return self

    @property
    def words(self) -> str:
        """The rule as people read it, with whom it is about."""
        about = " and ".join(spoken(name, value) for name, value in self.when.items())
        return f"{super().words} where {about}" if about else super().words

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_silence(plain(self), "never", "always", "why", "when")


def one_category(reference: dict[str, str]) -> dict[str, str]:
    if len(reference) != 1:
        raise ValueError("reference names one attribute and its category, such as {relation: reference}")
    return reference


class PersonTable(_Table):
    """One row per person, each of one household; one of them is the household's reference person."""

    parent: Literal["household"] = Field(description="The table that a person's row belongs to.")
    column: str = Field(description="The column that holds the key of the person's household. It is never released.")
    key: str | None = Field(
        default=None,
        description="The column that tells persons apart: with it, nobody stands twice. It is never released.",
    )
    at_most: int = Field(
        ge=2, le=MOST_PERSONS, description="At most so many persons live in one household; noise grows with it."
    )
    reference: Annotated[dict[str, Label], AfterValidator(one_category)] = Field(
        description="How the reference person is known, of which every household has exactly one: {relation: reference}."
    )
    kinds: str | None = Field(
        default=None,
        description="An attribute whose categories say what kind of member somebody is, such as `relation`: households are "
        "then released with the number of other members of each kind (`n_child`), the last kind being the rest.",
    )
    most: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default=NO_BOUNDS,
        description="At most so many other members of a kind, where fewer than `at_most` allows: {spouse: 1}.",
    )
    expected_rows: int | None = Field(
        default=None, ge=1, le=10**12, description="Persons, public and approximate; never counted. Guides planning."
    )
    rules: tuple[PersonRule, ...] = Field(
        default=(),
        max_length=1000,
        description="Structural zeros of every person; those that name `reference_…` or the household's attributes, of "
        "other members.",
    )

    @property
    def reference_name(self) -> str:
        return next(iter(self.reference))

    @property
    def reference_label(self) -> str:
        return self.reference[self.reference_name]

    def attribute(self, name: str) -> Attribute:
        return self.attributes[self.names.index(name)]

    @property
    def members(self) -> int:
        """Other members of a household, at most."""
        return self.at_most - 1

    @property
    def listed_kinds(self) -> tuple[str, ...]:
        """The categories of other members, the last one being the rest."""
        if self.kinds is None:
            return ()
        own = self.reference_label if self.kinds == self.reference_name else None
        return tuple(label for label in self.attribute(self.kinds).labels if label != own)

    def most_of(self, kind: str) -> int:
        return min(self.most.get(kind, self.members), self.members)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        named = self._named("reference", self.reference_name)
        if self.reference_label not in named.categories:
            hint = meant(self.reference_label, named.categories, "it has")
            raise problem_at(("reference",), f"{named.name} has no category {self.reference_label!r}; {hint}")
        if len(named.categories) < 2:
            raise problem_at(("reference",), f"{named.name} needs a category for members who are not the reference person")
        if self.kinds is not None:
            self._named("kinds", self.kinds)
        for kind in self.most:
            if kind not in self.listed_kinds:
                hint = meant(kind, self.listed_kinds or ("none",))
                raise problem_at(("most",), f"there is no kind {kind!r} of other members; {hint}")
        for place, column in (("column", self.column), ("key", self.key)):
            if column in self.names:
                raise problem_at((place,), f"{column!r} says who somebody is: it cannot be released as an attribute")
        if self.key == self.column:
            raise problem_at(("key",), "key tells persons apart and column households; name two columns")
        return self

    def _named(self, key: str, name: str) -> Named:
        if name not in self.names:
            raise problem_at((key,), f"there is no attribute {name!r}; {meant(name, self.names)}")
        attribute = self.attribute(name)
        if not isinstance(attribute, Named):
            raise problem_at((key,), f"{name} is {attribute.kind}; it needs named categories")
        return attribute


NO_KEY = (
    "persons have no key: somebody who stands in two households, or twice in one, cannot be seen without it; name the column "
    "that tells persons apart as key of tables.person, if there is one"
)


class Tables(Strict):
    """Two linked tables: households, and the persons in them."""

    household: HouseholdTable = Field(description="One row per household.")
    person: PersonTable = Field(description="One row per person, each of one household.")

    @property
    def remarks(self) -> tuple[str, ...]:
        return () if self.person.key else (NO_KEY,)
