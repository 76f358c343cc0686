"""`analyses:` of a release.yaml: tables and models that users of the release will need. Naming them costs nothing."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, PlainSerializer, Tag, field_validator

from schemas.spec.yaml import Strict

MOST_ANALYSES = 100
_PERCENT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*%")


def _within(value: Any) -> Fraction:
    """
    >>> _within("1.5%"), _within(Decimal("0.1"))
    (Fraction(3, 200), Fraction(1, 10))
    """
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is None and (isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction)):
        raise ValueError(f"within is a number such as 0.1, or a percentage such as 1%, not {value!r}")
    if isinstance(value, Decimal) and not (value.is_finite() and -30 < value.adjusted() < 30):
        raise ValueError(f"within is a number such as 0.1, not {value}")
    found = Fraction(percent[1]) / 100 if percent else Fraction(value)
    if found <= 0:
        raise ValueError(f"within must be above 0, not {value}")
    return found


Within = Annotated[Fraction, BeforeValidator(_within), PlainSerializer(str, return_type=str)]


class TableAnalysis(Strict):
    """A table of counts by some attributes, each cell as a share of all rows."""

    table: tuple[str, ...] = Field(min_length=1, max_length=20, description="Its attributes, such as [voted, college].")
    within: Within | None = Field(
        default=None,
        description="Refuse the release unless the 95% interval of an average cell's share is expected to reach no further "
        "than this to either side, such as 1% (of all rows).",
    )

    @field_validator("within")
    @classmethod
    def _part(cls, within: Fraction | None) -> Fraction | None:
        if within is not None and within >= 1:
            raise ValueError(f"within of a table is a part of all rows, such as 1% or 0.01, not {within}")
        return within

    @field_validator("table")
    @classmethod
    def _distinct(cls, table: tuple[str, ...]) -> tuple[str, ...]:
        if twice := [name for name in table if table.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} stands twice; a table names each attribute once")
        return table


class ModelAnalysis(Strict):
    """A regression of one attribute on others."""

    model: str = Field(
        max_length=5_000,
        description='A formula such as "voted ~ age + college": names, C(name) for numbers as categories, + - : * and 0 or 1.',
    )
    kind: Literal["linear", "logistic"] | None = Field(
        default=None, description="Of the regression; otherwise logistic where the outcome has two categories, else linear."
    )
    where: dict[str, Any] = Field(
        default={},
        description='Only rows with these values, written as in a rule: {registered: "yes"}, a list, or {from: a, below: b}.',
    )
    within: Within | None = Field(
        default=None,
        description="Refuse the release unless the 95% interval of every coefficient is expected to reach no further than this "
        "to either side (the intercept aside).",
    )


def _keys(value: Any) -> Any:
    """A list of names is a table, a text a model."""
    if isinstance(value, tuple | list):
        return {"table": tuple(value)}
    if isinstance(value, str):
        return {"model": value}
    known = isinstance(value, dict) and ("table" in value) != ("model" in value)
    if not known and not isinstance(value, TableAnalysis | ModelAnalysis):
        raise ValueError("an analysis is a list of attributes, a formula, or keys of which one is table or model")
    return value


def _which(value: Any) -> str:
    return "a table" if isinstance(value, TableAnalysis) or isinstance(value, dict) and "table" in value else "a model"


AnyAnalysis = Annotated[
    Annotated[TableAnalysis, Tag("a table")] | Annotated[ModelAnalysis, Tag("a model")],
    Discriminator(_which),
    BeforeValidator(_keys),
]
