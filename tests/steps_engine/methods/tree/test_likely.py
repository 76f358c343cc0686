"""A flat table's whole numbers: they add up, keep to the cells there are, follow from the seed, and are near what is likely."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.spec.method import method_spec
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.inference.rounding import whole_numbers
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.methods.tree import correct as correcting
from steps_engine.methods.tree import likely
from steps_engine.methods.tree.correct import correct
from steps_engine.methods.tree.predict import flat_candidate
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import SHAPES, counted, domain, release

FLAT = method_spec("flat")


def corrected(shape, rows: int, method=FLAT, epsilon: str = "1", seed: int = 0, **privacy):
    """The tree, what was counted, and what is made of it."""
    counts = counted(shape, rows, seed)
    tree, made = corrected_from(shape, counts, method, epsilon, seed, **privacy)
    return tree, counts, made


def corrected_from(shape, counts: Counts, method=FLAT, epsilon: str = "1", seed: int = 0, **privacy):
    plan = make_plan(release(shape, method, epsilon, **privacy))
    tree = build_tree(shape, plan, None, SeededRandomness(seed))
    noisy = sanitize(tree, counts, plan, SeededRandomness(seed))
    return tree, correct(tree, noisy, plan, SeededRandomness(seed))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("total", ["estimated", "invariant"])
def test_cells_add_up_to_the_total_and_none_is_negative(shape, total):
    tree, counts, made = corrected(shape, 400, method_spec("flat", sets={"count": 3}), total=total)
    (root, cells), (estimate, *_) = made.whole, made.estimates
    assert cells.shape == (3, len(tree.layers[0])) and cells.min() >= 0 and np.array_equal(cells.sum(axis=1), root[:, 0])
    if total == "invariant":
        assert (root == counts.count.sum()).all()
    again = corrected(shape, 400, method_spec("flat", sets={"count": 3}), total=total)[2]
    assert np.array_equal(again.whole[1], cells) and estimate.shape == (1,)


def test_a_layer_of_all_attributes_in_another_order_is_the_same_table():
    shape = SHAPES["uneven"]
    of_cell = []
    for method in (FLAT, method_spec("tree", order=(("x3", "x0", "x2", "x1"),))):
        tree, counts, made = corrected(shape, 20_000, method, epsilon="30")
        cells = np.zeros(Space(shape).count(), dtype=np.int64)
        cells[tree.layers[0].cell] = made.whole[1][0]
        of_cell.append(cells)
    exact = np.zeros(len(cells), dtype=np.int64)
    exact[Space(shape).cells(counts.codes)] = counts.count
    assert np.array_equal(of_cell[0], exact) and np.array_equal(of_cell[1], exact)


def distances(make) -> np.ndarray:
    """Mean two- and three-way distance of flat sets that are made like this, of two kinds of rows."""
    shape, found = domain(9, 8, 7, 6), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        of_kind = [
            np.column_stack([rng.choice(s, n, p=rng.dirichlet(np.full(s, 0.5))) for s in shape.sizes]) for n in (2000, 1000)
        ]
        rows = np.concatenate(of_kind)
        tree, made = corrected_from(shape, count_codes(rows), seed=seed)
        whole = make(tree, made) if make else made.whole[1][0]
        codes = Space(shape).codes(tree.layers[0].cell)
        original = Coded(shape.names, shape.sizes, rows.astype(np.int64))
        synthetic = [Coded(shape.names, shape.sizes, np.repeat(codes, whole, axis=0).astype(np.int64))]
        found.append([margins(original, synthetic, ways).mean for ways in (2, 3)])
    return np.mean(found, axis=0)


def test_sets_are_nearer_than_projected_counts_and_exchanging_brings_them_nearer_still(monkeypatch):
    usual = distances(None)
    projected = distances(lambda tree, made: whole_numbers(tree, list(made.estimates), SeededRandomness(9))[1])
    monkeypatch.setattr(likely, "MOST_ROWS", 0)
    rounded = distances(None)
    assert (usual < rounded).all() and (rounded < 0.8 * projected).all()


def test_a_row_that_rounding_puts_where_next_to_nothing_is_expected_is_kept():
    shape = domain(4, 3, 3, 2)
    cells = np.arange(Space(shape).count())
    for expected in (np.where(cells < 30, 2.0, 0.0), np.zeros(len(cells))):
        whole = np.zeros(len(cells), dtype=np.int64)
        whole[[0, 5, 70]] = 20, 3, 1
        found = likely._exchanged(cells, whole, expected, Space(shape), SeededRandomness(1))
        assert found.sum() == whole.sum() and found.min() >= 0 and len(found) == len(cells)


def test_rows_are_not_exchanged_where_tables_of_three_are_the_table_and_the_plan_tells_what_exchanging_takes(monkeypatch):
    few, more = domain(4, 1, 3, 5, expected_rows=10**6), domain(4, 2, 3, 5, expected_rows=10**6)
    assert make_plan(release(more, FLAT)).seconds > make_plan(release(few, FLAT)).seconds + 3

    def never(*_):
        raise AssertionError("exchanged")

    monkeypatch.setattr(likely, "_exchanged", never)
    corrected(few, 100)
    with pytest.raises(AssertionError, match="exchanged"):
        corrected(more, 100)


def test_a_shared_flat_table_that_can_be_listed_is_considered():
    shared = {"count": 2, "budget": "shared"}
    wide = domain(*[8] * 8, expected_rows=10**5)
    assert flat_candidate(release(wide, method_spec("flat", sets=shared))).predicted_error < 1
    assert flat_candidate(release(wide, method_spec("flat", sets={"count": 2}))).why.endswith("do not fit")


def test_layers_and_sets_that_share_a_measurement_are_made_as_ever(monkeypatch):
    def never(*_):
        raise AssertionError("cells of one layer and one set alone are likely")

    monkeypatch.setattr(correcting, "likely_table", never)
    shared = {"count": 2, "budget": "shared"}
    for method in (method_spec("tree", order=("x0",)), method_spec("flat", sets=shared), method_spec("uh", layers=1)):
        corrected(SHAPES["uneven"], 100, method)
    with pytest.raises(AssertionError, match="likely"):
        corrected(SHAPES["uneven"], 100)


@pytest.mark.parametrize(
    ("sizes", "about", "shrunk"),
    [((1, 9), "as many as", False), ((4, 1, 3), "what each attribute alone", True), ((4, 2, 3), "what pairs", True)],
)
def test_a_page_says_of_rows_what_they_were_made_of(sizes, about, shrunk):
    """Of one attribute or two there is no pair that could tell anything of a cell."""
    shape = domain(*sizes)
    plan = make_plan(release(shape, FLAT))
    made = run_plan(shape, plan, counted(shape, 200), SeededRandomness(1))
    shown = made.method.view(shape, plan, made.tables)
    assert f"about {about} " in shown.text and bool(shown.warning) == shrunk
