"""Households: two linked tables, measured as household rows, by pairs or places, and other members' rows, by pairs."""

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
from steps_engine.domain.linked import measured_parts
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.checked import Checked
from steps_engine.methods.households import check, view
from steps_engine.methods.households.parts import Part, both, counts_places, parts_of, tagged
from steps_engine.methods.households.plan import candidate, outline
from steps_engine.methods.households.spec import HouseholdsSpec
from steps_engine.methods.households.synthesize import Members, plausible, published
from steps_engine.methods.pairs.method import PAIRS, PairsMethod
from steps_engine.methods.pairs.tables import read_structure
from steps_engine.methods.places.method import PLACES, PlacesMethod
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


DONE_BY: dict[str, PairsMethod | PlacesMethod] = {"pairs": PAIRS, "places": PLACES}


@dataclass(frozen=True)
class HouseholdsMethod:
    """Pairs twice, or places and pairs, and members given their households."""

    name: str = "households"
    spec: type[MethodSpec] = HouseholdsSpec

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance)

    def candidate(self, release: Release) -> Candidate | None:
        return candidate(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        assert counts is not None  # its margins are drawn with the structure
        parts = zip(parts_of(domain, plan), measured_parts(domain, counts), strict=True)
        return both(*(DONE_BY[part.done_by].build(part.domain, part.plan, own, randomness) for part, own in parts))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        return both(
            *(
                DONE_BY[part.done_by].sanitize(part.domain, part.plan, own, part.own(structure), randomness)
                for part, own in zip(parts_of(domain, plan), measured_parts(domain, counts), strict=True)
            )
        )

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        return both(
            *(
                DONE_BY[part.done_by].correct(part.domain, part.plan, part.own(structure), part.own(noisy), randomness)
                for part in parts_of(domain, plan)
            )
        )

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        """Household rows; `link` makes the linked tables of them."""
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        household, _ = parts_of(domain, plan)
        return DONE_BY[household.done_by].blocks(domain, household.plan, household.of(tables), which_set, randomness)

    def link(
        self, domain: Domain, plan: Plan, tables: Tables, number: int, blocks: Sequence[Block], randomness: Randomness
    ) -> Iterator[dict[str, pa.Table]]:
        """Households and persons of one set, with their keys, beside each block of its household rows."""
        _, person = parts_of(domain, plan)
        return published(domain, person, tables, number, randomness).linked(blocks, randomness)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        """Of household rows, as those of one table are sampled."""
        household, _ = parts_of(domain, plan)
        return DONE_BY[household.done_by].source(domain, household.plan, household.of(tables), number, randomness)

    def members(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Members:
        """Whom such household rows live with."""
        _, person = parts_of(domain, plan)
        return plausible(domain, person, tables, number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        """Of household rows what their method says; of persons all of it: reference persons and others were measured apart."""
        if domain.tables is None:
            return [tuple(domain.names[j] for j in each) for each in asked]
        household, _ = parts_of(domain, plan)
        return DONE_BY[household.done_by].lacking(domain, household.plan, household.of(tables), asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        if domain.tables is None:
            return "reference persons and other members were counted apart"
        household, _ = parts_of(domain, plan)
        return DONE_BY[household.done_by].tabulate(domain, household.plan, household.of(tables), asked)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        method = DONE_BY["places" if counts_places(plan) else "pairs"]
        return {stage: tagged(schema) for stage, schema in method.schemas(plan).items()}

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return view.sketch(plan)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        """Household rows' tables first, then members'."""
        household, person = parts_of(domain, plan)
        first = _tables(household, tables)
        part, number = (household, layer) if layer <= first else (person, layer - first)
        return DONE_BY[part.done_by].counts(part.domain, part.plan, part.of(tables), number)


def _tables(household: Part, tables: Tables) -> int:
    """How many there are of household rows."""
    if household.done_by == "places":
        found = read_measured(household.domain, household.plan, household.of(tables))
        return len(found.places.others) + len(found.nation.tables) + len(found.tables)
    return len(household.domain.sizes) + len(
        read_structure(household.domain, household.plan, household.own(tables["tree"])).tables
    )


HOUSEHOLDS = HouseholdsMethod()
