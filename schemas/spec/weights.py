"""Survey weights: a public bound on them, and the step, so many people of the population, that is counted as one unit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.spec.attribute_base import AttributeName
from schemas.spec.numbers import Numeric
from schemas.spec.values import Number
from schemas.spec.yaml import Strict, problem_at

MOST_UNITS = 10_000  # that one person may count as, as for rows of one person
LARGEST_WEIGHT, MOST_EXPECTED = 1e12, 10**12
LARGEST_SET = 2**31 - 1  # rows of a synthetic set
MILLIONTHS = 10**6  # of a unit, in which weights are added up: whole numbers, in any order


class Weight(Strict):
    """The column that says for how many people of the population a record stands; its bounds bound what a person changes."""

    column: AttributeName = Field(description="The column of weights. It is no attribute: of its values nothing is released.")
    bounds: tuple[Number, Number] = Field(
        description="Lowest and highest weight that may occur, from the survey's public design; others fail validation. Noise "
        "grows with the highest."
    )
    total: int = Field(
        ge=1, le=MOST_EXPECTED, description="About how many people the population has, as far as is public. Guides planning."
    )
    step: Number | None = Field(
        default=None,
        description="For so many people one synthetic row stands, and they are counted as one unit. Otherwise the highest "
        "weight divided by a whole number, near half of the mean weight total / expected_rows.",
    )
    rows: Literal["weighted", "replicated"] = Field(
        default="weighted",
        description="Synthetic rows have the column, with the step in it (`weighted`); or are left without, since every row "
        "stands for as many people (`replicated`).",
    )
    design_effect: Number | None = Field(
        default=None,
        description="How many times larger weighting makes a variance, as the survey's public report says; otherwise the most "
        "that the bounds allow. Needs expected_rows. Intervals from synthetic sets rest on it.",
    )

    @model_validator(mode="after")
    def _bounds_bound(self) -> Self:
        low, high = self.bounds
        if low < 0:
            raise problem_at(("bounds",), f"the lowest weight is {low:.12g}; no weight is below 0")
        if not low < high <= LARGEST_WEIGHT:
            raise problem_at(
                ("bounds",),
                f"[{low:.12g}, {high:.12g}]: write the lowest weight, then a higher one, up to {LARGEST_WEIGHT:.0e}; where all "
                "weights are equal leave weight out",
            )
        if self.design_effect is not None and not 1 <= self.design_effect <= 1000:
            raise problem_at(("design_effect",), f"{self.design_effect:.12g} is no design effect: write one from 1 to 1000")
        if self.step is not None and not 0 < self.step <= high:
            raise problem_at(
                ("step",),
                f"{self.step:.12g} does not fit the bounds: a step is above 0 and at most the highest weight, {high:.12g}",
            )
        return self

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is left to its default says nothing."""
        return {name: value for name, value in plain(self).items() if value != type(self).model_fields[name].default}

    @property
    def attribute(self) -> Numeric:
        """How the column is read: as an attribute of numbers within the bounds, never missing."""
        return Numeric.model_construct(name=self.column, kind="numeric", bounds=self.bounds, bins=1, outside="forbid")

    def weighing(self, expected_rows: int | None, rows_per_person: int, by_household: bool = False) -> Weighing:
        """What follows, or why nothing does. Of households `rows_per_person` are all persons of one."""
        low, high = map(exactly, self.bounds)
        mean = Fraction(self.total, expected_rows) if expected_rows else None
        who = "households" if by_household else "people"
        if mean is not None and not low <= mean <= high:
            raise problem_at(
                ("weight", "total"),
                f"{self.total:,} {who} over expected_rows: {expected_rows:,} make a mean weight of {float(mean):.6g}, outside "
                f"the bounds [{self.bounds[0]:.12g}, {self.bounds[1]:.12g}]",
            )
        if mean is None and (self.step is None or self.design_effect is not None):
            key, why = ("step", "step") if self.step is None else ("design_effect", "the mean weight")
            raise problem_at(("weight", key), f"{why} is not known: say expected_rows{', or step' * (key == 'step')}")
        found = Weighing(
            low=low,
            high=high,
            step=exactly(self.step) if self.step is not None else default_step(high, mean or high),
            total=self.total,
            effect=exactly(self.design_effect) * mean if self.design_effect is not None and mean else None,
            rows_per_person=rows_per_person,
            by_household=by_household,
        )
        if found.units_per_row * rows_per_person > MOST_UNITS:
            raise problem_at(("weight", "step"), _too_many(found))
        if found.expected_units > LARGEST_SET:
            raise problem_at(
                ("weight", "step"),
                f"{float(found.step):.6g} would make {found.expected_units:,} rows of {self.total:,} {who}; a synthetic set "
                f"may have {LARGEST_SET:,}. Write a step of at least {1.01 * self.total / LARGEST_SET:.3g}",
            )
        return found


def _too_many(found: Weighing) -> str:
    each, rows = f"of weight {float(found.high):.12g} as {found.units_per_row:,} units, and", found.rows_per_person
    if found.by_household:
        counts, most = f"a household {each} up to {rows:,} persons in it as many each", f"together they may make {MOST_UNITS:,}"
    else:
        counts, most = f"a record {each} {rows:,} of them belong to one person", f"at most {MOST_UNITS:,} units may"
    least = float(found.high * rows / MOST_UNITS)
    return f"{float(found.step):.6g} would count {counts}; {most}. Write a step of at least {least:.6g}"


class PersonWeight(Weight):
    """What persons inherit: every one of a household stands for as many people as their household does for households."""

    of_households: Weighing
    persons: Fraction  # expected of a household

    def weighing(self, expected_rows: int | None, rows_per_person: int, by_household: bool = True) -> Weighing:
        """Bounds, step and design effect are those of households."""
        return self.of_households.of_persons(self.persons, rows_per_person)


def exactly(number: float) -> Fraction:
    """A number as it is written: of 0.1 a tenth.

    >>> exactly(0.1), exactly(40.0)
    (Fraction(1, 10), Fraction(40, 1))
    """
    return Fraction(repr(float(number)))


def default_step(high: Fraction, mean: Fraction) -> Fraction:
    """The highest weight over a whole number, so that it counts as whole units, nearest to half of the mean weight.

    >>> default_step(Fraction(40), Fraction(10)), default_step(Fraction(7), Fraction(6))
    (Fraction(5, 1), Fraction(7, 2))
    """
    return high / max(1, min(MOST_UNITS, round(2 * high / mean)))


@dataclass(frozen=True)
class Weighing:
    """Weights in units of `step`, exactly."""

    low: Fraction
    high: Fraction
    step: Fraction
    total: int
    effect: Fraction | None = None  # the mean weight times the design effect, where that is public
    rows_per_person: int = 1
    by_household: bool = False  # whether a household, with everybody in it, has a lot of its own in place of every cell

    @property
    def units_per_row(self) -> int:
        """By how much one record may change a rounded count at most (PRIVACY.md, `weights_sql.rounded`)."""
        return math.ceil(self.high / self.step)

    @property
    def expected_units(self) -> int:
        return max(1, round(self.total / self.step))

    @property
    def per_weight(self) -> float:
        """Millionths of a unit per unit of weight."""
        return float(MILLIONTHS / self.step)

    @property
    def most_millionths(self) -> int:
        return self.units_per_row * MILLIONTHS

    @property
    def rounding(self) -> Fraction:
        """Of a count of x units, rounding adds a variance of at most this times x (PRIVACY.md)."""
        of_a_lot = min(Fraction(1), self.step / (4 * self.low)) if self.low else Fraction(1)
        return of_a_lot * (self.rows_per_person if self.by_household else 1)

    def of_persons(self, each: Fraction, at_most: int) -> Weighing:
        """Of persons who inherit their household's units: so many in one of them are expected, and at most these."""
        return replace(self, total=max(1, round(self.total * each)), rows_per_person=at_most)

    @property
    def inflation(self) -> Fraction:
        """So many times larger than of independent rows is the variance of sampling and rounding, at most (PRIVACY.md)."""
        of_a_row = (self.high if self.effect is None else self.effect) / self.step
        return self.rows_per_person * of_a_row + self.rounding


class Weighed:
    """What a domain counts: records, or units of their weights."""

    if TYPE_CHECKING:  # a domain has these
        unit: Any
        tables: Any
        weight: Weight | None
        expected_rows: int | None

    @cached_property
    def weighing(self) -> Weighing | None:
        """What follows from public weights: how many units one record may count as, and how many are expected."""
        if self.weight is None:
            return None
        return self.weight.weighing(self.expected_rows, self.unit.rows_per_person, self.tables is not None)

    def inherited(self, persons: int | None) -> PersonWeight | None:
        """The weight of persons, of whom so many are expected; None where households have none."""
        if self.weight is None or self.weighing is None:
            return None
        said = {name: getattr(self.weight, name) for name in Weight.model_fields}
        each = Fraction(persons, self.expected_rows) if persons and self.expected_rows else Fraction(1)
        return PersonWeight.model_construct(**said, of_households=self.weighing, persons=each)

    @property
    def expected_units(self) -> int | None:
        """About how many rows a synthetic set has: as many as there are records, or units of weight."""
        return self.weighing.expected_units if self.weighing else self.expected_rows

    @property
    def units_per_person(self) -> int:
        """By how much one person changes counts at most: rows, or units of their weights."""
        rows: int = self.unit.rows_per_person
        return rows * (self.weighing.units_per_row if self.weighing else 1)

    @property
    def inflation(self) -> float:
        """So many times larger than of independent rows is the variance of sampling, of sets, at most (PRIVACY.md)."""
        return float(self.weighing.inflation if self.weighing else self.unit.rows_per_person)

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Columns of the source that are no attributes: whose record it is, and its weight."""
        return tuple(name for name in (self.unit.column, self.weight.column if self.weight else None) if name is not None)

    def self_weighting(self) -> Self:
        """The domain of rows that have no column of weights, as all stand for as many people."""
        if not self.published_weight or self.weight is None:
            return self
        weight = self.weight.model_copy(update={"rows": "replicated"})
        return cast(Self, cast(BaseModel, self).model_copy(update={"weight": weight}))

    @property
    def published_weight(self) -> tuple[str, ...]:
        """The column of synthetic sets that says for how many people a row stands, where they have one."""
        return (self.weight.column,) if self.weight and self.weight.rows == "weighted" else ()
