"""Places: the nation by pairs, counts of places at every level, attributes by place as deep as they do not drown."""

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
from steps_engine.domain.places import places_of
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.checked import Checked
from steps_engine.methods.pairs.measure import build
from steps_engine.methods.pairs.tables import structure_table
from steps_engine.methods.places import check, tabulate, view
from steps_engine.methods.places.measure import sanitize
from steps_engine.methods.places.nation import NationCounts, nation_plan
from steps_engine.methods.places.plan import outline
from steps_engine.methods.places.predict import candidate
from steps_engine.methods.places.rows_in_blocks import blocks
from steps_engine.methods.places.spec import PlacesSpec
from steps_engine.methods.places.synthesize import source
from steps_engine.methods.places.tables import estimates, noisy_counts, read_measured, read_nation, schemas_of, with_noisy
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PlacesMethod:
    """Places within places."""

    name: str = "places"
    spec: type[MethodSpec] = PlacesSpec
    blocks_apart: bool = True

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance)

    def candidate(self, release: Release) -> Candidate | None:
        return candidate(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        places = places_of(domain)
        of_nation = NationCounts(places, cast(Counts, counts))
        return structure_table(build(places.nation, nation_plan(plan, places), of_nation, randomness))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        nation = read_nation(domain, plan, structure)
        return noisy_counts(sanitize(places_of(domain), plan, nation, counts, randomness))

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        return estimates(with_noisy(domain, plan, read_nation(domain, plan, structure), noisy))

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        return blocks(read_measured(domain, plan, tables), which_set, randomness)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return schemas_of(plan)

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return view.sketch(plan)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        return source(read_measured(domain, plan, tables), number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        return tabulate.lacking(domain, plan, tables, asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        return tabulate.tabulate(domain, plan, tables, asked)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        return view.table_counts(domain, plan, tables, layer)


PLACES = PlacesMethod()
