"""Attributes that are numbers between two public bounds, in bins; what is publicly known of values in them, and beyond."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from schemas.spec.attribute_base import MOST_CATEGORIES
from schemas.spec.ranged import RangedBase
from schemas.spec.shapes import Above, AnyWithin, Weighted
from schemas.spec.values import Number
from schemas.spec.yaml import problem_at

MOST_SPIKES = 100


def _listed(values: Any) -> Any:
    """One value is a list of one."""
    return values if isinstance(values, tuple | list) else (values,)


def _step_of(step: float) -> float:
    if not 1e-9 <= step <= 1e15:
        raise ValueError(f"must be above 0, from 1e-9 to 1e15; not {step:.12g}")
    return step


Spikes = Annotated[tuple[Number, ...], BeforeValidator(_listed)]


class NumberBase(RangedBase):
    at: Spikes = Field(
        default=(),
        max_length=MOST_SPIKES,
        description="Values with categories of their own beside the bins, such as 0, or a list of them: kept exactly in rows.",
    )
    above: Above | None = Field(
        default=None,
        description="Counts all values above the bounds in one more category; synthetic ones follow a public shape there.",
    )
    within: AnyWithin = Field(
        default=None,
        description="How synthetic values lie in a bin, from public knowledge: `uniform`, `triangular` (falling to none at its "
        "upper end), `geometric` (even on a scale of logarithms; uniform in a bin that does not lie above 0), or weights.",
    )
    multiples_of: Annotated[Number, AfterValidator(_step_of)] | None = Field(
        default=None, description="Synthetic values are multiples of this, such as 1000 or 0.01; otherwise of 1, or any number."
    )

    @property
    def spikes(self) -> tuple[float, ...]:
        return self.at

    @property
    def is_open(self) -> bool:
        return self.above is not None

    @property
    def is_plain(self) -> bool:
        return not (self.at or self.above or self.within or self.multiples_of)

    @property
    def step(self) -> float | None:
        return self.multiples_of or super().step

    @property
    def fine_values(self) -> tuple[tuple[float, float], ...]:
        """Values that may occur, with their public weights, where they are listed."""
        return self.within.weights if isinstance(self.within, Weighted) else ()

    @model_validator(mode="after")
    def _spikes_stand_out(self) -> Self:
        if len(set(self.at)) < len(self.at):
            raise problem_at(("at",), f"{self.name}: a value stands twice; keep one")
        low, high = self.bounds
        if outside := [value for value in self.at if not low <= value <= high]:
            raise problem_at(("at",), f"{self.name}: {outside[0]:.12g} lies outside the bounds [{low}, {high}]")
        return self

    @model_validator(mode="after")
    def _bins_keep_values(self) -> Self:
        """Every bin has a value that a synthetic row can take."""
        if not self.at and self.multiples_of is None:
            return self
        layout = self.layout
        if not len(layout.number) or (layout.number > 0).all():
            return self
        empty = int(np.flatnonzero(layout.number < 1)[0])
        key, what = ("multiples_of", f"multiple of {self.multiples_of:.12g}") if self.multiples_of else ("at", "other value")
        low, high = self.edge_values[[empty, empty + 1]]
        raise problem_at(
            (key,), f"{self.name}: no {what} lies in the bin from {low:.12g} to {high:.12g}; widen it, or leave {key} out"
        )

    @model_validator(mode="after")
    def _beyond_the_bounds(self) -> Self:
        if self.above is not None:
            self.above.must_begin_at(self.name, float(self.bounds[1]), 1.0 if self.is_whole else 0.0)
        return self

    @model_validator(mode="after")
    def _weighs_every_bin(self) -> Self:
        if not isinstance(self.within, Weighted):
            return self
        if self.multiples_of is not None:
            raise problem_at(("multiples_of",), f"{self.name}: weights list the values that may occur; leave multiples_of out")
        self.within.must_fill(self.name, self.edge_values, self.highest, self.at)
        return self

    def _without_spikes(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The labels of bins, each with the spikes inside it that are not of it."""
        found, layout = list(labels), self.layout
        inside = layout.spike != self.edge_values[layout.spike_bin]
        for bin_ in np.unique(layout.spike_bin[inside]).tolist():
            names = (f"{spike:.12g}" for spike in layout.spike[inside & (layout.spike_bin == bin_)])
            found[bin_] += f" without {', '.join(names)}"
        return tuple(found)


class Numeric(NumberBase):
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

    def _bin_labels(self) -> tuple[str, ...]:
        shown, spikes = [f"{edge:.12g}" for edge in self.edge_values], set(self.at)
        starts = ("(" if edge in spikes else "[" for edge in self.edge_values[:-1].tolist())
        ends = [")"] * (len(shown) - 2) + ["]"]
        bins = zip(starts, shown, shown[1:], ends, strict=False)
        return self._without_spikes(f"{start}{a}, {b}{end}" for start, a, b, end in bins)


class Integer(NumberBase):
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

    @model_validator(mode="after")
    def _whole(self) -> Self:
        named = {"at": self.at, "multiples_of": (self.multiples_of or 1,), "within": [value for value, _ in self.fine_values]}
        for key, values in named.items():
            if broken := [value for value in values if value != int(value)]:
                raise problem_at((key,), f"{self.name} holds whole numbers; {broken[0]:.12g} is none")
        return self

    def _edge_values(self) -> np.ndarray:
        """First number of each bin, then one past the upper bound."""
        low, high = self.bounds
        if self.edges:
            return np.array([*self.edges[:-1], high + 1])
        count = self.bins or high - low + 1
        if count > MOST_CATEGORIES:
            return np.arange(MOST_CATEGORIES + 2)  # refused by _edges_or_bins, without allocating the range
        return low + (np.arange(count + 1) * (high + 1 - low)) // count

    def _bin_labels(self) -> tuple[str, ...]:
        first, last = self.edge_values[:-1] + np.isin(self.edge_values[:-1], self.at), self.edge_values[1:] - 1
        return self._without_spikes(
            str(a) if a == b else f"{a}–{b}" for a, b in zip(first.tolist(), last.tolist(), strict=True)
        )
