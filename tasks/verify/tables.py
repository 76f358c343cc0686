"""How the tables of each method are checked: by the method's own check of its structure and numbers, never by its planner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from schemas import tables
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.linked_records import Members, are_households, link_problems
from steps_engine.methods.checked import Checked, Findings, TableCheck
from steps_engine.methods.registry import METHODS
from tasks.publishing import bundle
from tasks.publishing.formats import copies
from tasks.tables_on_disk import Stored
from tasks.verify.files import open_table, read_table
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


def check_set(
    files: Mapping[str, Path], number: int, domain: Domain, checked: Checked, found: Findings, by_values: bool = True
) -> None:
    """One synthetic set: its rows, and that its copies in other formats hold the same.

    `by_values`: whether comparisons within a household are kept value by value, or by an earlier rule bin by bin.
    """
    stage = f"synthetic-{number}"
    name = _file(stage)
    if name not in files:
        return
    said = checked.cells(number) if checked.cells is not None else None
    rows = int(said[1].sum()) if said is not None else None
    records = found.attempt(name, open_table, files[name], tables.records(domain), rows)
    if records is None:
        return
    found.collect(name, record_problems, domain, records, said, domain.conditionals if by_values else ())
    if checked.rows is not None:
        found.collect(name, number_problems, domain, records.num_rows, *checked.rows(number))
    _check_copies(stage, files, records, found)
    if domain.tables is not None:
        _check_linked(files, number, domain, records, found, by_values)


def _check_copies(stage: str, files: Mapping[str, Path], records: Stored, found: Findings) -> None:
    for other, form in copies(stage, files):
        if found.attempt(other, form.is_copy, files[other], records) is False:
            found.add(other, "does not hold the rows of the Parquet file")


def _check_linked(
    files: Mapping[str, Path], number: int, domain: Domain, records: Stored, found: Findings, by_values: bool
) -> None:
    """Households are those of the household rows; persons are as many as these say, and members break no rule."""
    read = {}
    for kind, schema in tables.linked(domain).items():
        name = _file(f"{kind}-{number}")
        table = found.attempt(name, open_table, files[name], schema) if name in files else None
        if table is not None:
            read[kind] = table
            _check_copies(f"{kind}-{number}", files, table, found)
    household, person = (_file(f"{kind}-{number}") for kind in (tables.HOUSEHOLD, tables.PERSON))
    if tables.HOUSEHOLD in read:
        if found.attempt(household, are_households, domain, records, read[tables.HOUSEHOLD]) is False:
            found.add(household, "does not hold the households of the household rows, in order and with keys 1, 2, …")
    if tables.PERSON in read and found.collect(person, link_problems, domain, records, read[tables.PERSON]):
        members = Members(domain, records, read[tables.PERSON])
        conditionals = domain.member_conditionals if by_values else ()
        found.collect(person, record_problems, domain.counted, members, None, conditionals)


def _file(stage: str) -> str:
    return f"{stage}.parquet"
