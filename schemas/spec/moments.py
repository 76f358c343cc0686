"""Attributes that are days, or times of day, between two public bounds."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from schemas.spec.ranged import RangedBase
from schemas.spec.reading import day_format, time_format
from schemas.spec.values import DAY, EPOCH, Date, TimeOfDay, minutes_of


class DateAttribute(RangedBase):
    """Days; bins by number or by edges (the first day of each bin, the last edge being the upper bound)."""

    kind: Literal["date"] = Field(description="Days; one category each unless `bins` or `edges` is given.")
    bounds: tuple[Date, Date] = Field(description="First and last day that may occur, from public knowledge.")
    edges: tuple[Date, ...] | None = Field(
        default=None, description="The first day of each bin, then the upper bound, which the last bin holds."
    )
    format: Annotated[str, AfterValidator(day_format)] | None = Field(
        default=None, description="How text says a day, such as `%d.%m.%Y`; otherwise 2000-01-31. A time of day is dropped."
    )

    def _number_in(self, text: str) -> float | None:
        try:
            return float((datetime.date.fromisoformat(text) - EPOCH).days)
        except ValueError:
            return None

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        days = (self.bounds[1] - self.bounds[0]).days + 1
        if self.bins is not None and self.bins > days:
            raise ValueError(f"{self.name}: {self.bins} bins for {days} days; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return bool(self.bins or self.edges)

    def _edge_values(self) -> np.ndarray:
        """Days since 1970-01-01: the first of each bin, then one past the upper bound."""
        low, high = ((bound - EPOCH).days for bound in self.bounds)
        if self.edges:
            return np.array([*((edge - EPOCH).days for edge in self.edges[:-1]), high + 1])
        count = self.bins or high - low + 1
        return low + (np.arange(count + 1) * (high + 1 - low)) // count

    def _bin_labels(self) -> tuple[str, ...]:
        days = [(EPOCH + datetime.timedelta(days=int(d))).isoformat() for d in self.edge_values[:-1]]
        ends = [(EPOCH + datetime.timedelta(days=int(d) - 1)).isoformat() for d in self.edge_values[1:]]
        return tuple(a if a == b else f"{a}…{b}" for a, b in zip(days, ends, strict=True))


class TimeAttribute(RangedBase):
    """Times of day, in whole minutes; edges are the first minute of each bin, the last one being the upper bound."""

    kind: Literal["time"] = Field(
        description="Times of day, to the minute; one category each unless `bins` or `edges` is given."
    )
    bounds: tuple[TimeOfDay, TimeOfDay] = Field(
        description="First and last time that may occur, from public knowledge: [00:00, 24:00] is the whole day."
    )
    edges: tuple[TimeOfDay, ...] | None = Field(
        default=None, description="The first time of each bin, then the upper bound, which the last bin holds."
    )
    format: Annotated[str, AfterValidator(time_format)] | None = Field(
        default=None,
        description="How text says a time, such as `%H.%M`; otherwise 08:30 or 08:30:15. Seconds and days are dropped.",
    )

    def _number_in(self, text: str) -> float | None:
        try:
            return float(minutes_of(text))
        except ValueError:
            return None

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        minutes = int(self._past() - minutes_of(self.bounds[0]))
        if self.bins is not None and self.bins > minutes:
            raise ValueError(f"{self.name}: {self.bins} bins for {minutes} minutes; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return bool(self.bins or self.edges)

    def _past(self) -> int:
        """One past the upper bound; the day ends before 24:00."""
        return min(minutes_of(self.bounds[1]) + 1, DAY)

    def _edge_values(self) -> np.ndarray:
        """Minutes since midnight: the first of each bin, then one past the upper bound."""
        low, past = minutes_of(self.bounds[0]), self._past()
        if self.edges:
            return np.array([*map(minutes_of, self.edges[:-1]), past])
        count = self.bins or past - low
        return low + (np.arange(count + 1) * (past - low)) // count

    def _bin_labels(self) -> tuple[str, ...]:
        first, last = self.edge_values[:-1].tolist(), (self.edge_values[1:] - 1).tolist()
        return tuple(_shown(a) if a == b else f"{_shown(a)}–{_shown(b)}" for a, b in zip(first, last, strict=True))


def _shown(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
