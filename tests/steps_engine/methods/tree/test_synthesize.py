"""Every method on every awkward shape: rules kept, totals plausible, exact when ε is huge, values within their bins."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from schemas import tables
from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import decode, encode, stratified
from steps_engine.methods.blocks import together
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.correct import correct
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.synthesize import synthesize
from steps_engine.noise import SeededRandomness, uniform
from tests.steps_engine.shapes import METHODS, SHAPES, allowed_cells, counted, domain, never, records, release

CASES = {
    f"{name}: {how}": (shape, method)
    for name, shape in SHAPES.items()
    for how, method in METHODS.items()
    if shape.all_cells > 1 or getattr(method, "elect", None) is None
}
every_case = pytest.mark.parametrize("shape, method", CASES.values(), ids=CASES)


def run(shape, method, counts, epsilon="1", seed=0, **privacy):
    randomness = SeededRandomness(seed)
    plan = make_plan(release(shape, method, epsilon, **privacy), randomness)
    tree = build_tree(shape, plan, counts, randomness)
    consistent = correct(tree, sanitize(tree, counts, plan, randomness), plan, randomness)
    return [together(synthesize(tree, consistent, i, randomness)) for i in range(1, plan.sets + 1)]


def cells_of(table: pa.Table) -> Counter:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@every_case
def test_a_huge_epsilon_gives_the_exact_table(shape, method):
    rows = records(shape, 120, seed=5)
    [synthetic] = run(shape, method, counted(shape, 120, seed=5), "100000")
    assert cells_of(synthetic) == Counter(map(tuple, rows.tolist()))


@every_case
def test_rows_keep_the_rules_and_totals_are_plausible(shape, method):
    allowed = set(allowed_cells(shape))
    [synthetic] = run(shape, method, counted(shape, 400), "5")
    assert set(cells_of(synthetic)) <= allowed
    assert 200 < synthetic.num_rows < 800


@every_case
def test_no_records_at_all_is_a_data_set_too(shape, method):
    [synthetic] = run(shape, method, counted(shape, 0), "1")
    assert set(cells_of(synthetic)) <= set(allowed_cells(shape))


def test_a_known_total_is_met_exactly_by_every_set():
    method = method_spec(decomposition="tree", order=("x0",), sets={"count": 4})
    for privacy in ({"total": "invariant"}, {"total": "public", "neighbours": "substitute"}):
        sets = run(SHAPES["uneven"], method, counted(SHAPES["uneven"], 321), "0.5", **privacy)
        assert [s.num_rows for s in sets] == [321] * 4


def test_sets_have_independent_noise():
    one, two = run(
        SHAPES["uneven"],
        method_spec(decomposition="tree", order=("x0",), sets={"count": 2}),
        counted(SHAPES["uneven"], 300),
        "1",
    )
    assert cells_of(one) != cells_of(two)


def test_rows_are_shuffled():
    [synthetic] = run(
        domain(2, 50), METHODS["flat"], count_codes(np.repeat(np.arange(100).reshape(-1, 1), 2, 1) % [2, 50]), "1000"
    )
    column = synthetic["x1"].to_numpy()
    assert (np.diff(column) < 0).any() and len(column) == 100


MIXED = Domain.model_validate(
    {
        "name": "mixed",
        "population": "p",
        "attributes": (
            {"name": "colour", "kind": "categorical", "categories": ("red", "blue"), "missing": "category"},
            {"name": "size", "kind": "ordinal", "categories": ("S", "M", "L")},
            {"name": "age", "kind": "integer", "bounds": (0, 99), "edges": (0, 18, 65, 99), "outside": "clamp"},
            {"name": "wage", "kind": "numeric", "bounds": (0, 100), "bins": 4, "missing": "category"},
            {"name": "born", "kind": "date", "bounds": ("2000-01-01", "2003-12-31"), "bins": 4},
        ),
    }
)


def frame(**changes) -> pd.DataFrame:
    columns = {
        "colour": ["red", None, "blue"],
        "size": ["S", "L", "M"],
        "age": [17, 18, 120],
        "wage": [0.0, 100.0, np.nan],
        "born": [datetime.date(2000, 1, 1), datetime.date(2003, 12, 31), datetime.date(2001, 7, 1)],
    }
    return pd.DataFrame(columns | changes)


def test_values_become_codes_by_the_public_bins():
    assert encode(frame(), MIXED).tolist() == [[0, 0, 0, 0, 0], [2, 2, 1, 3, 3], [1, 1, 2, 4, 1]]


def test_decoded_values_encode_to_the_same_cells_and_fill_their_bins():
    codes = (
        np.stack(np.meshgrid(*(np.arange(size) for size in MIXED.sizes), indexing="ij"), -1).reshape(-1, 5).repeat(20, axis=0)
    )
    table = decode(codes, MIXED, SeededRandomness(1))
    assert table.schema.equals(tables.records(MIXED)) and not (table.schema.metadata or {})
    assert np.array_equal(encode(table.to_pandas(), MIXED), codes)
    ages = table["age"].to_numpy()
    assert {0, 17} <= set(ages) and ages.min() == 0 and ages.max() <= 99 and len(set(ages)) > 90


def test_the_values_of_a_cell_are_stratified_over_its_bin():
    """One in every k-th of the bin, for each attribute apart; independent draws (the control) leave gaps."""
    cell = np.repeat([7, 3, 11], [1, 50, 200])
    x, y = stratified(cell, SeededRandomness(1)), stratified(cell, SeededRandomness(2))
    for size, rows in ((1, cell == 7), (50, cell == 3), (200, cell == 11)):
        assert sorted((x[rows] * size).astype(int)) == list(range(size))
    assert abs(np.corrcoef(x[cell == 11], y[cell == 11])[0, 1]) < 0.28
    assert len(set((uniform(200, SeededRandomness(3)) * 200).astype(int))) < 150


def test_no_rows_and_equal_rows_are_stratified_too():
    assert len(stratified(np.zeros(0, np.uint64), SeededRandomness(1))) == 0
    assert 0.4 < stratified(np.zeros(1000, np.uint64), SeededRandomness(1)).mean() < 0.6


BAD = {
    "a category that is not in the domain": (frame(size=["S", "CANARY", "M"]), "size"),
    "a value outside": (frame(wage=[1.0, 100.5, 2.0]), "wage"),
    "infinity": (frame(wage=[1.0, np.inf, 2.0]), "wage"),
    "a missing value": (frame(size=["S", None, "M"]), "size"),
    "a fraction among whole numbers": (frame(age=[1.5, 2, 3]), "age"),
    "text among numbers": (frame(wage=["1", "CANARY", "2"]), "wage"),
    "truth among numbers": (frame(age=[True, 2, 3]), "age"),
    "a column too many": (frame(CANARY=[1, 2, 3]), "columns"),
    "a date outside": (frame(born=[datetime.date(1999, 12, 31)] * 3), "born"),
}


@pytest.mark.parametrize("bad, names", BAD.values(), ids=BAD)
def test_bad_values_are_refused_by_naming_the_attribute_and_never_the_value(bad, names):
    with pytest.raises(DataInvalid, match=names) as caught:
        encode(bad, MIXED)
    assert "CANARY" not in str(caught.value) and caught.value.__cause__ is None


def test_a_person_keeps_at_most_the_declared_rows_chosen_from_their_own():
    many = domain(3, unit={"column": "who", "rows_per_person": 2, "excess": "drop"})
    data = pd.DataFrame({"who": list("aaabb"), "x0": [2, 1, 0, 1, 1]})
    kept = {who: sorted(encode(rows, many)[:, 0].tolist()) for who, rows in data.groupby("who")}
    assert kept["b"] == [1, 1] and len(kept["a"]) == 2 and set(kept["a"]) < {0, 1, 2}
    shuffled = data.sample(frac=1, random_state=3)
    for rows in (data, shuffled):
        assert sorted(encode(rows, many)[:, 0].tolist()) == sorted(kept["a"] + kept["b"])
    keys = [bytes([number]) * 32 for number in range(40)]
    assert len({tuple(sorted(encode(data, many, key)[:, 0].tolist())) for key in keys}) == 3, "any two of a's rows may stay"
    with pytest.raises(DataInvalid, match="more than 2 rows"):
        encode(data, many.model_copy(update={"unit": many.unit.model_copy(update={"excess": "forbid"})}))


SETTLED = {
    "two that are equal": (domain(4, 4, rules=({"always": "x0 == x1"},)), ("x0",), [0, 0]),
    "equal, and another": (domain(4, 4, 3, rules=({"always": "x0 == x1"},)), ("x0", "x2"), [0, 0, 1]),
    "one with a single category left": (domain(3, 2, rules=(never(x0=0), never(x0=1))), ("x1",), [2, 1]),
}


@pytest.mark.parametrize("shape, order, like", SETTLED.values(), ids=SETTLED)
def test_attributes_that_no_layer_splits_have_what_rules_leave_them(shape, order, like):
    rows = np.array([like] * 30 + [[1, 1, 2][: len(like)] if like[0] == 0 else [2, 0]] * 50)
    [synthetic] = run(shape, method_spec("tree", order=order), count_codes(rows), "100000")
    assert cells_of(synthetic) == Counter(map(tuple, rows.tolist()))
