"""Synthetic records: in the domain, within the rules, and as many in each cell as the tables say, whatever the method."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas import tables
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from tasks.verify.records import record_problems

DOMAIN = Domain.model_validate(
    {
        "name": "d",
        "population": "p",
        "attributes": tuple(
            {"name": name, "kind": "categorical", "categories": ("no", "yes")} for name in ("voted", "registered")
        ),
        "rules": ({"never": {"voted": "yes", "registered": "no"}},),
    }
)


def problems(rows: list[tuple[str, str]], said: dict[tuple[int, int], int] | None = None) -> list[str]:
    """`said`: codes of a cell, and how many rows it is said to have."""
    columns = dict(zip(DOMAIN.names, zip(*rows, strict=True), strict=True))
    records = pa.table({name: list(values) for name, values in columns.items()}).cast(tables.records(DOMAIN))
    if said is None:
        return list(record_problems(DOMAIN, records, None))
    cells = Space(DOMAIN).cells(np.array(list(said)))
    return list(record_problems(DOMAIN, records, (cells, np.array(list(said.values())))))


def test_rows_of_the_domain_are_sound_whether_or_not_the_tables_say_how_many():
    rows = [("no", "no"), ("yes", "yes"), ("no", "no")]
    assert problems(rows) == [] and problems(rows, {(0, 0): 2, (0, 1): 0, (1, 1): 1}) == []


@pytest.mark.parametrize("said", [None, {(0, 0): 1, (1, 0): 1}], ids=["no counts", "counts that allow it"])
def test_a_row_that_breaks_a_rule_is_found_whatever_the_tables_say(said):
    (text,) = problems([("no", "no"), ("yes", "no")], said)
    assert "has a row that breaks a rule" in text


@pytest.mark.parametrize("said", [None, {(0, 0): 1}])
def test_a_value_outside_the_domain_is_found(said):
    assert problems([("maybe", "no")], said) == ["has values outside the domain: voted"]


@pytest.mark.parametrize("said", [{(0, 0): 2}, {(0, 0): 1, (0, 1): 0}, {(0, 0): 2, (0, 1): 0}])
def test_rows_that_are_not_those_of_the_cells_are_found(said):
    (text,) = problems([("no", "no"), ("no", "yes")], said)
    assert "whole counts" in text
