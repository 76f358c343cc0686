"""What a method is: everything between exact counts and synthetic records, from public tables to public tables.

A method lives in one folder and is registered under its name (registry.py). Stages, page, verifier, notebook and studies
know methods through this protocol alone. Only `build` (if the plan elects) and `sanitize` see exact counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.methods.blocks import Block
from steps_engine.methods.checked import Checked
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, pa.Table]  # by stage: tree, noisy-counts, consistent-counts, synthetic-1, …


@dataclass(frozen=True)
class Candidate:
    """What `decomposition: auto` would ask of a method, and the part of all rows that small margins would misplace, predicted
    from public inputs.
    """

    spec: MethodSpec
    predicted_error: float
    why: str


def of_small_margins(two: float, three: float) -> float:
    """One figure of both distances, √(two·three): of two methods, each ahead in one, the one that is further ahead has less."""
    return float(f"{min(math.sqrt(two * three), 1.0):.3g}")


@runtime_checkable
class Linking(Protocol):
    """A method of linked tables: its sets are household rows, and tables that follow from them."""

    def link(
        self, domain: Domain, plan: Plan, tables: Tables, number: int, blocks: Sequence[Block], randomness: Randomness
    ) -> Iterator[dict[str, pa.Table]]:
        """Of one set, block by block: its household rows (`synthetic`), and what follows from them by the names of its tables.

        Of each block one table or several in order; no more than a block need be held. What is not wanted is passed over: the
        others are what they are without it.
        """
        ...


class Method(Protocol):
    """One way from counts to records."""

    @property
    def name(self) -> str:
        """What `decomposition:` says."""
        ...

    @property
    def spec(self) -> type[MethodSpec]:
        """The options that `method:` may hold."""
        ...

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        """What would be drawn and what that takes, from public inputs alone."""
        ...

    def candidate(self, release: Release) -> Candidate | None:
        """How this method would do under `auto`; None where it is not to be considered."""
        ...

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        """The structure: which nodes there are. `counts` are given where the plan elects."""
        ...

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        """Exact counts of every node plus the noise that was paid for."""
        ...

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        """Estimates with standard errors from noisy counts."""
        ...

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        """The records of one set (1…m)."""
        ...

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        """The schema of every public table beside the records."""
        ...

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        """Everything that does not hold in published tables, as far as they are there. Reads no plan but the published one."""
        ...

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        """What the page shows of published tables."""
        ...

    def sketch(self, plan: Plan) -> Sketch:
        """What a reader of the plan is shown before anything is drawn."""
        ...

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        """Published estimates of one layer (or one attribute's tree), with labels and standard errors."""
        ...
