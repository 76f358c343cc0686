"""Measures of utility, one per file. Evaluation, JSON, terminal, page and the confidential table go through all of them.

A file here holds ENTRY, a Measure: its name, its place on the page, and a function from coded tables to a Result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.registry import Registry
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.section import Section
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class Options:
    """Classifier of SPECKS, folds (0: in-sample as in the paper), and bootstraps behind the null values."""

    classifier: str = "auto"
    cross_fit: int = 0
    null: int = 10


class Result(Protocol):
    """What a measure found. It is as confidential as the records it was computed from."""

    def figures(self) -> Mapping[str, float | None]:
        """By name, None where not defined. Whole numbers and truths are for JSON and table, fractions for terminals too."""
        ...

    def details(self) -> Mapping[str, Mapping[str, Any]]:
        """What JSON says besides, by the key it stands under; what stands under the measure's own name joins its figures."""
        ...

    def section(self) -> Section:
        """What a reader is told and shown."""
        ...


@dataclass(frozen=True)
class Measure:
    """`compare` is given the original, the synthetic sets (checked to be comparable) and a source of randomness."""

    name: str  # the key of its figures in JSON, and their measure in the table
    place: int
    compare: Callable[[Coded, Sequence[Coded], Randomness, Options], Result]
    applies: Callable[[Coded], bool] = lambda original: True  # to tables such as this one; elsewhere nothing is said of it


MEASURES = Registry(__name__, Measure)
