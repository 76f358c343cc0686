"""How the tables of each method are checked: by the method's own check of its structure and numbers, never by its planner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from schemas import tables
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.checked import Checked, Findings, TableCheck
from steps_engine.methods.registry import METHODS
from tasks.publishing import bundle
from tasks.publishing.formats import copies
from tasks.verify.files import read_table
from tasks.verify.records import number_problems, record_problems

CHECKS: Mapping[str, TableCheck] = METHODS  # of a method nothing but its schemas and its check is called here


def check_tables(files: Mapping[str, Path], domain: Domain, plan: Plan, found: Findings) -> Checked:
    """What the method's check finds in its tables, as far as they are there."""
    if plan.decomposition not in CHECKS:
        raise ValueError(f"decomposition {plan.decomposition!r} is not known to this verifier")
    method, read = CHECKS[plan.decomposition], {}
    for stage, schema in method.schemas(plan).items():
        table = found.attempt(_file(stage), read_table, files[_file(stage)], schema) if _file(stage) in files else None
        if table is not None:
            read[stage] = table
    checked = method.check(domain, plan, read)
    for stage, sentence in checked.findings:
        found.add(bundle.PLAN if stage == "plan" else _file(stage), sentence)
    return checked


def check_set(files: Mapping[str, Path], number: int, domain: Domain, checked: Checked, found: Findings) -> None:
    """One synthetic set: its rows, and that its copies in other formats hold the same."""
    stage = f"synthetic-{number}"
    name = _file(stage)
    if name not in files:
        return
    said = checked.cells(number) if checked.cells is not None else None
    rows = int(said[1].sum()) if said is not None else None
    records = found.attempt(name, read_table, files[name], tables.records(domain), rows)
    if records is None:
        return
    found.collect(name, record_problems, domain, records, said)
    if checked.rows is not None:
        found.collect(name, number_problems, domain, len(records), *checked.rows(number))
    for other, form in copies(stage, files):
        if found.attempt(other, form.is_copy, files[other], records) is False:
            found.add(other, "does not hold the rows of the Parquet file")


def _file(stage: str) -> str:
    return f"{stage}.parquet"
