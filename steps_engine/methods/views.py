"""What people are shown of a release, as plain values: terminal, Prefect UI and page draw them, each in its own way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steps_engine.inference.reach import HEAVIEST


@dataclass(frozen=True)
class SketchRow:
    """One line of a plan: a layer, or one attribute's tree."""

    number: int
    what: str
    nodes: str
    share: str
    scale: float | None
    expected_error: float


@dataclass(frozen=True)
class Sketch:
    """A plan at a glance: its lines, what a line is called, how to draw it, and what else to know."""

    row: str  # layer, tree, …
    splits: str  # what the second column says
    rows: tuple[SketchRow, ...]
    picture: Literal["layers", "shares"]
    draws: dict[str, str]  # of each draw's name, what it sanitizes or elects
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Margin:
    """Counts of one attribute's categories: estimates with standard errors, and the mean over the synthetic sets."""

    attribute: str
    labels: tuple[str, ...]
    estimate: np.ndarray
    error: np.ndarray
    synthetic: np.ndarray
    reach: np.ndarray | None = None  # half of each 95 % interval, by the law of its noise; None: by a bound for any law

    @property
    def half(self) -> np.ndarray:
        """Half of each category's 95 % interval."""
        return HEAVIEST * self.error if self.reach is None else self.reach


@dataclass(frozen=True)
class Total:
    """The number of rows: estimated with its standard error, and in each synthetic set."""

    estimate: float
    error: float
    rows: tuple[int, ...]
    reach: float | None = None

    @property
    def half(self) -> float:
        return HEAVIEST * self.error if self.reach is None else self.reach


@dataclass(frozen=True)
class Pair:
    """Two attributes: whether some count tells of both at once, and how strongly against the noise."""

    first: str
    second: str
    told: Literal["measured", "through others", "independent"]
    strength: float | None = None  # of what was measured: about 1 where it is noise; None: not computed
    clear: bool = False


@dataclass(frozen=True)
class Branch:
    """A node of a tree and the branches below it; a stub stands for so many that are not shown."""

    label: str
    estimate: float
    error: float
    share: float
    children: tuple[Branch, ...] = ()
    stub: bool = False


@dataclass(frozen=True)
class Dependent:
    """An attribute, the earlier ones that it was split on (True: at its root), and what was sanitized of it."""

    name: str
    on: tuple[tuple[str, bool], ...]
    histograms: int  # 0: none of its own below the others
    categories: int


@dataclass(frozen=True)
class LevelView:
    """The places of one level: rows of each, estimated with standard errors, and the mean over the synthetic sets."""

    level: str
    labels: tuple[str, ...]
    parents: tuple[str, ...]  # the places of the level above in which they lie; empty at the coarsest
    estimate: np.ndarray
    error: np.ndarray
    reach: np.ndarray  # half of each 95 % interval
    synthetic: np.ndarray
    counted: tuple[str, ...]  # attributes that were counted by place at this level

    @property
    def half(self) -> np.ndarray:
        return self.reach


@dataclass(frozen=True)
class View:
    """What the page shows: margins from how they were estimated, the structure with a sentence above and below, remarks."""

    total: Total
    margins: tuple[Margin, ...]
    estimated_by: str  # begins the sentence over the margins
    heading: str
    text: str
    caption: str
    tree: Branch | None = None
    network: tuple[Dependent, ...] = ()
    remarks: tuple[str, ...] = ()
    warning: str = ""  # on intervals from the sets
    pairs: tuple[Pair, ...] = ()  # every pair of attributes with a choice, in the domain's order
    derived: tuple[Margin, ...] = ()  # of what follows from attributes
    standard_errors: float = HEAVIEST  # that hold 95 % of whatever stands on the page without an exact law
    levels: tuple[LevelView, ...] = ()  # of places within places, coarsest first
