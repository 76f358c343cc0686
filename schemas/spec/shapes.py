"""Public shapes: how synthetic values lie within bins, and beyond the last one. Published before, never from records."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from schemas.spec.values import Number
from schemas.spec.yaml import Strict, problem_at

MOST_FINE_VALUES = 100_000
NAMED = ("uniform", "triangular", "geometric")


class Above(Strict):
    """The category of all values above the bounds, and the shape of synthetic values there."""

    shape: Literal["exponential", "pareto"] = Field(description="`exponential` needs `mean`, `pareto` needs `alpha`.")
    mean: Number | None = Field(default=None, description="The mean of the values above the bounds, as it is publicly known.")
    alpha: Number | None = Field(default=None, description="The tail index of a Pareto distribution, above 1.")

    @model_validator(mode="after")
    def _has_its_parameter(self) -> Self:
        wanted, other = ("mean", "alpha") if self.shape == "exponential" else ("alpha", "mean")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"shape: {self.shape} needs {wanted}, and no {other}")
        if self.alpha is not None and not 1 < self.alpha <= 1000:
            raise problem_at(("alpha",), f"must be above 1, so that there is a mean, and at most 1000; not {self.alpha:.12g}")
        return self

    def must_begin_at(self, name: str, high: float, step: float) -> None:
        if self.mean is not None and self.mean <= high + step:
            least = f"{high + step:.12g}"
            raise problem_at(
                ("above", "mean"), f"{name}: the mean of values above {high:.12g} lies above {least}, not at {self.mean:.12g}"
            )
        if self.alpha is not None and high <= 0:
            raise problem_at(("above",), f"{name}: a Pareto distribution begins above 0; the upper bound is {high:.12g}")


def _listed_weights(weights: Any) -> Any:
    if not isinstance(weights, tuple | list):
        raise ValueError(f"is a CSV file of two columns beside this one, or a list of [value, weight]; not {weights!r}")
    return weights


class Weighted(Strict):
    """Values that may occur, each with a weight: within a bin, they are drawn in proportion."""

    weights: Annotated[tuple[tuple[Number, Number], ...], BeforeValidator(_listed_weights)] = Field(
        min_length=1,
        max_length=MOST_FINE_VALUES,
        description="[value, weight] for every value that may occur, or a CSV file of two such columns, with a header.",
    )

    @model_validator(mode="after")
    def _weighs(self) -> Self:
        values, weights = np.array(self.weights).T
        if (np.diff(values) <= 0).any():
            raise problem_at(("weights",), "values must increase from one to the next")
        if (weights < 0).any():
            raise problem_at(("weights",), "a weight is 0 or more")
        return self

    def must_fill(self, name: str, edges: np.ndarray, highest: float, spikes: tuple[float, ...]) -> None:
        """Every value lies within the bounds, is no spike, and every bin has one with a weight."""
        values, weights = np.array(self.weights).T
        at = ("within", "weights")
        if (outside := values[(values < edges[0]) | (values > highest)]).size:
            raise problem_at(at, f"{name}: {outside[0]:.12g} lies outside the bounds")
        if (twice := values[np.isin(values, spikes)]).size:
            raise problem_at(at, f"{name}: {twice[0]:.12g} has a category of its own, by at; leave it out here")
        bin_ = np.minimum(np.searchsorted(edges, values, side="right") - 1, len(edges) - 2)
        if (empty := np.flatnonzero(np.bincount(bin_, weights, minlength=len(edges) - 1) <= 0)).size:
            low, high = edges[[empty[0], empty[0] + 1]]
            raise problem_at(at, f"{name}: no value with a weight lies in the bin from {low:.12g} to {high:.12g}; add one")


def _way_within(value: Any) -> Any:
    if value == "uniform":
        return None
    if not isinstance(value, dict | Weighted) and value not in (*NAMED, None):
        raise ValueError(f"is one of {', '.join(NAMED)}, or {{weights: …}}; not {value!r}")
    return value


def _which(value: Any) -> str:
    return "nothing" if value is None else "a word" if isinstance(value, str) else "weights"


AnyWithin = Annotated[
    Annotated[None, Tag("nothing")]
    | Annotated[Literal["triangular", "geometric"], Tag("a word")]
    | Annotated[Weighted, Tag("weights")],
    Discriminator(_which),
    BeforeValidator(_way_within),
]
