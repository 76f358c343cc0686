"""Whom a budget protects is named from the grant to the page: by household here, never by person."""

from __future__ import annotations

import json

import pytest

from schemas.errors import SpecError
from tasks.publishing.publication import publish
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
