"""The domain: public knowledge about the data. Categories, bins and rules never come from records."""

from __future__ import annotations

import difflib
import math
import unicodedata
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from schemas.names import NAME
from schemas.spec import yaml
from schemas.spec.attributes import Attribute
from schemas.spec.derived import Derived, Following
from schemas.spec.described import WORDS, Licence, Text, Title, without_silence
from schemas.spec.public_tables import with_tables
from schemas.spec.reading import PLAIN_CSV, Csv
from schemas.spec.rules import Comparison, Never, Rule, codes_of_value, compared, comparison, must_not_circle, some_of
from schemas.spec.yaml import Strict, problem_at

NO_NAMES: dict[str, str] = {}


def plain_name(value: str) -> str:
    """A name that is safe as a file name, a database key and a Prefect tag."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise ValueError(f"{value!r} is not a name: use 1 to 64 of a–z, 0–9, _ and -, beginning with a letter or digit")
    return value


Name = Annotated[str, BeforeValidator(plain_name)]


class Unit(Strict):
    """Whose privacy: one person, or one of what `who` says, with at most `rows_per_person` rows, or with `exactly` as many."""

    who: Name = Field(default="person", description="Whom the guarantee protects, in one word: a person, a household, …")
    rows_per_person: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="At most so many rows belong to one person, or one of what `who` says; noise grows with it.",
    )
    column: str | None = Field(
        default=None,
        description="The column that says whose row it is. It is never released; without it the bound is your word.",
    )
    excess: Literal["forbid", "drop"] = Field(
        default="forbid", description="More rows than that fail validation (`forbid`), or are left out of the count (`drop`)."
    )
    exactly: bool = Field(
        default=False, description="Whether everybody has exactly `rows_per_person` rows, which is then checked."
    )

    @model_validator(mode="after")
    def _drop_needs_a_column(self) -> Self:
        if self.excess == "drop" and self.column is None:
            raise ValueError("excess: drop needs the column that says whose row it is")
        return self

    @model_validator(mode="after")
    def _exactly_is_checked(self) -> Self:
        if self.exactly and (self.column is None or self.excess == "drop"):
            raise ValueError(
                f"exactly: true refuses every {self.who} with more or fewer rows than rows_per_person: it needs the column "
                "that says whose row it is, and excess: forbid"
            )
        return self

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A domain without `exactly` is written, and hashed, as before there was such a key."""
        return {name: value for name, value in plain(self).items() if name != "exactly" or value}


class Domain(Strict):
    """dataset.yaml: what anybody may know about the data before looking at it."""

    name: Name = Field(description="What these data are called.")
    population: Name = Field(description="Whose budget a release spends: people, not files.")
    expected_rows: int | None = Field(
        default=None, ge=1, le=10**12, description="Public and approximate; never counted from the records. Guides planning."
    )
    unit: Unit = Field(default=Unit(), description="Whose privacy is protected.")
    attributes: tuple[Attribute, ...] = Field(
        min_length=1,
        max_length=1000,
        description="One per column of the source, in any order; it has no others but the unit's and those that are ignored.",
    )
    rules: tuple[Rule, ...] = Field(
        default=(),
        max_length=1000,
        description="Structural zeros: no noise is drawn for them, and no synthetic row breaks one.",
    )
    derived: tuple[Derived, ...] = Field(
        default=(),
        max_length=100,
        description="Attributes that follow from others by a public table: free of charge, added to synthetic rows at the end.",
    )
    ignore: tuple[str, ...] = Field(
        default=(), max_length=2000, description="Columns of the source that are not read, such as [interviewer, note]."
    )
    rename: dict[str, str] = Field(
        default=NO_NAMES, max_length=1000, description="What columns of the source are called here: {AGE_R: age}."
    )
    csv: Csv = Field(default=PLAIN_CSV, description="How CSV files are written, where not with commas, points and UTF-8.")
    title: Title | None = Field(default=None, description="What the data are called, for people: Structure of Earnings 2026.")
    description: Text | None = Field(default=None, description="What they are about: who, what, when.")
    publisher: Title | None = Field(default=None, description="Who publishes releases of them: the agency's name.")
    contact: Title | None = Field(default=None, description="Whom to ask about them: an e-mail address, or a page.")
    licence: Licence | None = Field(
        default=None, description="Under which releases may be used: an SPDX identifier such as CC-BY-4.0, or an address."
    )
    source: Text | None = Field(default=None, description="Where what stands in this file is publicly known from.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = self.names
        first: dict[str, str] = {}
        entries = [*(("attributes", place, name) for place, name in enumerate(names))]
        entries += [("derived", place, each.name) for place, each in enumerate(self.derived)]
        for key, place, name in entries:
            if first.setdefault(_alike(name), name) is not name:
                text = f"{first[_alike(name)]!r} stands twice (upper and lower case count as the same)"
                raise problem_at((key, place), text)
        if self.unit.column is not None and self.unit.column in names:
            raise ValueError(f"unit column {self.unit.column!r} says whose row it is: it cannot be released as an attribute")
        self._must_name_columns()
        assert self.followings is not None  # each follows from an attribute, for all of its categories
        for number, rule in enumerate(self.rules):
            try:
                self._zeros(rule)
            except ValueError as error:
                raise problem_at(("rules", number), str(error)) from None
        must_not_circle(self.comparisons, self.names)
        return self

    @cached_property
    def followings(self) -> tuple[Following, ...]:
        """Every derived attribute, and what it is for each category of the one from which it follows."""
        return tuple(self._following(number, each) for number, each in enumerate(self.derived))

    def _following(self, number: int, each: Derived) -> Following:
        try:
            if each.name == self.unit.column:
                raise ValueError(f"{each.name!r} says whose row it is: it cannot be released")
            return each.following(self.index(each.from_), self.attributes[self.index(each.from_)])
        except ValueError as error:
            raise problem_at(("derived", number), str(error)) from None

    def _must_name_columns(self) -> None:
        """Every column of the source means one thing."""
        for column, name in self.rename.items():
            if name not in self.names:
                near = difflib.get_close_matches(name, self.names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {some_of(self.names)}"
                raise problem_at(("rename", column), f"there is no attribute {name!r}; {hint}")
            if column in (*self.ignore, *self.names, self.unit.column):
                raise problem_at(("rename", column), f"{column!r} is ignored, an attribute or the unit's column already")
        if len(set(self.rename.values())) < len(self.rename):
            raise problem_at(("rename",), "two columns get the same name; keep one, and ignore the other")
        if wanted := next((name for name in self.ignore if name in (*self.names, self.unit.column)), None):
            raise problem_at(("ignore",), f"{wanted!r} is an attribute, or says whose row it is: it cannot be ignored")

    def as_published(self) -> Domain:
        """The domain of synthetic records: of nobody's, and with nothing left to be read in another way."""
        attributes = tuple(attribute.as_published() for attribute in self.attributes)
        ignored = tuple(each.name for each in self.derived)  # what follows is not counted in sets either
        plain = {"unit": Unit(), "ignore": ignored, "rename": {}, "csv": PLAIN_CSV, "attributes": attributes}
        return self.model_copy(update=plain)

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A domain that files write as it is, is written, and hashed, as before there were other ways."""
        return without_silence(plain(self), "derived", "ignore", "rename", "csv", *WORDS)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Categories per attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def all_cells(self) -> int:
        """Cells of the full cross-tabulation, those that break a rule included."""
        return math.prod(self.sizes)

    @cached_property
    def zeros(self) -> tuple[Never | Comparison, ...]:
        """Each rule by the codes of its attributes."""
        return tuple(self._zeros(rule) for rule in self.rules)

    @property
    def forbidden(self) -> tuple[dict[int, tuple[int, ...]], ...]:
        """Each `never` as {attribute index: category codes that may not all meet}."""
        return tuple(zero.codes for zero in self.zeros if isinstance(zero, Never))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each `always`."""
        return tuple(zero for zero in self.zeros if isinstance(zero, Comparison))

    def _zeros(self, rule: Rule) -> Never | Comparison:
        if rule.never is not None:
            return Never(self.codes(rule.never))
        assert rule.always is not None
        first, relation, second = compared(rule.always, self.names)
        return comparison(self.attributes, self.index(first), relation, self.index(second))

    def codes(self, said: dict[str, Any]) -> dict[int, tuple[int, ...]]:
        """{attribute index: category codes} of what is said of attributes, by name: values as a rule writes them."""
        places = {self.index(name): value for name, value in said.items()}
        return {place: codes_of_value(self.attributes[place], value) for place, value in places.items()}

    def index(self, name: str) -> int:
        if name not in self._places:
            raise ValueError(f"there is no attribute {name!r}; the domain has {', '.join(self.names)}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def _alike(name: str) -> str:
    """What a name has in common with all that a person, or a program, would take for it.

    >>> _alike("Straße") == _alike("STRASSE"), _alike("K") == _alike("\u212a")
    (True, True)
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def load_domain(path: Path | str) -> Domain:
    return yaml.validate(Domain, with_tables(yaml.read(path), Path(path).parent))
