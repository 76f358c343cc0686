"""Attributes that are numbers or days between two public bounds, in bins."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    Field,
    field_validator,
    model_validator,
)

from schemas.spec.attribute_base import MOST_CATEGORIES, AttributeBase
from schemas.spec.reading import day_format
from schemas.spec.values import EPOCH, Date, Number


class _Ranged(AttributeBase):
    """Values between two public bounds, in bins [edge_i, edge_i+1); the last bin holds the upper bound too."""

    outside: Literal["forbid", "clamp"] = Field(
        default="forbid",
        description="A value beyond the bounds fails validation (`forbid`), or counts as the nearest bound (`clamp`).",
    )
    bins: int | None = Field(
        default=None, ge=1, le=MOST_CATEGORIES, description="How many bins of equal width; or give `edges`, not both."
    )
    if TYPE_CHECKING:  # every kind has these, of its own values, and writes them after `kind`
        kind: str
        bounds: tuple[Any, Any]
        edges: tuple[Any, ...] | None

    @model_validator(mode="after")
    def _edges_or_bins(self) -> Self:
        low, high = self.bounds
        if not low <= high or (low == high and not isinstance(self, Integer)):
            raise ValueError(f"{self.name}: bounds must be [low, high] with low below high, not [{low}, {high}]")
        if self.edges is not None and self.bins is not None:
            raise ValueError(f"{self.name}: give bins or edges, not both")
        if self.edges is not None:
            if len(self.edges) < 2 or any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
                raise ValueError(f"{self.name}: edges must increase from one to the next, and be at least two")
            if (self.edges[0], self.edges[-1]) != (low, high):
                raise ValueError(f"{self.name}: edges must begin and end with the bounds [{low}, {high}]")
        if self.present > MOST_CATEGORIES:
            raise ValueError(f"{self.name}: {self.present:,} categories; at most {MOST_CATEGORIES:,}. Give bins or edges")
        return self

    @cached_property
    def number_of_text(self) -> dict[str, float | None]:
        """The number that a text of a file stands for, where it is not the one it says; None: it is missing."""
        return {text: None if meant is None else self._within(meant) for text, meant in self._meanings().items()}

    @cached_property
    def number_of_number(self) -> dict[float, float | None]:
        """The same by the number that a text says, however it is written: -9 is -9.0."""
        return {number: meant for text, meant in self.number_of_text.items() if (number := self._number_in(text)) is not None}

    def _number_in(self, text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if abs(number) < 2**53 else None

    def _within(self, meant: str) -> float:
        low, high = self.edge_values[0], self.edge_values[-1] - (self.kind != "numeric")
        number = self._number_in(meant)
        if number is None or not low <= number <= high or (self.kind != "numeric" and number != int(number)):
            raise ValueError(f"{self.name}: recode makes a value into {meant!r}, which is none within its bounds")
        return number

    @model_validator(mode="after")
    def _readable(self) -> Self:
        assert self.number_of_number is not None  # each meaning is within the bounds
        return self

    @property
    def edge_values(self) -> np.ndarray:
        """Where the bins begin, and where the last one ends."""
        return _edges(self)

    @abstractmethod
    def _edge_values(self) -> np.ndarray: ...

    @property
    def present(self) -> int:
        return len(self.edge_values) - 1

    @cached_property
    def code_of(self) -> dict[float, int]:
        """The code of the bin that begins at each edge; at the last edge none begins, and its code is one past them."""
        return {edge: code for code, edge in enumerate(self.edge_values.tolist())}


@lru_cache(maxsize=4096)
def _edges(attribute: _Ranged) -> np.ndarray:
    return attribute._edge_values()  # not kept in the model: an array there would break comparison


class Numeric(_Ranged):
    kind: Literal["numeric"] = Field(description="Numbers, in bins: `bins` or `edges` is needed.")
    bounds: tuple[Number, Number] = Field(description="Lowest and highest value that may occur, from public knowledge.")
    edges: tuple[Number, ...] | None = Field(
        default=None, description="Where bins begin, and where the last one ends; the first and last are the bounds."
    )

    @model_validator(mode="after")
    def _bins_given(self) -> Self:
        if self.bins is None and self.edges is None:
            raise ValueError(f"{self.name}: a numeric attribute needs bins (a number of them) or edges")
        if len(set(self.edge_values.tolist())) < len(self.edge_values):
            raise ValueError(f"{self.name}: {self.bins} bins do not fit between the bounds; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return True

    def _edge_values(self) -> np.ndarray:
        return np.array(self.edges) if self.edges else np.linspace(*self.bounds, (self.bins or 1) + 1)

    @property
    def present_labels(self) -> tuple[str, ...]:
        shown = [f"{edge:.12g}" for edge in self.edge_values]
        ends = [")"] * (len(shown) - 2) + ["]"]
        return tuple(f"[{a}, {b}{end}" for a, b, end in zip(shown, shown[1:], ends, strict=False))


class Integer(_Ranged):
    """Whole numbers; one category each unless bins or edges say otherwise. Edges are the first number of each bin."""

    kind: Literal["integer"] = Field(description="Whole numbers; one category each unless `bins` or `edges` is given.")
    bounds: tuple[int, int] = Field(description="Lowest and highest whole number that may occur, from public knowledge.")
    edges: tuple[int, ...] | None = Field(
        default=None, description="The first whole number of each bin, then the upper bound, which the last bin holds."
    )

    @field_validator("bounds", "edges")
    @classmethod
    def _representable(cls, numbers: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if numbers is not None and max(map(abs, numbers), default=0) > 2**53:
            raise ValueError("whole numbers beyond 2^53 are not supported")
        return numbers

    @model_validator(mode="after")
    def _few_enough(self) -> Self:
        numbers = self.bounds[1] - self.bounds[0] + 1
        if self.bins is not None and self.bins > numbers:
            raise ValueError(f"{self.name}: {self.bins} bins for {numbers} whole numbers; give fewer")
        return self

    @property
    def binned(self) -> bool:
        return bool(self.bins or self.edges)

    def _edge_values(self) -> np.ndarray:
        """First number of each bin, then one past the upper bound."""
        low, high = self.bounds
        if self.edges:
            return np.array([*self.edges[:-1], high + 1])
        count = self.bins or high - low + 1
        if count > MOST_CATEGORIES:
            return np.arange(MOST_CATEGORIES + 2)  # refused by _edges_or_bins, without allocating the range
        return low + (np.arange(count + 1) * (high + 1 - low)) // count

    @property
    def present_labels(self) -> tuple[str, ...]:
        first, last = self.edge_values[:-1].tolist(), (self.edge_values[1:] - 1).tolist()
        return tuple(str(a) if a == b else f"{a}–{b}" for a, b in zip(first, last, strict=True))


class DateAttribute(_Ranged):
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

    @property
    def present_labels(self) -> tuple[str, ...]:
        days = [(EPOCH + datetime.timedelta(days=int(d))).isoformat() for d in self.edge_values[:-1]]
        ends = [(EPOCH + datetime.timedelta(days=int(d) - 1)).isoformat() for d in self.edge_values[1:]]
        return tuple(a if a == b else f"{a}…{b}" for a, b in zip(days, ends, strict=True))
