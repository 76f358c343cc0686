"""What `method:` may say of households."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field, field_validator

from schemas.spec.method import Exact, MethodSpec
from steps_engine.methods.pairs.spec import Importance


class HouseholdsSpec(MethodSpec):
    """Linked tables: household rows and rows of their other members, in one accounted plan."""

    decomposition: Literal["households"] = Field(
        default="households",
        description="Linked tables: household rows, by pairs or places, and rows of their other members, by pairs.",
    )
    share: Exact | None = Field(
        default=None,
        description="The part of the budget for household rows, such as 0.4; members get the rest. Else the plan decides.",
    )
    importance: Importance = Field(
        default={}, description="How much more an attribute matters than others, such as {tenure: 3, age: 2}. Costs nothing."
    )

    @field_validator("share")
    @classmethod
    def _a_part(cls, share: Fraction | None) -> Fraction | None:
        if share is not None and not Fraction(1, 100) <= share <= Fraction(99, 100):
            raise ValueError("share is the part of the budget for household rows, from 0.01 to 0.99")
        return share
