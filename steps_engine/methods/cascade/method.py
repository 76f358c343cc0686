"""The cascade f(X1) f(X2|X1) …: one elected tree per attribute over its predecessors, sanitized at its leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.cascade import check, predict, tabulate, view
from steps_engine.methods.cascade.growth import grow
from steps_engine.methods.cascade.plan import outline
from steps_engine.methods.cascade.sanitize import sanitize
from steps_engine.methods.cascade.spec import CascadeSpec
from steps_engine.methods.cascade.synthesize import source, synthesize_cascade
from steps_engine.methods.cascade.tables import (
    estimates_table,
    noisy_table,
    read_noisy,
    read_sanitized,
    read_trees,
    schemas_of,
    trees_table,
)
from steps_engine.methods.checked import Checked
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CascadeMethod:
    """One tree per attribute. A Bayesian network is one too, and shares everything after the election."""

    name: str = "cascade"
    spec: type[MethodSpec] = CascadeSpec

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance)

    def candidate(self, release: Release) -> Candidate | None:
        return predict.candidate(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        return trees_table(domain, grow(domain, plan, counts, randomness))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        return noisy_table(sanitize(domain, read_trees(domain, structure), plan, counts, randomness))

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        return estimates_table(plan, read_noisy(domain, read_trees(domain, structure), noisy))

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        return synthesize_cascade(domain, plan, read_sanitized(domain, tables), which_set, randomness)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return schemas_of(plan)

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return view.sketch(plan)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        return source(domain, plan, read_sanitized(domain, tables), number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        return tabulate.lacking(domain, plan, tables, asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        return tabulate.tabulate(domain, plan, tables, asked)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        return view.tree_counts(domain, plan, tables, layer)


CASCADE = CascadeMethod()
