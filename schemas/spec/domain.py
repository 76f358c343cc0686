"""The domain: public knowledge about the data. Categories, bins and rules never come from records."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from schemas.nearest import meant
from schemas.spec import yaml
from schemas.spec.attributes import Attribute
from schemas.spec.consistent import (
    must_be_told,
    must_come_apart,
    must_differ,
    must_name_columns,
    must_overlap_others,
    must_stand_in_tables,
    must_weigh,
)
from schemas.spec.derived import Derived, Following, followings_of, levels_of
from schemas.spec.described import WORDS, Licence, Text, Title, without_silence
from schemas.spec.flattened import (
    FOLLOWS,
    STANDS_IN_TABLES,
    member_rules,
    must_flatten,
    own_attributes,
    own_rules,
)
from schemas.spec.linked import NO_NAMES, HouseholdTable, PersonTable, Tables
from schemas.spec.placed import Placed
from schemas.spec.public_tables import with_tables
from schemas.spec.reading import PLAIN_CSV, Csv
from schemas.spec.registry import RegistryFacts
from schemas.spec.rules import Comparison, Never, Rule, codes_of_value, compared, comparison, must_not_circle
from schemas.spec.unit import Name as Name
from schemas.spec.unit import Unit as Unit
from schemas.spec.unit import plain_name as plain_name
from schemas.spec.weights import Weighed, Weight
from schemas.spec.within import Inhabited
from schemas.spec.yaml import Strict, problem_at


class Domain(Weighed, Placed, Inhabited, Strict):
    """dataset.yaml: what anybody may know about the data before looking at it."""

    name: Name = Field(description="What these data are called.")
    population: Name = Field(description="Whose budget a release spends: people, not files.")
    overlaps: tuple[Name, ...] = Field(
        default=(),
        max_length=1000,
        description="Other populations with some of the same people, such as earlier waves. Once charged it stays in the "
        "ledger; a lifetime cap (`steps budget cap`) bounds what somebody in all of them may lose.",
    )
    expected_rows: int | None = Field(
        default=None, ge=1, le=10**12, description="Public and approximate; never counted from the records. Guides planning."
    )
    tables: Tables | None = Field(
        default=None,
        description="In place of `attributes`, `rules` and `unit`: households and the persons in them, two linked tables. Each "
        "household is protected with everybody in it; `expected_rows` are households.",
    )
    unit: Unit = Field(default=Unit(), validate_default=True, description="Whose privacy is protected.")
    weight: Weight | None = Field(
        default=None,
        validate_default=True,
        description="The column of survey weights, where records are a sample: counts are then of the population. Of linked "
        "tables it is one of the households, and stands in `tables.household`.",
    )
    attributes: tuple[Attribute, ...] = Field(
        default=(),
        validate_default=True,
        max_length=5000,
        description="One per column of the source, in any order; it has no others but the unit's and those that are ignored.",
    )
    rules: tuple[Rule, ...] = Field(
        default=(),
        validate_default=True,
        max_length=1000,
        description="Structural zeros: whatever noise says of them, they are nought, and no synthetic row breaks one.",
    )
    derived: tuple[Derived, ...] = Field(
        default=(),
        validate_default=True,
        max_length=200,
        description="Attributes that follow from others by a public table: free of charge, added to synthetic rows at the end.",
    )
    ignore: tuple[str, ...] = Field(
        default=(), max_length=2000, description="Columns of the source that are not read, such as [interviewer, note]."
    )
    rename: dict[str, str] = Field(
        default=NO_NAMES, max_length=1000, description="What columns of the source are called here: {AGE_R: age}."
    )
    csv: Csv = Field(
        default=PLAIN_CSV,
        description="How CSV files are written, where not with commas, points and UTF-8. Empty values beyond the header, as "
        "spreadsheets leave them, are passed over.",
    )
    title: Title | None = Field(default=None, description="What the data are called, for people: Structure of Earnings 2026.")
    description: Text | None = Field(default=None, description="What they are about: who, what, when.")
    publisher: Title | None = Field(default=None, description="Who publishes releases of them: the agency's name.")
    contact: Title | None = Field(default=None, description="Whom to ask about them: an e-mail address, or a page.")
    licence: Licence | None = Field(
        default=None, description="Under which releases may be used: an SPDX identifier such as CC-BY-4.0, or an address."
    )
    source: Text | None = Field(default=None, description="Where what stands in this file is publicly known from.")
    registry: RegistryFacts | None = Field(
        default=None,
        description="For the card in OpenDP's registry of deployments: {curator_type: Government, region: Switzerland}.",
    )

    @field_validator("tables")
    @classmethod
    def _flatten(cls, tables: Tables | None) -> Tables | None:
        if tables is not None:
            must_flatten(tables)
        return tables

    @field_validator("unit", "weight", "attributes", "rules", "derived", mode="before")
    @classmethod
    def _follow_from_tables(cls, said: Any, info: ValidationInfo) -> Any:
        """Of linked tables a household's row is the flat one: what it has follows, and is not written."""
        tables: Tables | None = info.data.get("tables")
        if tables is None:
            return said
        if said and said != Unit():
            raise ValueError(STANDS_IN_TABLES.get(str(info.field_name), STANDS_IN_TABLES["attributes"]))
        return Unit(who="household") if info.field_name == "unit" else FOLLOWS[str(info.field_name)](tables)

    @field_validator("attributes")
    @classmethod
    def _has_some(cls, attributes: tuple[Attribute, ...], info: ValidationInfo) -> tuple[Attribute, ...]:
        if not 1 <= len(attributes) <= 1000 and "tables" in info.data:
            raise ValueError(f"a dataset has 1 to 1000 attributes, or tables; found {len(attributes) or 'neither'}")
        return attributes

    @cached_property
    def counted(self) -> Domain:
        """What is counted of a record: of linked tables a member's row, which has its household's columns first."""
        if self.tables is None:
            return self
        person, expected = self.tables.person, self.expected_rows
        members = max(person.expected_rows - expected, 1) if person.expected_rows and expected else expected
        unit = Unit(who=self.unit.who, rows_per_person=person.members)
        attributes = (*self.attributes, *own_attributes(person))
        flat = {"attributes": attributes, "rules": member_rules(self.tables), "expected_rows": members}
        return self._flat(unit=unit, weight=self.inherited(members), **flat)

    def of_table(self, table: HouseholdTable | PersonTable) -> Domain:
        """One of the linked tables as it is read: each row with the key of its household."""
        reads: dict[str, Any] = {"ignore": table.ignore, "rename": table.rename, "csv": table.csv}
        reads |= {"attributes": table.attributes, "derived": table.derived}
        if isinstance(table, HouseholdTable):
            unit = Unit(who="household", column=table.key)
            return self._flat(unit=unit, weight=self.weight, expected_rows=self.expected_rows, **reads)
        unit = Unit(who="household", column=table.column, rows_per_person=table.at_most)
        reads["ignore"] = (*table.ignore, *((table.key,) if table.key else ()))
        return self._flat(unit=unit, expected_rows=table.expected_rows, **reads)

    @cached_property
    def own(self) -> Domain:
        """Of linked tables what a member's row has beside its household's columns."""
        assert self.tables is not None
        return self._flat(attributes=own_attributes(self.tables.person), rules=own_rules(self.tables))

    def _flat(self, **said: Any) -> Domain:
        return Domain(name=self.name, population=self.population, **said)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        must_be_told(self)
        must_stand_in_tables(self)
        must_differ(self)
        must_weigh(self)
        must_name_columns(self)
        assert self.followings is not None  # each follows from an attribute, for all of its categories
        must_overlap_others(self)
        for number, rule in enumerate(self.rules):
            try:
                self._zeros(rule)
            except ValueError as error:
                raise problem_at(("rules", number), str(error)) from None
        must_not_circle(self.comparisons, self.names)
        must_come_apart(self)
        return self

    @cached_property
    def followings(self) -> tuple[Following, ...]:
        """Levels of places and derived attributes, each with what it is for every category of the one from which it follows."""
        levels = (level for place in self.geographies for level in levels_of(self.attributes[place], place))
        return (*levels, *followings_of(self.derived, self.attributes, self.unit.column))

    @property
    def all_followings(self) -> tuple[Following, ...]:
        """Of every published table: where tables are linked, what is derived of persons stands last."""
        return (*self.followings, *(self.tables.person.followings if self.tables is not None else ()))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What whoever plans or validates should know of it; refuses nothing."""
        return self.tables.remarks if self.tables is not None else ()

    def as_published(self) -> Domain:
        """The domain of synthetic records: of nobody's, and with nothing left to be read in another way."""
        attributes = tuple(attribute.as_published() for attribute in self.attributes)
        ignored = (*(each.derived.name for each in self.followings), *self.published_weight)  # neither is counted in sets
        plain = {"unit": Unit(), "ignore": ignored, "rename": {}, "csv": PLAIN_CSV, "attributes": attributes}
        return self.model_copy(update=plain | {"tables": None, "weight": None})

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A domain that files write as it is, is written, and hashed, as before there were other ways."""
        said = without_silence(plain(self), "tables", "weight", "derived", "overlaps", "ignore", "rename", "csv", *WORDS)
        follows = ("unit", "weight", "attributes", "rules", "derived") if self.tables else ()
        return {key: value for key, value in said.items() if key not in follows}

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
        """{attribute index: category codes} of what is said of attributes, by name: values as a rule writes them.

        Of a level of places: the finest places that lie there.
        """
        named = {self.source_of(name): name for name in said}
        if twice := [name for name in said if name not in named.values()]:
            raise ValueError(f"{twice[0]} and {named[self.source_of(twice[0])]} are levels of one place; name one of them")
        return {place: self._codes(name, said[name]) for place, name in named.items()}

    def _codes(self, name: str, value: Any) -> tuple[int, ...]:
        if name not in self.coarser:
            return codes_of_value(self.attributes[self.index(name)], value)
        following = self.followings[self.coarser.index(name)]
        held = set(codes_of_value(following.attribute, value))
        return tuple(finest for finest, code in enumerate(following.filled) if code in held)

    def source_of(self, name: str) -> int:
        """The attribute that is named, by itself or by a level of its places."""
        return self.geographies[0] if name in self.coarser else self.index(name)

    def index(self, name: str) -> int:
        if name not in self._places:
            raise ValueError(f"there is no attribute {name!r}; {meant(name, self.names, 'the domain has')}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def load_domain(path: Path | str) -> Domain:
    return yaml.validate(Domain, with_tables(yaml.read(path), Path(path).parent))
