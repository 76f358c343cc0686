"""What an outsider finds in linked tables that do not agree, though every hash holds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.analyses import planned_problems
from tasks.verify.tables import check_set
from tests.steps_engine.methods.households.small import counted, domain, plan, release, some_homes
from tests.steps_engine.methods.households.test_households import changed

OF = domain()


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return run(release(OF, epsilon=8), counted(OF, some_homes(150)), SeededRandomness(3))


def found(folder: Path, tables: dict[str, pa.Table]) -> dict[str, str]:
    """By file, what the check of the first set finds."""
    files = {f"{stage}.parquet": folder / f"{stage}.parquet" for stage in ("synthetic-1", "household-1", "person-1")}
    for name, path in files.items():
        pq.write_table(tables[name.removesuffix(".parquet")], path)
    findings = Findings()
    check_set(files, 1, OF, Checked(()), findings)
    return dict(findings.found)


def test_tables_that_agree_are_found_so(made, tmp_path):
    assert not found(tmp_path, made.tables)
    assert not list(plan_problems(made.plan, None)) and not list(domain_problems(made.plan, OF))


def test_households_that_are_not_those_of_the_rows_are_found(made, tmp_path):
    table = made.tables["household-1"]
    tenure = {"own": "rent", "rent": "own"}[table["tenure"][0].as_py()]
    said = found(tmp_path, made.tables | {"household-1": changed(table, "tenure", 0, tenure)})
    assert "does not hold the households" in said["household-1.parquet"]


def test_a_person_in_another_household_is_found(made, tmp_path):
    table = made.tables["person-1"]
    said = found(tmp_path, made.tables | {"person-1": changed(table, "household", 0, 2)})
    assert "as many persons in every household" in said["person-1.parquet"]


def test_a_person_too_few_is_found(made, tmp_path):
    table = made.tables["person-1"]
    assert "person-1.parquet" in found(tmp_path, made.tables | {"person-1": table.slice(0, len(table) - 1)})


def test_what_is_said_of_analyses_is_looked_at(tmp_path):
    """A table of persons is measured where one of reference persons and one of members is, each in its own rows."""
    asked = plan(OF, (("tenure", "sex", "grade"), ("tenure", "n_person")), epsilon=Decimal(8))
    assert not list(planned_problems(asked, OF))
    for of in (("tenure", "sex", "grade"), ("tenure", "reference_sex", "reference_grade")):
        fewer = asked.model_copy(update={"draws": tuple(draw for draw in asked.draws if of not in draw.tables)})
        assert f"the table of {', '.join(of)} is not measured" in " ".join(planned_problems(fewer, OF))
    others = [each.model_copy(update={"rows_of": None}) for each in asked.analyses]
    assert "of other rows than those" in " ".join(planned_problems(asked.model_copy(update={"analyses": others}), OF))


def test_a_plan_for_smaller_households_than_the_domain_allows_is_found(made):
    """Less noise for members than eight persons need would be judged by the plan's own word."""
    smaller = made.plan.model_copy(update={"at_most": 2})
    assert any("persons in a household differ" in problem for problem in domain_problems(smaller, OF))
    larger = made.plan.model_copy(update={"at_most": 9})
    assert any("one household can change it by 8" in problem for problem in plan_problems(larger, None))
