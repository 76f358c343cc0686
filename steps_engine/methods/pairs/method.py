"""Pairs: margins, and what pairs of attributes add to them, measured; one model fitted to all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.checked import Checked
from steps_engine.methods.pairs import check, tabulate, view
from steps_engine.methods.pairs.measure import build, sanitize
from steps_engine.methods.pairs.plan import outline
from steps_engine.methods.pairs.predict import candidate
from steps_engine.methods.pairs.rows_in_blocks import blocks
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.pairs.synthesize import source
from steps_engine.methods.pairs.tables import (
    estimates_table,
    noisy_table,
    read_measured,
    read_noisy,
    read_structure,
    schemas_of,
    structure_table,
)
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PairsMethod:
    """One-way tables and interactions of pairs."""

    name: str = "pairs"
    spec: type[MethodSpec] = PairsSpec
    blocks_apart: bool = True

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance, alone=True)

    def candidate(self, release: Release) -> Candidate | None:
        return candidate(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        return structure_table(build(domain, plan, cast(Counts, counts), randomness))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        read = read_structure(domain, plan, structure)
        return noisy_table(*sanitize(read, counts, randomness))

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        return estimates_table(*read_noisy(read_structure(domain, plan, structure), noisy))

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        return blocks(*read_measured(domain, plan, tables), which_set, randomness)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return schemas_of(plan)

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return view.sketch(plan)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        return source(*read_measured(domain, plan, tables), number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        return tabulate.lacking(domain, plan, tables, asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        return tabulate.tabulate(domain, plan, tables, asked)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        return view.table_counts(domain, plan, tables, layer)


PAIRS = PairsMethod()
