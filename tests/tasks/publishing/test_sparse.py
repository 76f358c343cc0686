"""A bundle whose cells are too many to list: published, verified, shown; and every check of it broken once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from steps_engine.methods.tree import plan as planning
from steps_engine.methods.tree.sparse import is_sampled
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import POLL, Made, a_release, edit_table, forge_plan, make, sign_again, some_counts
from tests.tasks.verify.test_bundle import must_find_only, problems_of

GIVEN = {"decomposition": "tree", "order": ("voted", "age"), "sets": {"count": 2}}
METHODS = {
    "given": GIVEN,
    "flat": {"decomposition": "flat"},
    "elected": {"decomposition": "tree", "elect": {"layers": 2}},
    "shared": {"decomposition": "tree", "order": ("voted",), "sets": {"count": 3, "budget": "shared"}},
}


def made_sparse(folder: Path, method: dict) -> Made:
    with pytest.MonkeyPatch.context() as small:
        small.setattr(planning, "MOST_BYTES", planning.bytes_of(40, 1))
        small.setattr(planning, "MOST_KEPT", 20)
        made = make(folder, a_release(POLL, method), some_counts(POLL, 4003))
    assert is_sampled(made.plan)
    publish(*made.arguments)
    return made


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_sparse(tmp_path_factory.mktemp("sparse") / "home", GIVEN)


@pytest.fixture
def copy(made, tmp_path) -> Path:
    return Path(shutil.copytree(made.home.public / made.release.name, tmp_path / "copy"))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.whole
def test_a_sampled_release_verifies_and_its_page_says_what_was_kept(tmp_path, method):
    made = made_sparse(tmp_path / "home", method)
    folder = made.home.public / made.release.name
    assert problems_of(folder) == []
    page = (folder / "index.html").read_text()
    assert "too many to list" in page and "no margin with a known error" in page


def test_only_attributes_that_were_measured_have_a_margin_on_the_page(copy):
    page = (copy / "index.html").read_text()
    assert "<h3>voted</h3>" in page and "<h3>age</h3>" in page and "<h3>wage</h3>" not in page


def last(columns: dict[str, list], skip: int = 0) -> int:
    return max(row for row, layer in enumerate(columns["layer"]) if layer == max(columns["layer"])) - skip


def change(name: str, value):
    def edit(columns):
        columns[name][last(columns)] = value

    return edit


def forget_a_row(columns):
    row = next(r for r in range(last(columns), 0, -1) if columns["whole_1"][r] > 0)
    columns["whole_1"][row] -= 1


@pytest.mark.parametrize(
    ("file", "edit", "words"),
    [
        pytest.param("noisy-counts", change("noisy_1", 0), "below the threshold", id="a count below the threshold"),
        pytest.param("noisy-counts", change("node", 10**9), "no cells below the tree", id="a number that is no cell"),
        pytest.param("noisy-counts", change("node", 0), "not in order", id="cells not in order"),
        pytest.param(
            "noisy-counts", lambda columns: columns["noisy_1"].__setitem__(0, None), "lacks", id="a node without a count"
        ),
        pytest.param("consistent-counts", change("estimate", 1.0), "biased", id="an estimate of a kept cell"),
        pytest.param("consistent-counts", forget_a_row, "does not sum to the layer above", id="cells that do not add up"),
        pytest.param("consistent-counts", change("node", -1), "no cells below the tree", id="a negative cell"),
    ],
)
def test_sampled_cells_that_are_not_what_the_plan_keeps_are_found(made, copy, file, edit, words):
    edit_table(copy / f"{file}.parquet", edit)
    sign_again(copy, made.home)
    must_find_only(copy, f"{file}.parquet", words)


def test_a_row_in_a_cell_without_a_count_is_found(made, copy):
    edit_table(
        copy / "synthetic-1.parquet",
        lambda columns: columns["voted"].__setitem__(0, {"no": "yes", "yes": "no"}[columns["voted"][0]]),
    )
    (copy / "synthetic-1.csv").unlink()
    (copy / "synthetic-2.csv").unlink()
    sign_again(copy, made.home, lambda manifest: [manifest["files"].pop(f"synthetic-{i}.csv") for i in (1, 2)])
    must_find_only(copy, "synthetic-1.parquet", "whole counts")


def test_a_node_left_out_above_the_cells_is_found(made, copy):
    assert pq.read_table(copy / "tree.parquet").num_rows == 2 + 8

    def drop(columns):
        for values in columns.values():
            del values[-1]

    edit_table(copy / "tree.parquet", drop)
    sign_again(copy, made.home)
    must_find_only(copy, "tree.parquet", "nodes")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda draws: draws[0].update(threshold=3), "not of the cells has a threshold"),
        (lambda draws: draws[-1].update(threshold=None), "some measurements only"),
        (lambda draws: draws[-1].update(threshold=0), "below 1"),
    ],
)
def test_thresholds_that_are_not_those_of_the_cells_are_found(made, copy, edit, words):
    forge_plan(copy, made.home, lambda plan: edit(plan["draws"]))
    assert any(words in problem.text for problem in problems_of(copy))
