"""A plan of linked tables as two plans of pairs: of household rows, and of rows of their other members.

Both read the same households, so their costs add up. Public tables hold both parts, told apart by a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

from schemas.budget import UNIT, show_nanos
from schemas.plan import AnalysisPlan, Draw, Plan
from schemas.spec.domain import Domain
from schemas.tables import HOUSEHOLD, PERSON

ROWS_OF = pa.field("rows_of", pa.string(), nullable=False)


@dataclass(frozen=True)
class Part:
    """One of the two: its name, its flat domain, and its part of the plan."""

    name: str
    domain: Domain
    plan: Plan

    def own(self, table: pa.Table) -> pa.Table:
        """Its rows of a public table."""
        kept = table.filter(pc.equal(table[ROWS_OF.name], self.name))
        return kept.drop_columns([ROWS_OF.name]).combine_chunks()

    def of(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Its rows of all tables that have parts."""
        return {stage: self.own(table) for stage, table in tables.items() if ROWS_OF.name in table.schema.names}


def parts_of(domain: Domain, plan: Plan) -> tuple[Part, Part]:
    """Household rows, and rows of other members: the number of these is estimated, whatever is known of households."""
    if domain.tables is None:
        raise ValueError("the plan is one of linked tables, and the domain has one table")
    if plan.at_most is None:
        raise ValueError("the plan does not say how many persons a household has at most")
    return (
        Part(HOUSEHOLD, domain, _plan(plan, None, domain, {})),
        Part(PERSON, domain.counted, _plan(plan, PERSON, domain, {"rows_per_person": plan.at_most - 1, "total": "estimated"})),
    )


def _plan(plan: Plan, rows_of: str | None, domain: Domain, more: Mapping[str, object]) -> Plan:
    """Its draws, what they cost, and of analyses the tables that it counts: those of household rows have no other columns."""
    draws = tuple(draw for draw in plan.draws if draw.rows_of == rows_of)
    paid = show_nanos(int(sum((draw.cost for draw in draws), Fraction(0)) * UNIT))
    analyses = tuple(_needing(each, rows_of, frozenset(domain.names)) for each in plan.analyses)
    return plan.model_copy(update={"draws": draws, "analyses": analyses, "rho" if plan.rho else "epsilon": paid, **more})


def _needing(analysis: AnalysisPlan, rows_of: str | None, households: frozenset[str]) -> AnalysisPlan:
    needs = tuple(table for table in analysis.needs if households.issuperset(table.of) == (rows_of is None))
    return analysis.model_copy(update={"needs": needs})


def marked(draw: Draw) -> Draw:
    """A draw of the members' part, told apart from those of household rows."""
    return draw.model_copy(update={"rows_of": PERSON, "name": f"{PERSON}: {draw.name}", "tree": f"{PERSON}: {draw.tree}"})


def both(household: pa.Table, person: pa.Table) -> pa.Table:
    """Both parts of a public table."""
    schema = tagged(household.schema)
    parts = [
        pa.Table.from_arrays([pa.array([name] * len(table), pa.string()), *table.columns], schema=schema)
        for name, table in ((HOUSEHOLD, household), (PERSON, person))
    ]
    return pa.concat_tables(parts).combine_chunks()


def tagged(schema: pa.Schema) -> pa.Schema:
    return pa.schema([ROWS_OF, *schema])
