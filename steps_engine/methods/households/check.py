"""Checks of published tables of linked tables: each part as pairs, or places, are checked. Imports nothing of the planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.noise_test import NoiseTest
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.households.parts import OF_PLACES, ROWS_OF, Part, parts_of
from steps_engine.methods.pairs import check as pairs
from steps_engine.methods.places import check as places

CHECKS = {"pairs": pairs.check, "places": places.check}


def check(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Checked:
    found = Findings()
    parts = found.attempt("plan", parts_of, domain, plan)
    if parts is None:
        return Checked(tuple(found.found))
    for stage, table in tables.items():
        if ROWS_OF.name in table.column_names:
            found.collect(stage, _part_problems, table, parts)
    household, person = (CHECKS[part.done_by](part.domain, part.plan, part.of(tables)) for part in parts)
    findings = [*found.found, *household.findings, *((stage, f"person: {text}") for stage, text in person.findings)]
    ends = None if household.ends is None or person.ends is None else {**household.ends, **person.ends}
    return Checked(tuple(findings), ends=ends, rows=household.rows, noise=_together(household.noise, person.noise))


def _together(household: NoiseTest | None, person: NoiseTest | None) -> NoiseTest | None:
    """What was tested of the noise in both parts; None where it could not be in one of them."""
    if household is None or person is None:
        return None
    return NoiseTest(
        household.contrasts + person.contrasts,
        (*household.problems, *(f"person: {text}" for text in person.problems)),
        (*household.untested, *(f"person: {name}" for name in person.untested)),
    )


def _part_problems(table: pa.Table, parts: tuple[Part, Part]) -> Iterator[str]:
    """Household rows first, then members, and nothing else."""
    given, names = table[ROWS_OF.name].to_pylist(), [part.name for part in parts]
    if given != sorted(given, key=names.index):
        yield "does not have the household's part first and the members' after it"
    told = [name for name in OF_PLACES if name in table.column_names]
    of_members = table.filter(pc.not_equal(table[ROWS_OF.name], parts[0].name))
    if any(of_members[name].null_count < len(of_members) for name in told):
        yield "tells of members by place, who were not counted so"
