"""release.yaml: one release, as its author writes it."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, ValidationInfo, field_validator, model_serializer, model_validator

from schemas.errors import KeyRefused
from schemas.names import NAME
from schemas.nearest import meant
from schemas.spec.analyses import MOST_ANALYSES, AnyAnalysis
from schemas.spec.database import AnySource, DatabaseSource, LinkedSources, is_address
from schemas.spec.described import Text, Title, without_silence
from schemas.spec.domain import Domain, Name
from schemas.spec.method import AnyMethod, MethodSpec, method_spec
from schemas.spec.privacy import Privacy as Privacy
from schemas.spec.yaml import Strict

LINKED = "households"  # the method of linked tables
PERIOD = re.compile(r"\{(year|quarter|month)\}")
OF_DRAWS = re.compile(r" × |^person: |^(elected )?pair \d+$|^again \d+$")  # what methods call draws and trees


class EvaluationSpec(Strict):
    """The confidential comparison after publication."""

    classifier: Literal["logistic", "cart"] = Field(
        default="logistic", description="What tries to tell synthetic rows from real ones (SPECKS)."
    )
    interactions: bool = Field(
        default=True, description="Whether `logistic` has all two-way interactions, where the domain allows."
    )


class Approval(Strict):
    """How many registered people have to approve before publication, and which."""

    required: Annotated[int, Field(ge=1, le=20)] = Field(description="How many have to approve, each with a key of their own.")
    from_: tuple[Name, ...] = Field(
        default=(), alias="from", description="Roles that may approve, such as `[board]`; `approver` where none is given."
    )


class LinkedExpectations(Strict):
    """Of linked tables: a supplier's own expectations of either, or of both."""

    household: str | None = Field(default=None, description="Path of the suite for households, as above.")
    person: str | None = Field(default=None, description="Path of the suite for persons.")

    @model_validator(mode="after")
    def _has_some(self) -> Self:
        if self.household is None and self.person is None:
            raise ValueError("name a suite for household, for person or for both")
        return self


class ReleaseSpec(Strict):
    """One release: which data, which guarantee, which method."""

    name: str = Field(
        description="The release's name, which is paid for once. {year}, {quarter} and {month} stand for the period."
    )
    dataset: str = Field(description="Path of dataset.yaml, from the folder of this file.")
    source: AnySource = Field(
        description="The records, Parquet, CSV, SPSS, Stata or SAS: a file, a folder or a glob, from the folder of this file. "
        "Folders such as year=2025 are a column where the dataset has one of that name and the files have not. Or a table or "
        "query of a database, by the keys below. Of linked tables one for each: {household: …, person: …}. May hold a period."
    )
    privacy: Privacy = Field(description="The guarantee that is asked for.")
    method: AnyMethod = Field(default_factory=method_spec, description="How counts become synthetic records.")
    analyses: tuple[AnyAnalysis, ...] = Field(
        default=(),
        max_length=MOST_ANALYSES,
        description="Tables and models that users will need: `[voted, age]`, `voted ~ age + college`, or keys as below. The "
        "plan says how wide their intervals will be, and refuses what cannot be had. Costs nothing.",
    )
    evaluation: EvaluationSpec = Field(default=EvaluationSpec(), description="The confidential comparison after publication.")
    approval: Literal["none", "required"] | Approval = Field(
        default="none",
        description="Whether a person decides before publication (`required`); or how many registered people, and which: "
        "`{required: 2, from: [board]}`.",
    )
    formats: tuple[str, ...] = Field(
        default=("parquet",), description="Formats of the synthetic sets; `parquet` always, `csv` may be added."
    )
    title: Title | None = Field(
        default=None, description="The heading of the release's page: Wages, fourth quarter of {year}. May hold a period."
    )
    description: Text | None = Field(default=None, description="What the release is for, on its page. May hold a period.")

    expectations: str | LinkedExpectations | None = Field(
        default=None,
        description="A supplier's own expectations, run with the domain's: path of a Great Expectations suite (JSON), from the "
        "folder of this file; of linked tables {household: …, person: …}. Severity `warning` or `info` refuses nothing.",
    )

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(PERIOD.sub("2026", name)):
            raise ValueError(
                f"{name!r} is not a name: use 1 to 64 of a–z, 0–9, _ and -, beginning with a letter or digit; "
                "{year}, {quarter} and {month} stand for the period"
            )
        return name

    @field_validator("source")
    @classmethod
    def _files_or_keys(cls, source: str | DatabaseSource | LinkedSources) -> str | DatabaseSource | LinkedSources:
        if any(isinstance(each, str) and is_address(each) for each in sources_of(source)):
            raise ValueError("an address of a database stands under url: {url: …, table: …} or {url: …, query: …}")
        return source

    @field_validator("method", mode="after")
    @classmethod
    def _suits_the_measure(cls, method: MethodSpec, info: ValidationInfo) -> MethodSpec:
        privacy = info.data.get("privacy")
        return method.under(privacy.measure) if privacy is not None else method

    @field_validator("formats")
    @classmethod
    def _parquet_always(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        if "parquet" not in formats:
            raise ValueError("formats always holds parquet; others, such as csv, may be added")
        return tuple(sorted(set(formats), reverse=True))

    @model_serializer(mode="wrap")
    def _say_what_is_asked(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A spec without analyses or words is written, and hashed, as before there were any."""
        return without_silence(said(self), "analyses", "title", "description", "expectations")


def sources_of(source: str | DatabaseSource | LinkedSources) -> tuple[str | DatabaseSource, ...]:
    return source.both if isinstance(source, LinkedSources) else (source,)


class Release(Strict):
    """A spec with its domain, its period filled in and its source found: everything public that a run depends on."""

    spec: ReleaseSpec
    domain: Domain
    folder: str  # of release.yaml; relative paths start here. Not part of the identity.

    @model_validator(mode="after")
    def _tables_are_released_linked(self) -> Self:
        linked, given = self.domain.tables is not None, isinstance(self.spec.source, LinkedSources)
        named = f'release "{self.name}"'
        if linked != given:
            found = "one source for two linked tables" if linked else "a source for each of two tables, and a dataset of one"
            raise KeyRefused(
                f"{named}: {found}. Linked tables have {{household: …, person: …}}, any other dataset one.", "source"
            )
        taken = self.spec.method.decomposition
        if taken != "auto" and linked != (taken == LINKED):
            what = "releases one table" if linked else "releases linked tables, and the dataset has one"
            raise KeyRefused(f"{named}: decomposition: {taken} {what}. Say {LINKED if linked else 'auto'}.", "method")
        if self.spec.expectations and linked != isinstance(self.spec.expectations, LinkedExpectations):
            found = "one suite for two linked tables" if linked else "a suite for each of two tables, and a dataset of one"
            raise KeyRefused(
                f"{named}: {found}. Linked tables have {{household: …, person: …}}, any other dataset one.", "expectations"
            )
        return self

    @model_validator(mode="after")
    def _names_are_no_names_of_draws(self) -> Self:
        """A bundle that has such a name is read as before; of a new release two draws would have one name."""
        tables = self.domain.tables
        persons = (each.name for each in tables.person.attributes) if tables is not None else ()
        for name in (*self.domain.names, *self.domain.coarser, *persons):
            if OF_DRAWS.search(name):
                raise KeyRefused(
                    f'release "{self.name}": the dataset has an attribute {name!r}, and draws are named so: "a × b" is the '
                    'table of a and b, "pair 1" one that is elected, "person: a" one of persons. Rename the attribute '
                    "(`rename` of the dataset reads its column under another name).",
                    "dataset",
                )
        return self

    @model_validator(mode="after")
    def _public_total_is_everybodys(self) -> Self:
        unit = self.domain.unit
        if self.spec.privacy.total == "public" and unit.rows_per_person > 1 and not unit.exactly:
            raise KeyRefused(
                f'release "{self.name}": total: public with rows_per_person: {unit.rows_per_person}; a person with fewer rows '
                "replaced by one with more would change the number of rows. Say exactly: true in the dataset's unit, if every "
                "person has exactly as many, or total: estimated.",
                *("privacy", "total"),
            )
        return self

    @model_validator(mode="after")
    def _weights_have_no_known_total(self) -> Self:
        """Neighbours differ in the sum of their weights, and nobody has paid for telling it."""
        if self.domain.weight is not None and self.spec.privacy.total != "estimated":
            raise KeyRefused(
                f'release "{self.name}": total: {self.spec.privacy.total} with weights in the dataset; their sum differs '
                f"between data sets that differ in one {self.domain.unit.who}. Write total: estimated.",
                *("privacy", "total"),
            )
        return self

    @model_validator(mode="after")
    def _delta_is_small(self) -> Self:
        asked, rows = self.spec.privacy, self.domain.expected_rows
        if asked.delta is None:
            return self
        delta, found = Fraction(Decimal(asked.delta)), f"expected_rows: {rows}" if rows else "no expected_rows"
        if delta >= Fraction(1, rows or 100):
            raise KeyRefused(
                f'release "{self.name}": delta: {asked.delta} with {found} in the dataset; a δ of one in {rows or 100} or more '
                "would allow to tell somebody's data whole, and no reason serves for that. Lower delta, to 1e-9 say.",
                *("privacy", "delta"),
            )
        most = Fraction(1, 100 * rows) if rows else Fraction(1, 10**9)
        if asked.delta_why is None and delta > most:
            raise KeyRefused(
                f'release "{self.name}": delta: {asked.delta} with {found} in the dataset; with a chance of δ the guarantee '
                f"may fail for a {self.domain.unit.who}, so δ must be far below one in all: at most {float(most):.2g}. Lower "
                "delta, or say in delta_why why it may be as large.",
                *("privacy", "delta"),
            )
        return self

    @property
    def name(self) -> str:
        return self.spec.name

    def asking(self, method: MethodSpec) -> Release:
        """The same release by another method."""
        return self.model_copy(update={"spec": self.spec.model_copy(update={"method": method})})

    @property
    def expectations(self) -> tuple[tuple[Path | None, Domain], ...]:
        """Of every source where a supplier's own expectations of it lie, if there are any, and by which domain it is read."""
        said, tables = self.spec.expectations, self.domain.tables
        asked: tuple[str | None, ...] = (said.household, said.person) if isinstance(said, LinkedExpectations) else (said, None)
        both = (
            (self.domain,) if tables is None else (self.domain.of_table(tables.household), self.domain.of_table(tables.person))
        )
        return tuple((Path(self.folder) / path if path else None, own) for path, own in zip(asked, both, strict=False))

    @property
    def source(self) -> str | DatabaseSource:
        """Path or glob of the records, or what is asked of a database; relative paths from the folder of release.yaml."""
        (one,) = self.sources
        return one

    @property
    def sources(self) -> tuple[str | DatabaseSource, ...]:
        """The same of every table, where several are linked."""
        return tuple(
            asked.at(self.folder) if isinstance(asked, DatabaseSource) else str(Path(self.folder) / asked)
            for asked in sources_of(self.spec.source)
        )


def check_names(spec: ReleaseSpec, domain: Domain) -> None:
    """Every attribute that the method's options name exists and stands once."""
    groups = spec.method.named_groups()
    named = [name for group in groups for name in group]
    for name in named:
        if name not in domain.names:
            hint = meant(name, domain.names, "the domain has")
            raise KeyRefused(f"order names {name!r}; {hint}", "method", "order")
        if named.count(name) > 1:
            raise KeyRefused(f"order names {name!r} twice; each attribute splits the records once.", "method", "order")
    if not all(groups):
        raise KeyRefused("order holds an empty group; name at least one attribute in each.", "method", "order")
