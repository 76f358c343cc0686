"""Households: two linked tables, measured as household rows and rows of their other members, both by pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import parted
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.checked import Checked
from steps_engine.methods.households import check, view
from steps_engine.methods.households.parts import both, parts_of, tagged
from steps_engine.methods.households.plan import candidate, outline
from steps_engine.methods.households.spec import HouseholdsSpec
from steps_engine.methods.households.synthesize import Members, plausible, published
from steps_engine.methods.pairs.method import PAIRS
from steps_engine.methods.pairs.tables import read_structure
from steps_engine.methods.pairs.view import sketch
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class HouseholdsMethod:
    """Pairs twice, and members given their households."""

    name: str = "households"
    spec: type[MethodSpec] = HouseholdsSpec

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance)

    def candidate(self, release: Release) -> Candidate | None:
        return candidate(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        assert counts is not None  # its margins are drawn with the structure
        parts = zip(parts_of(domain, plan), parted(domain, counts), strict=True)
        return both(*(PAIRS.build(part.domain, part.plan, own, randomness) for part, own in parts))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        parts = zip(parts_of(domain, plan), parted(domain, counts), strict=True)
        return both(*(PAIRS.sanitize(part.domain, part.plan, own, part.own(structure), randomness) for part, own in parts))

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        parts = parts_of(domain, plan)
        return both(
            *(PAIRS.correct(part.domain, part.plan, part.own(structure), part.own(noisy), randomness) for part in parts)
        )

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        """Household rows; `link` makes the linked tables of them."""
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        household, _ = parts_of(domain, plan)
        return PAIRS.blocks(domain, household.plan, household.of(tables), which_set, randomness)

    def link(
        self, domain: Domain, plan: Plan, tables: Tables, number: int, blocks: Sequence[Block], randomness: Randomness
    ) -> Iterator[dict[str, pa.Table]]:
        """Households and persons of one set, with their keys, beside each block of its household rows."""
        _, person = parts_of(domain, plan)
        return published(domain, person, tables, number, randomness).linked(blocks, randomness)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        """Of household rows, as pairs are sampled."""
        household, _ = parts_of(domain, plan)
        return PAIRS.source(domain, household.plan, household.of(tables), number, randomness)

    def members(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Members:
        """Whom such household rows live with."""
        _, person = parts_of(domain, plan)
        return plausible(domain, person, tables, number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        """Of household rows as pairs do; of persons, of whom reference persons and others were measured apart, all of it."""
        if domain.tables is None:
            return [tuple(domain.names[j] for j in each) for each in asked]
        household, _ = parts_of(domain, plan)
        return PAIRS.lacking(domain, household.plan, household.of(tables), asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        if domain.tables is None:
            return "reference persons and other members were counted apart"
        household, _ = parts_of(domain, plan)
        return PAIRS.tabulate(domain, household.plan, household.of(tables), asked)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return {stage: tagged(schema) for stage, schema in PAIRS.schemas(plan).items()}

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return sketch(plan)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        """Household rows' tables first, then members'."""
        household, person = parts_of(domain, plan)
        first = len(domain.sizes) + len(read_structure(domain, household.plan, household.own(tables["tree"])).tables)
        part, number = (household, layer) if layer <= first else (person, layer - first)
        return PAIRS.counts(part.domain, part.plan, part.of(tables), number)


HOUSEHOLDS = HouseholdsMethod()
