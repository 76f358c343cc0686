"""A table without records is released like any other: that a release exists must not hang on its only person."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from steps_engine.methods.tree.correct import ConsistentCounts
from steps_engine.methods.tree.sparse import WholeCells
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.bundle import verify_bundle
from tests.flows.small import DATASET, RELEASE, make_small
from tests.flows.without_prefect import run_stages

WIDE = "".join(f"  - {{name: w{j}, kind: integer, bounds: [0, 99]}}\n" for j in range(6))
METHODS = [
    "decomposition: flat",
    "decomposition: uh, layers: 2",
    "decomposition: tree, elect: {layers: 2, utility: uneven, stop: true}",
    "decomposition: cascade, order: elected",
    "decomposition: privbayes",
    "decomposition: auto",
]


@pytest.mark.slow
@pytest.mark.parametrize("total", ["estimated", "invariant"])
@pytest.mark.parametrize("method", METHODS)
def test_an_empty_table_is_released_verified_and_evaluated(tmp_path, method, total):
    small = make_small(tmp_path, rows=0)
    asked = RELEASE.replace("decomposition: tree, order: [region]", method)
    small.write(release=asked.replace("epsilon: EPSILON", f"epsilon: EPSILON, total: {total}"))
    home = Home(small.home)
    open_ledger(home).grant("small-people", 10**9, "a test")
    assert run_stages(home, small.release), "charged as any other"
    folder = home.public / "small-1"
    assert [problem for problem in verify_bundle(folder, None) if not problem.note] == []
    rows = [pq.read_metadata(folder / f"synthetic-{number}.parquet").num_rows for number in (1, 2)]
    assert total == "estimated" or rows == [0, 0]
    assert "Not comparable" in (home.confidential / "small-1" / "evaluation.html").read_text(encoding="utf-8")
    assert open_ledger(home).state("small-1") == "evaluated"


def test_consistent_counts_of_which_no_listed_cell_holds_rows_are_read_back_as_they_were():
    none = WholeCells(np.empty(0, dtype=np.int64), np.empty((2, 0), dtype=np.int64))
    layers = (np.zeros(1), np.zeros(3))
    whole = tuple(np.zeros((2, len(layer)), dtype=np.int64) for layer in layers)
    again = ConsistentCounts.from_table(ConsistentCounts(layers, layers, whole, none).to_table(), sparse=True)
    assert [len(layer) for layer in again.estimates] == [1, 3] and len(again.cells.cells) == 0
    some = WholeCells(np.array([7]), np.array([[1], [2]]))
    again = ConsistentCounts.from_table(ConsistentCounts(layers, layers, whole, some).to_table(), sparse=True)
    assert [len(layer) for layer in again.estimates] == [1, 3] and again.cells.whole.tolist() == [[1], [2]]


@pytest.mark.slow
def test_an_empty_table_with_cells_too_many_to_list_is_released(tmp_path):
    small = make_small(tmp_path, rows=0)
    (tmp_path / "dataset.yaml").write_text(DATASET.replace("rules:", f"{WIDE}rules:"))
    empty = pq.read_table(tmp_path / "records.parquet")
    for j in range(6):
        empty = empty.append_column(f"w{j}", empty["age"])
    pq.write_table(empty, tmp_path / "records.parquet")
    home = Home(small.home)
    open_ledger(home).grant("small-people", 10**9, "a test")
    assert run_stages(home, small.release)
    assert [problem for problem in verify_bundle(home.public / "small-1", None) if not problem.note] == []
