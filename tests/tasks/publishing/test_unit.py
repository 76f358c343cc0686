"""Whom a budget protects is named from the grant to the page: by household here, never by person."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from schemas.errors import SpecError
from steps_engine.analyses.results import results_of
from tasks.answers import read_bundle
from tasks.publishing.publication import publish
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, some_counts


@pytest.mark.whole
def test_the_unit_is_named_in_grant_charge_manifest_page_and_answers(tmp_path):
    unit = POLL.unit.model_copy(update={"who": "household", "column": "household_id", "rows_per_person": 3})
    made = make(tmp_path / "home", a_release(POLL.model_copy(update={"unit": unit}), GIVEN), some_counts(POLL, 500))
    folder = publish(*made.arguments).folder
    entries = {entry.kind: entry for entry in made.ledger.entries()}
    assert entries["grant"].details["unit"] == entries["charge"].details["unit"] == "household"
    assert made.ledger.account("town").unit == made.ledger.releases()[0].unit == "household"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert manifest["guarantee"]["unit"] == manifest["ledger"]["charge"]["shown"]["unit"] == "household"
    assert "For every household in the data" in manifest["guarantee"]["sentence"]
    page = (folder / "index.html").read_text()
    assert "for each household" in page and "for each person" not in page
    assert "each times 3 (the most by which 3 rows of one household make variances larger" in page
    assert "w = 3 * w  # rows are no independent answers: up to 3 are of one household\nm, W, B" in page
    with pytest.raises(SpecError, match='is for neighbours "add_remove" and unit "household"'):
        made.ledger.grant("town", 1, "for whom?", unit="person")


@pytest.mark.whole
def test_intervals_of_several_rows_of_one_person_are_computed_again_by_the_verifier(tmp_path):
    """Manifest, program and `steps fit` by one rule. Control: rows that are taken for people have narrower intervals."""
    unit = POLL.unit.model_copy(update={"rows_per_person": 3})
    sets = {"count": 3, "budget": "shared"}
    release = a_release(
        POLL.model_copy(update={"unit": unit}), {"decomposition": "pairs", "sets": sets}, epsilon="9", analyses=("wage ~ age",)
    )
    made = make(tmp_path / "home", release, some_counts(POLL, 3001))
    folder = publish(*made.arguments, seeds="steps-seeds/1").folder
    (found,) = json.loads((folder / "manifest.json").read_bytes())["analyses"]
    said = "W is 3 times what the rows say, the most that 3 rows of one person allow"
    assert found["honest"] and said in found["combining"] and "steps_release$inflation *" in (folder / "analysis.R").read_text()
    fitted = read_bundle(folder).fit("wage ~ age")
    ends = [[each["low"], each["high"]] for each in found["estimates"]]
    assert said in " ".join(fitted.notes) and fitted[["low", "high"]].to_numpy() == pytest.approx(np.array(ends), rel=1e-5)
    verdict = verify_again(folder, made.home.keys / "signing-key.pub")
    assert verdict.problems == () and verdict.recomputed is not None and all(verdict.recomputed.same.values())
    records = [pq.read_table(folder / f"synthetic-{number}.parquet") for number in (1, 2, 3)]
    (narrow,) = results_of(made.plan, POLL, records)  # POLL: one row each
    assert narrow.achieved_width < found["achieved_width"]
