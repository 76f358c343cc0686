"""`auto` decides from public inputs alone, considers flat, tree, cascade and pairs, and takes what it predicts to be best."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.spec.method import method_spec
from schemas.spec.release import ReleaseSpec
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.domain.frequencies import zipf
from steps_engine.domain.nodes import Layer
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.inference.rounding import project
from steps_engine.laws import mean_size
from steps_engine.methods.choosing import candidates
from steps_engine.methods.pairs.division import division
from steps_engine.methods.pairs.plan import paying
from steps_engine.methods.pairs.triples import Triples, by_chance, distances, three_way
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run
from steps_engine.methods.tree import made_up
from steps_engine.methods.tree.made_up import Layers, projected
from steps_engine.methods.tree.predict import top_layer, tree_candidate
from steps_engine.noise import SeededRandomness, two_sided_geometric
from tests.steps_engine.shapes import domain, release


def asked(*sizes: int, rows: int | None = 10_000, epsilon: str = "1", delta: str | None = None, **method):
    shape = domain(*sizes).model_copy(update={"expected_rows": rows})
    return release(shape, method_spec(**method), epsilon, **({"delta": Decimal(delta)} if delta else {}))


def predicted(spec) -> dict[str, float]:
    return {each.spec.decomposition: each.predicted_error for each in candidates(spec)}


FEW, LAYERED = (9, 16, 15, 2, 2), (3, 3, 4, 4, 50)
SHARED = {"count": 2, "budget": "shared"}
TAKEN = {
    "few cells": (asked(2, 2, 5, 6, epsilon="0.2"), "flat"),
    "many cells, little budget": (asked(*[2] * 15, 14), "pairs"),
    "few attributes, enough budget": (asked(*LAYERED, rows=20_000), "flat"),
    "few attributes, one measurement for all sets": (asked(*LAYERED, rows=20_000, sets=SHARED), "tree"),
    "few attributes, more budget": (asked(*FEW, rows=50_000, epsilon="2.718"), "flat"),
    "few rows in a sparse table": (asked(5, 6, 4, 6, 6, 2, rows=6_000, epsilon="2.718"), "flat"),
    "many cells, more budget than noise": (asked(*[2] * 15, 14, epsilon="15"), "flat"),
    "hundreds of thousands of cells, more budget": (asked(2, 8, 13, 8, 6, 6, 6, rows=64_600, epsilon="7.389"), "flat"),
    "more cells than can be held": (asked(*[100] * 12, epsilon="20"), "cascade"),
    "unknown rows": (asked(2, 3, rows=None), "pairs"),
    "one attribute": (asked(30), "flat"),
}


@pytest.mark.parametrize("spec, best", TAKEN.values(), ids=TAKEN)
@pytest.mark.whole
def test_what_is_predicted_to_be_best_is_taken(spec, best):
    plan = make_plan(spec)
    assert plan.decomposition == best
    found = {each.decomposition: each.predicted_error for each in plan.considered}
    assert found[best] == min(found.values()) and {"flat", "cascade"} <= set(found)


PAID = {
    "few cells": (asked(2, 2, 5, 6, epsilon="0.05", delta="1e-9"), "pairs"),
    "few cells, more budget": (asked(3, 2, 2, 2, rows=1_000, epsilon="7.389", delta="1e-9"), "flat"),
    "many cells, little budget": (asked(*[2] * 15, 14, delta="1e-9"), "pairs"),
    "few attributes, enough budget": (asked(2, 2, 2, 60, rows=200_000, delta="1e-9"), "flat"),
    "few attributes, one measurement for all sets": (asked(2, 2, 2, 60, rows=200_000, delta="1e-9", sets=SHARED), "tree"),
    "few attributes whose triples are measured": (asked(*FEW, rows=50_000, epsilon="7.389", delta="1e-9"), "pairs"),
    "more cells than can be held": (asked(*[100] * 12, epsilon="20", delta="1e-9"), "pairs"),
    "unknown rows": (asked(2, 3, rows=None, delta="1e-9"), "pairs"),
}


@pytest.mark.parametrize("spec, best", PAID.values(), ids=PAID)
@pytest.mark.whole
def test_under_zcdp_what_is_predicted_to_be_best_is_taken(spec, best):
    plan = make_plan(spec)
    assert (plan.measure, plan.decomposition) == ("zcdp", best)
    found = {each.decomposition: each.predicted_error for each in plan.considered}
    assert found[best] == min(found.values())


@pytest.mark.whole
def test_many_draws_gain_from_zcdp_and_a_single_one_does_not():
    sizes = [2] * 15
    pure, zcdp = (predicted(asked(*sizes, delta=delta)) for delta in (None, "1e-9"))
    assert zcdp["cascade"] < pure["cascade"] and zcdp["flat"] > pure["flat"]


def test_what_is_taken_is_what_asking_for_it_by_name_gives():
    spec = asked(*LAYERED, rows=20_000, sets=SHARED)
    by_name = make_plan(spec.asking(tree_candidate(spec).spec))
    taken = make_plan(spec)
    assert taken.draws == by_name.draws and taken.layers == by_name.layers and len(taken.considered) == 4


def test_every_prediction_falls_with_epsilon_and_with_rows_and_rises_with_split_sets():
    sizes = (2, 3, 4, 5, 6, 7)
    usual = predicted(asked(*sizes))
    for easier in (predicted(asked(*sizes, epsilon="2")), predicted(asked(*sizes, rows=40_000))):
        assert all(easier[name] < usual[name] for name in usual)
    split, shared = (predicted(asked(*sizes, sets={"count": 5, "budget": budget})) for budget in ("split", "shared"))
    assert all(split[name] > usual[name] for name in usual)
    assert shared.pop("flat") > usual.pop("flat") and shared == usual  # sets that are drawn have no cells that are likely


@pytest.mark.parametrize("analysis", [("x0", "x10"), ("x0", "x10", "x11"), "x10 ~ x0 + x11"])
def test_what_analyses_need_is_measured_by_what_is_taken(analysis):
    """At this budget the cascade is predicted to be best, which measures no table that it does not elect."""
    usual = asked(*[100] * 10, 2, 2, epsilon="20")
    assert make_plan(usual).decomposition == "cascade"
    spec = ReleaseSpec.model_validate({**dict(usual.spec), "analyses": (analysis,)})
    plan = make_plan(usual.model_copy(update={"spec": spec}))
    assert plan.decomposition == "pairs" and all(each.measured for each in plan.analyses)


@pytest.mark.parametrize("epsilon, delta", [("0.3", None), ("2", None), ("2", "1e-9")])
@pytest.mark.parametrize("name", ["flat", "tree"])
@pytest.mark.whole
def test_a_table_as_plain_as_the_made_up_one_errs_as_predicted(name, epsilon, delta):
    sizes, rows, rng = (3, 4, 5, 6), 5_000, np.random.default_rng(1)
    spec = asked(*sizes, rows=rows, epsilon=epsilon, delta=delta)
    plainest = np.stack([rng.choice(size, rows, p=zipf(size)) for size in sizes], axis=1)
    original, taken = (
        Coded(spec.domain.names, sizes, plainest),
        next(c for c in candidates(spec) if c.spec.decomposition == name),
    )
    found = []
    for seed in range(5):
        made = run(spec.asking(taken.spec), count_codes(plainest), SeededRandomness(seed)).frames[0]
        coded = [Coded(original.names, sizes, encode(made, spec.domain).astype(np.int64))]
        found.append(math.sqrt(margins(original, coded, 2).mean * margins(original, coded, 3).mean))
    assert taken.predicted_error == pytest.approx(np.mean(found), rel=0.25)


def test_what_is_made_up_is_projected_as_a_release_is():
    values, totals = np.random.default_rng(3).normal(1, 3, (40, 7)), np.arange(40) % 9
    layer = Layer(np.repeat(np.arange(40), 7), np.zeros(280, dtype=np.int32), np.tile(np.arange(7), 40), np.arange(280))
    kept, above, _ = project(layer, values.ravel(), totals)
    expected = np.zeros(280)
    expected[kept] = above
    assert np.allclose(projected(values, totals), expected.reshape(40, 7), atol=1e-9)


@pytest.mark.whole
def test_a_table_too_large_to_make_up_stands_for_itself_by_fewer_attributes():
    (flat,) = (each for each in candidates(asked(*[2] * 22, rows=100_000, epsilon="3")) if each.spec.decomposition == "flat")
    (fits,) = (each for each in candidates(asked(*[2] * 20, rows=25_000, epsilon="3")) if each.spec.decomposition == "flat")
    assert flat.predicted_error == pytest.approx(fits.predicted_error, rel=0.05)


@pytest.mark.parametrize(
    ("above", "sizes", "kept"),
    [
        ((), (14, 2, 2, 90), (14, 2, 90)),  # one of two is enough
        ((), (40, 30, 2, 3), (40, 30, 2)),  # and none that is larger than it needs to be
        ((), (5000, 4, 9), (4, 9)),  # never all
        ((100,), (5, 40, 2), (5, 2)),  # what is above stays
        ((), (20, 30), (20, 30)),
    ],
)
def test_of_a_table_too_large_to_make_up_as_little_as_will_do_is_left_out(monkeypatch, above, sizes, kept):
    monkeypatch.setattr(made_up, "MOST_CELLS", 3000)
    layers = (above, sizes) if above else (sizes,)
    assert Layers(layers, ()).smaller().sizes == ((above, kept) if above else (kept,))


def test_pairs_is_predicted_to_err_by_what_chance_puts_beyond_pairs_and_by_less_where_triples_are_measured():
    two, three, rows = 0.001, 0.4 * math.sqrt(8 * 15 * 14 / 10**5), 10**5
    assert three_way(two, by_chance(domain(9, 16, 15, expected_rows=rows), (9, 16, 15))) == pytest.approx(three, rel=0.01)
    spec = asked(*FEW, rows=50_000, epsilon="7.389", delta="1e-9")
    allowance = allowance_of(spec.asking(method_spec("pairs")))
    divided = division(spec.domain, allowance, None)
    third = paying(spec.domain, allowance, divided, None, ())
    measured, left = (distances(spec.domain, allowance, divided, found) for found in (third, Triples()))
    assert third.tables and measured[1] < left[1] / 2 and measured[0] > left[0]


def test_the_tree_s_top_layer_has_at_most_as_many_nodes_as_families_have_cells():
    for sizes in ((2, 3, 4, 5), (9, 2, 2, 30), (50, 60), (2, 2)):
        (names,) = top_layer(domain(*sizes)) or ((),)
        nodes = 1
        for name in names:
            nodes *= sizes[int(name[1:])]
        assert nodes**2 <= domain(*sizes).all_cells
    assert top_layer(domain(30)) == () and top_layer(domain(9, 2, 2, 30)) == (("x1", "x2"),)


def test_a_given_order_and_given_shares_are_the_tree_s():
    spec = asked(2, 3, 4, 5, order=("x3",), shares=(1, 3))
    plan = make_plan(spec.asking(tree_candidate(spec).spec))
    assert plan.layers[0].attributes == ("x3",) and plan.layers[0].share == Fraction(1, 4)


def test_layers_are_equal_for_split_sets_and_divided_by_the_cube_root_rule_for_shared_ones():
    tree = {"decomposition": "tree", "order": ("x0",)}
    split, shared = (
        make_plan(asked(2, 50, sets={"count": 2, "budget": b}, **tree)).layers[0].share for b in ("split", "shared")
    )
    assert split == Fraction(1, 2) and shared < Fraction(1, 4)
    given = asked(2, 50, sets={"count": 2, "budget": "shared"}, shares="equal", **tree)
    assert make_plan(given).layers[0].share == Fraction(1, 2)


def test_the_mean_noise_is_that_of_the_noise():
    for scale in (Fraction(1, 3), Fraction(5)):
        drawn = abs(two_sided_geometric(scale, 40_000, SeededRandomness(1))).mean()
        assert abs(drawn / mean_size(scale) - 1) < 0.05
