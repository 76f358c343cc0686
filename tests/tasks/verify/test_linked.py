"""What an outsider finds in linked tables that do not agree, though every hash holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.manifest import SEEDS_1, SEEDS_2, seeds_for
from steps_engine.domain.linked_records import Everybody, everybody_table
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tasks import tables_on_disk
from tasks.publishing.publication import publish
from tasks.tables_on_disk import Stored
from tasks.verify import tables as verified_tables
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.analyses import planned_problems
from tasks.verify.bundle import BY_BINS, Problem, Verdict, holds
from tasks.verify.files import open_table
from tasks.verify.recompute import verify_again
from tasks.verify.tables import check_set
from tests.steps_engine.methods.households.small import counted, domain, plan, release, some_homes
from tests.steps_engine.methods.households.test_households import changed
from tests.steps_engine.methods.households.test_within import lawful
from tests.steps_engine.methods.households.test_within import of as ages_of
from tests.tasks.publishing.making import Made, edit_table, make, sign_again

OF = domain()


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return run(release(OF, epsilon=8), counted(OF, some_homes(150)), SeededRandomness(3))


@pytest.fixture(params=[None, 7], ids=["whole", "in blocks"], autouse=True)
def few_at_a_time(request, monkeypatch) -> None:
    """Whatever is found is found in blocks too, of few rows of either table; nothing is read whole."""
    if request.param:
        monkeypatch.setattr(tables_on_disk, "MOST_ROWS", request.param)
        monkeypatch.setattr(tables_on_disk, "FEWEST_ROWS", request.param)
        monkeypatch.setattr(verified_tables, "open_table", lambda *asked: Unread(open_table(*asked).path))


class Unread(Stored):
    def read(self, columns=None):
        raise AssertionError("all rows were read at once")


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


@pytest.fixture(scope="module")
def within(tmp_path_factory) -> Made:
    """A published release whose children are at most as old as their parents, by bins of twenty years."""
    asked = release(ages_of("age <= reference_age"), epsilon=20)
    found = make(tmp_path_factory.mktemp("within") / "home", asked, counted(asked.domain, lawful("age <= reference_age")))
    publish(*found.arguments, seeds=seeds_for(asked.domain))
    return found


def verified(within: Made, folder: Path, change: Callable[[Path], None], seeds: str = SEEDS_2) -> Verdict:
    """What is found in a copy that was changed, and signed again by its publisher."""
    shutil.copytree(within.home.public / within.release.name, folder)
    change(folder)
    sign_again(folder, within.home, lambda manifest: manifest.update(seeds=seeds))
    return verify_again(folder, within.home.keys / "signing-key.pub")


def make_a_child_older(folder: Path) -> None:
    """By a few years, in the same bin: categories cannot tell."""
    rows, path = pq.read_table(folder / "synthetic-1.parquet").to_pylist(), folder / "person-1.parquet"

    def older(persons: dict[str, list]) -> None:
        for i, household in enumerate(persons["household"]):
            age, parent = persons["age"][i], rows[household - 1]["reference_age"]
            if (
                persons["relation"][i] == "child"
                and None not in (age, parent)
                and age // 20 == parent // 20
                and parent % 20 < 19
            ):
                persons["age"][i] = parent + 1
                return
        raise AssertionError("nobody to make older")

    edit_table(path, older)


@pytest.mark.whole
def test_a_child_older_than_its_parent_is_found_within_a_bin(within, tmp_path):
    assert within.release.domain.member_conditionals and seeds_for(OF) == SEEDS_1
    honest = verified(within, tmp_path / "honest", lambda folder: None)
    assert honest.problems == () and all(honest.recomputed.same.values()) and "person-1.parquet" in honest.recomputed.same
    lie = verified(within, tmp_path / "lie", make_a_child_older)
    assert Problem("person-1.parquet", "has a row whose age and reference_age break a rule") in lie.problems
    assert not lie.recomputed.same["person-1.parquet"]


@pytest.mark.whole
def test_a_bundle_of_the_earlier_rule_verifies_as_it_did_and_says_what_it_keeps(within, tmp_path):
    """Its rows hold bin by bin: that is no problem there, and a note; they are not made again by another rule."""
    earlier = verified(within, tmp_path / "earlier", make_a_child_older, SEEDS_1)
    assert holds(earlier.problems) and [problem.text for problem in earlier.problems] == [BY_BINS]
    assert earlier.recomputed.same == {} and "The version that made the bundle can" in earlier.recomputed.why_not


def test_the_last_person_and_the_last_household_are_looked_at(made, tmp_path):
    persons, households = made.tables["person-1"], made.tables["household-1"]
    twice = pa.concat_tables([persons, persons.slice(len(persons) - 1)])
    assert "as many persons in every household" in found(tmp_path, made.tables | {"person-1": twice})["person-1.parquet"]
    for lie in (households.slice(0, len(households) - 1), pa.concat_tables([households, households.slice(0, 1)])):
        assert "does not hold the households" in found(tmp_path, made.tables | {"household-1": lie})["household-1.parquet"]
    last = len(persons) - 1 - persons["person"].to_pylist()[::-1].index(2)
    grade = persons["grade"][last].as_py()
    assert not found(tmp_path, made.tables | {"person-1": changed(persons, "grade", last, (grade + 1) % 3)})  # lawful
    assert (
        "outside the domain"
        in found(tmp_path, made.tables | {"person-1": changed(persons, "grade", last, 9)})["person-1.parquet"]
    )


def test_everybody_in_blocks_is_everybody(made, tmp_path):
    rows, persons = (made.tables[f"{kind}-1"] for kind in ("synthetic", "person"))
    for name, table in (("rows", rows), ("persons", persons)):
        pq.write_table(table, tmp_path / name)
    stored = Everybody(OF, Stored(tmp_path / "rows"), Stored(tmp_path / "persons"))
    assert stored.num_rows == len(persons)
    whole = everybody_table(OF, rows, persons)
    assert pa.concat_tables(stored.blocks()).to_pydict() == whole.to_pydict()
    for columns in (["grade", "tenure"], ["sex"], ["tenure", "n_person"]):
        assert pa.concat_tables(stored.blocks(columns)).to_pydict() == whole.select(columns).to_pydict()
    expected = pd.DataFrame(rows.to_pydict()).iloc[np.array(persons["household"]) - 1]
    assert list(everybody_table(OF, rows, persons)["tenure"].to_pylist()) == expected["tenure"].tolist()


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
