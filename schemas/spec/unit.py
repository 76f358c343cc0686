"""Whose privacy is protected, and names that are safe wherever they go."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.names import NAME
from schemas.spec.yaml import Strict


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
