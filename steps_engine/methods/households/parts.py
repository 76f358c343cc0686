"""A plan of linked tables as two plans: of household rows, and of rows of their other members.

Both read the same households, so their costs add up. Public tables hold both parts, told apart by a column. Both are done by
pairs; household rows that lie in places within places by places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from schemas.budget import UNIT, show_nanos
from schemas.plan import AnalysisPlan, Draw, Plan
from schemas.spec.domain import Domain
from schemas.tables import HOUSEHOLD, PERSON
from steps_engine.domain.linked import measured_members
from steps_engine.inference.place_tables import is_of_places

ROWS_OF = pa.field("rows_of", pa.string(), nullable=False)
OF_PLACES = ("level", "place")  # columns of estimates that rows of members have nothing in


@dataclass(frozen=True)
class Part:
    """One of the two: its name, its flat domain, its part of the plan, and which method does it."""

    name: str
    domain: Domain
    plan: Plan
    done_by: Literal["pairs", "places"]

    def own(self, table: pa.Table) -> pa.Table:
        """Its rows of a public table."""
        kept = table.filter(pc.equal(table[ROWS_OF.name], self.name))
        strange = [] if self.done_by == "places" else [name for name in OF_PLACES if name in table.column_names]
        return kept.drop_columns([ROWS_OF.name, *strange]).combine_chunks()

    def of(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Its rows of all tables that have parts."""
        return {stage: self.own(table) for stage, table in tables.items() if ROWS_OF.name in table.schema.names}


def parts_of(domain: Domain, plan: Plan) -> tuple[Part, Part]:
    """Household rows, and rows of other members: the number of these is estimated, whatever is known of households."""
    if domain.tables is None:
        raise ValueError("the plan is one of linked tables, and the domain has one table")
    if plan.at_most is None:
        raise ValueError("the plan does not say how many persons a household has at most")
    if counts_places(plan) != bool(domain.geographies):
        raise ValueError("places within places are counted where households have them, and nowhere else")
    members = {"rows_per_person": plan.at_most - 1, "total": "estimated"}
    return (
        Part(HOUSEHOLD, domain, _plan(plan, None, domain, {}), "places" if domain.geographies else "pairs"),
        Part(PERSON, measured_members(domain), _plan(plan, PERSON, domain, members), "pairs"),
    )


def counts_places(plan: Plan) -> bool:
    """Whether household rows are counted by place; members never are."""
    return any(is_of_places(draw) for draw in plan.draws if draw.rows_of is None)


def drawn_of(plan: Plan, rows_of: str | None) -> dict[str, Any]:
    """The draws of one part, and its lines of the plan: one for each draw of a measurement, those of members last."""
    draws = tuple(draw for draw in plan.draws if draw.rows_of == rows_of)
    members = sum(draw.rows_of is not None and draw.set in plan.served[:1] for draw in plan.draws)
    first = len(plan.layers) - members
    return {"draws": draws, "layers": plan.layers[:first] if rows_of is None else plan.layers[first:]}


def _plan(plan: Plan, rows_of: str | None, domain: Domain, more: Mapping[str, object]) -> Plan:
    """Its draws, what they cost, and of analyses the tables that it counts: those of household rows have no other columns."""
    drawn = drawn_of(plan, rows_of)
    paid = show_nanos(int(sum((draw.cost for draw in drawn["draws"]), Fraction(0)) * UNIT))
    analyses = tuple(_needing(each, rows_of, frozenset((*domain.names, *domain.coarser))) for each in plan.analyses)
    return plan.model_copy(update={**drawn, "analyses": analyses, "rho" if plan.rho else "epsilon": paid, **more})


def _needing(analysis: AnalysisPlan, rows_of: str | None, households: frozenset[str]) -> AnalysisPlan:
    needs = tuple(table for table in analysis.needs if households.issuperset(table.of) == (rows_of is None))
    return analysis.model_copy(update={"needs": needs})


def marked(draw: Draw) -> Draw:
    """A draw of the members' part, told apart from those of household rows."""
    return draw.model_copy(update={"rows_of": PERSON, "name": f"{PERSON}: {draw.name}", "tree": f"{PERSON}: {draw.tree}"})


def both(household: pa.Table, person: pa.Table) -> pa.Table:
    """Both parts of a public table; what is told of places, members have nothing in."""
    parts = [_tagged(table, name, household.schema) for name, table in ((HOUSEHOLD, household), (PERSON, person))]
    return pa.concat_tables(parts).combine_chunks()


def _tagged(table: pa.Table, name: str, schema: pa.Schema) -> pa.Table:
    own, rows = set(table.column_names), len(table)
    columns = [table[each.name] if each.name in own else pa.nulls(rows, each.type) for each in schema]
    return pa.Table.from_arrays([pa.array([name] * rows, pa.string()), *columns], schema=tagged(schema))


def tagged(schema: pa.Schema) -> pa.Schema:
    return pa.schema([ROWS_OF, *schema])
