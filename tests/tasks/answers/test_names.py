"""A table by attributes that are called as its figures are: labels stay under the attribute's name, the figure gives way."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from flows.output import answered
from steps_engine.answers.table import Quantity, Table
from tasks.answers.frames import Answer, table_answer
from tasks.answers.picture import drawn
from tasks.answers.writing import write_csv

FIGURES = (
    "count", "standard_error", "low", "high", "share", "share_standard_error", "share_low", "share_high", "trust",
)  # fmt: skip


def answer(*names: str) -> Answer:
    counts = Quantity(*(np.array([60.0, 40.0]) + shift for shift in (0, -37, -5, 5)))
    shares = Quantity(*(np.array([0.6, 0.4]) + shift for shift in (0, -0.35, -0.05, 0.05)))
    labels = tuple(tuple(f"{name}-{row}" for name in names) for row in "uv")
    return table_answer(Table(labels, counts, shares, 100.0, "measured", "", of="rows"), names, {}, {}, [])


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.whole
def test_an_attribute_called_as_a_figure_keeps_its_labels(name, tmp_path, capsys):
    found, plain = answer("x", name), answer("x", "y")
    cells = json.loads(json.dumps(found.document))["cells"]
    assert [cell[name] for cell in cells] == [f"{name}-u", f"{name}-v"] == list(found[name])
    assert [cell[f"{name}_"] for cell in cells] == [cell[name] for cell in plain.document["cells"]]
    assert found.document["renamed"] == {name: f"{name}_"} and f"stands in {name}_." in " ".join(found.notes)
    written = list(csv.DictReader(write_csv(found, tmp_path / "t.csv").open()))
    assert [row[name] for row in written] == [f"{name}-u", f"{name}-v"] and f"{name}_" in written[0]
    answered.table(found.document)
    shown = capsys.readouterr().out
    assert f"{name}-u" in shown and "60" in shown and "55 to 65" in shown
    assert f"{name}-u".encode() in drawn(found, "svg")


def test_all_of_them_at_once_and_the_names_they_would_take():
    found = answer(*FIGURES, "count_")
    assert found.document["renamed"] == {name: f"{name}_" for name in FIGURES} | {"count": "count__"}
    assert len(set(found.columns)) == len(found.columns) == 2 * len(FIGURES) + 1


def test_other_tables_say_nothing_of_it():
    assert "renamed" not in answer("x", "counts").document and list(answer("x").columns) == ["x", *FIGURES]
