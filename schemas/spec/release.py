"""release.yaml: one release, as its author writes it."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, ValidationInfo, field_validator, model_serializer, model_validator

from schemas.amounts import SpecDelta, SpecEpsilon, SpecRho
from schemas.errors import KeyRefused, SpecError
from schemas.names import NAME
from schemas.spec.analyses import MOST_ANALYSES, AnyAnalysis
from schemas.spec.described import Text, Title, without_silence
from schemas.spec.domain import Domain, Name
from schemas.spec.method import AnyMethod, MethodSpec, method_spec
from schemas.spec.yaml import Strict

PERIOD = re.compile(r"\{(year|quarter|month)\}")


class Privacy(Strict):
    """The guarantee that is asked for."""

    epsilon: SpecEpsilon | None = Field(
        default=None,
        description="ε, the whole cost of the release: what is charged. At most nine decimals. With `delta`: the ε that holds "
        "at this δ; the largest ρ that promises it is charged.",
    )
    rho: SpecRho | None = Field(
        default=None,
        description="In place of `epsilon`: ρ of zero-concentrated differential privacy, the whole cost. Needs `delta`. At "
        "most nine decimals.",
    )
    delta: SpecDelta | None = Field(
        default=None,
        description="δ of zero-concentrated differential privacy: at which chance ε is told; at most one in a hundred times "
        "`expected_rows`, such as 1e-9.",
    )
    delta_why: str | None = Field(default=None, description="The reason for a larger `delta` than that, which the page tells.")
    why: str | None = Field(
        default=None, max_length=1000, description="The reason for an ε above 10, kept in the ledger with the charge."
    )
    neighbours: Literal["add_remove", "substitute"] = Field(
        default="add_remove", description="Data sets that must look alike: one person more or less, or one person replaced."
    )
    total: Literal["estimated", "public", "invariant"] = Field(
        default="estimated",
        description="The number of rows: `estimated` from noisy counts; `public` where all neighbours share it (needs "
        "`neighbours: substitute`); `invariant` publishes it outside the guarantee.",
    )

    @model_validator(mode="after")
    def _has_one_measure(self) -> Self:
        given = [name for name in ("epsilon", "rho") if getattr(self, name) is not None]
        if len(given) != 1:
            found = "epsilon and rho; keep one of them" if given else "neither epsilon nor rho; add one of them"
            raise ValueError(
                "give epsilon, a plain number such as 0.5, for pure differential privacy; or epsilon or rho with delta, for "
                f"zero-concentrated. Found {found}"
            )
        if self.rho is not None and self.delta is None:
            raise ValueError("rho needs delta, the chance at which ε is told, such as delta: 1e-9; found none")
        if self.why is not None and not self.why.strip():
            raise ValueError("why gives the reason for a large epsilon; found an empty one. Say it in a sentence, or remove it")
        if self.delta_why is not None and not self.delta_why.strip():
            raise ValueError("delta_why gives the reason for a delta; found an empty one. Say it in a sentence, or remove it")
        if self.delta is None and self.delta_why is not None:
            raise ValueError("delta_why gives the reason for a delta; found none. Remove it, or add delta")
        return self

    @model_serializer(mode="wrap")
    def _say_what_is_asked(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Pure privacy reads as it did before there was another."""
        new = {"rho", "delta", "delta_why"} if self.delta is None else set()
        new |= {"why"} if self.why is None else set()
        return {name: value for name, value in said(self).items() if name not in new}

    @property
    def measure(self) -> Literal["pure", "zcdp"]:
        return "pure" if self.delta is None else "zcdp"

    @model_validator(mode="after")
    def _public_total_needs_substitution(self) -> Self:
        if self.total == "public" and self.neighbours != "substitute":
            raise ValueError(
                "total: public needs neighbours: substitute, where every data set has the same number of rows; "
                "under add_remove say estimated, or invariant to publish the exact number outside the guarantee"
            )
        return self


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


class ReleaseSpec(Strict):
    """One release: which data, which guarantee, which method."""

    name: str = Field(
        description="The release's name, which is paid for once. {year}, {quarter} and {month} stand for the period."
    )
    dataset: str = Field(description="Path of dataset.yaml, from the folder of this file.")
    source: str = Field(
        description="The records, Parquet, CSV, SPSS, Stata or SAS: a file, a folder or a glob, from the folder of this file. "
        "May hold a period."
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

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(PERIOD.sub("2026", name)):
            raise ValueError(
                f"{name!r} is not a name: use 1 to 64 of a–z, 0–9, _ and -, beginning with a letter or digit; "
                "{year}, {quarter} and {month} stand for the period"
            )
        return name

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
        return without_silence(said(self), "analyses", "title", "description")


class Release(Strict):
    """A spec with its domain, its period filled in and its source found: everything public that a run depends on."""

    spec: ReleaseSpec
    domain: Domain
    folder: str  # of release.yaml; relative paths start here. Not part of the identity.

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
    def source(self) -> str:
        """Path or glob of the records, relative ones from the folder of release.yaml."""
        return str(Path(self.folder) / self.spec.source)


def check_names(spec: ReleaseSpec, domain: Domain, where: str) -> None:
    """Every attribute that the method's options name exists and stands once."""
    groups = spec.method.named_groups()
    named = [name for group in groups for name in group]
    for name in named:
        if name not in domain.names:
            raise SpecError(f"{where}: order names {name!r}; the domain has {', '.join(domain.names)}.")
        if named.count(name) > 1:
            raise SpecError(f"{where}: order names {name!r} twice; each attribute splits the records once.")
    if not all(groups):
        raise SpecError(f"{where}: order holds an empty group; name at least one attribute in each.")
