"""What `method:` may say of pairs."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.spec.method import Exact, MethodSpec

LEAST = Fraction(1, 10**6)  # importance


def positive(importance: dict[str, Fraction]) -> dict[str, Fraction]:
    if not all(LEAST <= weight <= 1 / LEAST for weight in importance.values()):
        raise ValueError("importance gives attributes numbers from a millionth to a million, 1 to those that are not named")
    return importance


Importance = Annotated[dict[str, Exact], AfterValidator(positive)]


class PairsSpec(MethodSpec):
    """One-way tables, and what pairs of attributes add to them; one model fitted to all of it."""

    decomposition: Literal["pairs"] = Field(
        default="pairs", description="One-way tables and what pairs of attributes add to them; one model fitted to all of it."
    )
    pairs: Literal["all"] | Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="How many pairs are measured: `all`, or a number to elect. Otherwise the plan decides."
    )
    importance: Importance = Field(
        default={},
        description="How much more an attribute matters than others, such as {voted: 3}: its tables get more of the "
        "budget. Costs nothing.",
    )
