"""Answers about persons of linked tables: people of one household may all be alike, and intervals allow for it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import SpecError
from steps_engine.analyses.questions import model_question
from steps_engine.analyses.results import fitted
from steps_engine.analyses.seen import seen_of
from steps_engine.answers.fit import fit_sets
from steps_engine.answers.table import Table, question_of, table_of
from steps_engine.domain.linked_records import everybody
from tests.steps_engine.methods.households.small import AT_MOST, domain, plan

OF = domain()
PERSONS = everybody(OF)
PLAN = plan(OF)


def alike(households: int, seed: int) -> pa.Table:
    """Four persons in each, who share sex; the grade is everybody's own."""
    rng = np.random.default_rng(seed)
    sex = np.repeat(np.array(["f", "m"])[rng.integers(2, size=households)], AT_MOST)
    return pa.table({"sex": pa.array(sex).dictionary_encode(), "grade": rng.integers(3, size=len(sex))})


def answered(rows: pa.Table, **where: str) -> Table:
    return table_of(question_of(["sex"], where, PERSONS), PERSONS, PLAN, {}, lambda: [rows.select(["sex", *where])])


def test_a_share_of_persons_is_covered_though_households_share_it():
    """Taken for independent, 95 % intervals held the share in two of three such populations."""
    held = []
    for seed in range(200):
        found = answered(alike(60, seed))
        held.append(found.shares.low[0] <= 0.5 <= found.shares.high[0])
    assert np.mean(held) > 0.9
    assert f"W is {AT_MOST} times what the rows say" in found.why


def test_a_count_of_persons_is_at_least_as_wide_as_households_differ():
    rows = alike(60, 3)
    of_home = (np.asarray(rows["sex"]) == "f").reshape(-1, AT_MOST).sum(axis=1)
    assert answered(rows).counts.error[0] ** 2 >= len(of_home) * of_home.var(ddof=1)


def test_a_model_of_persons_is_as_wide_as_with_one_row_per_household():
    rows = alike(200, 1)
    attributes = tuple(PERSONS.attributes[PERSONS.index(name)] for name in ("sex", "grade"))
    narrow = PERSONS.model_copy(update={"attributes": attributes, "derived": ()})
    asked = model_question("grade ~ sex", "linear", {}, PERSONS)
    told = partial(fitted, asked, PLAN, sets=[seen_of(asked, narrow, rows)])
    alone = told(narrow.model_copy(update={"unit": OF.unit}))
    assert told(narrow).variance == pytest.approx(AT_MOST * alone.variance)
    assert OF.inflation == 1.0  # a household has one row of its own


def test_an_empty_set_is_not_blamed_on_a_condition_that_nobody_gave():
    nobody = alike(1, 0).slice(0, 0)
    with pytest.raises(SpecError, match="there is no row at all in 1 of 1 sets"):
        answered(nobody)
    with pytest.raises(SpecError, match="nobody fulfils the condition in 1 of 1 sets"):
        answered(nobody, grade="1")


def test_a_model_of_an_empty_set_is_not_told_to_widen_a_condition_either():
    asked = model_question("grade ~ sex", "linear", {}, PERSONS)
    with pytest.raises(SpecError, match="set 1 has no row at all; no model can be fitted to it"):
        fit_sets(asked, PERSONS, PLAN, {}, [alike(1, 0).slice(0, 0)])
