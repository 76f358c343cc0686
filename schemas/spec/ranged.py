"""What attributes of numbers, days and times of day have: values between two public bounds, in bins.

Some values may have categories of their own beside the bins (spikes), and there may be one for all values above the bounds.
Codes follow the values: a spike at a bin's first value stands before the bin, one inside it behind it, the open end last.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from schemas.spec.attribute_base import MOST_CATEGORIES, AttributeBase


class RangedBase(AttributeBase):
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
        if not low <= high or (low == high and self.kind != "integer"):
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
        return {text: None if meant is None else self._within(meant) for text, meant in self._read_as().items()}

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
    def spikes(self) -> tuple[float, ...]:
        """Values that have categories of their own beside the bins."""
        return ()

    @property
    def is_open(self) -> bool:
        """Whether there is a category for all values above the bounds."""
        return False

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers: of days, of minutes, or as they are."""
        return self.kind != "numeric"

    @property
    def step(self) -> float | None:
        """Of which synthetic values are multiples; none: they may be any number."""
        return 1.0 if self.is_whole else None

    @property
    def highest(self) -> float:
        """The highest value within the bounds."""
        return float(self.edge_values[-1]) - self.is_whole

    @property
    def is_plain(self) -> bool:
        """Whether categories are the bins alone, and nothing is known of values in them."""
        return True

    @property
    def present(self) -> int:
        return len(self.edge_values) - 1 + len(self.spikes) + self.is_open

    @property
    def layout(self) -> Layout:
        return _layout(self)

    @abstractmethod
    def _bin_labels(self) -> tuple[str, ...]: ...

    @property
    def present_labels(self) -> tuple[str, ...]:
        bins = self._bin_labels()
        if not self.spikes and not self.is_open:
            return bins
        labels = dict(zip(self.layout.bin_code.tolist(), bins, strict=True))
        labels |= dict(zip(self.layout.spike_code.tolist(), (f"{v:.12g}" for v in self.layout.spike), strict=True))
        labels |= {self.present - 1: f"> {self.highest:.12g}"} if self.is_open else {}
        return tuple(labels[code] for code in range(self.present))

    @cached_property
    def code_of(self) -> dict[float, int]:
        """The first code whose values reach each edge, or one past all of them."""
        layout = self.layout
        spikes = dict(zip(layout.spike.tolist(), layout.spike_code.tolist(), strict=True))
        codes = [*layout.bin_code.tolist(), self.present - self.is_open]
        return {edge: spikes.get(edge, code) for edge, code in zip(self.edge_values.tolist(), codes, strict=True)}


@dataclass(frozen=True, eq=False)
class Layout:
    """Which code each bin and each spike has, between which values a code's values lie, and which there are in each bin."""

    bin_code: np.ndarray
    spike: np.ndarray  # increasing
    spike_code: np.ndarray
    spike_bin: np.ndarray  # the bin in which each spike would lie
    low: np.ndarray  # one per code
    high: np.ndarray  # infinite for the open end
    first: np.ndarray  # of each bin: its least multiple of `step`, divided by it; empty where values are no multiples
    number: np.ndarray  # of its multiples, the spikes left out
    hole: np.ndarray  # of each spike that is a multiple: divided by the step, increasing
    hole_bin: np.ndarray


@lru_cache(maxsize=4096)
def _edges(attribute: RangedBase) -> np.ndarray:
    return attribute._edge_values()  # not kept in the model: an array there would break comparison


@lru_cache(maxsize=4096)
def _layout(attribute: RangedBase) -> Layout:
    edges, spike = attribute.edge_values, np.array(sorted(attribute.spikes), dtype=float)
    bins = len(edges) - 1
    home = np.clip(np.searchsorted(edges, spike, side="right") - 1, 0, bins - 1)
    part = np.where(spike == edges[home], 0, 2)  # before its bin, or behind it
    order = np.lexsort((np.append(edges[:-1], spike), np.append(np.ones(bins), part), np.append(np.arange(bins), home)))
    code = np.empty(len(order), dtype=np.int64)
    code[order] = np.arange(len(order))
    low, high = np.empty(attribute.present), np.full(attribute.present, np.inf)
    low[code[:bins]], high[code[:bins]] = _ends(attribute, home[part == 0])
    low[code[bins:]] = high[code[bins:]] = spike
    if attribute.is_open:
        low[-1] = attribute.highest + 1 if attribute.is_whole else np.nextafter(attribute.highest, np.inf)
    return Layout(code[:bins], spike, code[bins:], home, low, high, *_multiples_in(attribute, spike, home))


def _ends(attribute: RangedBase, after_spike: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each bin; those that begin with a spike begin behind it."""
    low, high = attribute.edge_values[:-1].astype(float), attribute.edge_values[1:].astype(float)
    if attribute.is_whole:
        low[after_spike] += 1
        return low, high - 1
    low[after_spike] = np.nextafter(low[after_spike], np.inf)
    high[:-1] = np.nextafter(high[:-1], -np.inf)
    return low, high


def _multiples_in(attribute: RangedBase, spike: np.ndarray, home: np.ndarray) -> tuple[np.ndarray, ...]:
    if (step := attribute.step) is None:
        return (np.empty(0),) * 4
    first = reaching(attribute.edge_values.astype(float), step)
    if not attribute.is_whole:
        first[-1] = reaching(np.nextafter(attribute.edge_values[-1:], np.inf), step)[0]  # the last bin holds the upper bound
    place = reaching(spike, step)
    held = multiple(place, step) == spike
    number = np.diff(first) - np.bincount(home[held], minlength=len(first) - 1)
    return first[:-1].astype(np.int64), number.astype(np.int64), place[held].astype(np.int64), home[held]


def multiple(of: np.ndarray, step: float) -> np.ndarray:
    """So many steps, as near to the decimal as a float comes.

    >>> multiple(np.array([3]), 0.1).tolist(), multiple(np.array([3]), 2.5).tolist()
    ([0.3], [7.5])
    """
    parts = round(1 / step)
    is_part = parts > 1 and abs(parts * step - 1) < 1e-9
    found: np.ndarray = of / parts if is_part else of * step
    return found


def reaching(values: np.ndarray, step: float) -> np.ndarray:
    """The least number of steps that reaches each value."""
    steps = np.rint(values / step)
    steps += multiple(steps, step) < values
    steps -= multiple(steps - 1, step) >= values
    return steps
