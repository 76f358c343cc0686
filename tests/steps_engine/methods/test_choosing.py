"""`auto` decides from public inputs alone, considers flat, tree, cascade and pairs, and takes what it predicts to be best."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from schemas.spec.method import method_spec
from schemas.spec.release import ReleaseSpec
from steps_engine.laws import mean_size
from steps_engine.methods.choosing import candidates
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.predict import top_layer, tree_candidate
from steps_engine.noise import SeededRandomness, two_sided_geometric
from tests.steps_engine.shapes import domain, release


def asked(*sizes: int, rows: int | None = 10_000, epsilon: str = "1", delta: str | None = None, **method):
    shape = domain(*sizes).model_copy(update={"expected_rows": rows})
    return release(shape, method_spec(**method), epsilon, **({"delta": Decimal(delta)} if delta else {}))


def predicted(spec) -> dict[str, float]:
    return {each.spec.decomposition: each.predicted_error for each in candidates(spec)}


FEW = (9, 16, 15, 2, 2)
TAKEN = {
    "few cells": (asked(2, 2, 5, 6, epsilon="0.2"), "flat"),
    "many cells, little budget": (asked(*[2] * 15, 14), "pairs"),
    "few attributes, enough budget": (asked(*FEW, rows=48_842), "tree"),
    "many cells, more budget than noise": (asked(*[2] * 15, 14, epsilon="15"), "flat"),
    "more cells than can be held": (asked(*[100] * 12, epsilon="20"), "cascade"),
    "unknown rows": (asked(2, 3, rows=None), "pairs"),
    "one attribute": (asked(30), "flat"),
}


@pytest.mark.parametrize("spec, best", TAKEN.values(), ids=TAKEN)
def test_what_is_predicted_to_be_best_is_taken(spec, best):
    plan = make_plan(spec)
    assert plan.decomposition == best
    found = {each.decomposition: each.predicted_error for each in plan.considered}
    assert found[best] == min(found.values()) and {"flat", "cascade"} <= set(found)


PAID = {
    "few cells": (asked(2, 2, 5, 6, epsilon="0.2", delta="1e-9"), "flat"),
    "many cells, little budget": (asked(*[2] * 15, 14, delta="1e-9"), "pairs"),
    "few attributes, enough budget": (asked(*FEW, rows=48_842, epsilon="7.389", delta="1e-9"), "tree"),
    "more cells than can be held": (asked(*[100] * 12, epsilon="20", delta="1e-9"), "pairs"),
    "unknown rows": (asked(2, 3, rows=None, delta="1e-9"), "pairs"),
}


@pytest.mark.parametrize("spec, best", PAID.values(), ids=PAID)
def test_under_zcdp_what_is_predicted_to_be_best_is_taken(spec, best):
    plan = make_plan(spec)
    assert (plan.measure, plan.decomposition) == ("zcdp", best)
    found = {each.decomposition: each.predicted_error for each in plan.considered}
    assert found[best] == min(found.values())


def test_many_draws_gain_from_zcdp_and_a_single_one_does_not():
    sizes = [2] * 15
    pure, zcdp = (predicted(asked(*sizes, delta=delta)) for delta in (None, "1e-9"))
    assert zcdp["cascade"] < pure["cascade"] and zcdp["flat"] > pure["flat"]


def test_what_is_taken_is_what_asking_for_it_by_name_gives():
    spec = asked(*FEW, rows=48_842)
    by_name = make_plan(spec.asking(tree_candidate(spec).spec))
    taken = make_plan(spec)
    assert taken.draws == by_name.draws and taken.layers == by_name.layers and len(taken.considered) == 4


def test_every_prediction_falls_with_epsilon_and_with_rows_and_rises_with_split_sets():
    sizes = (2, 3, 4, 5, 6, 7)
    usual = predicted(asked(*sizes))
    for easier in (predicted(asked(*sizes, epsilon="2")), predicted(asked(*sizes, rows=40_000))):
        assert all(easier[name] < usual[name] for name in usual)
    split, shared = (predicted(asked(*sizes, sets={"count": 5, "budget": budget})) for budget in ("split", "shared"))
    assert all(split[name] > usual[name] for name in usual) and shared == usual


@pytest.mark.parametrize("analysis", [("x0", "x10"), ("x0", "x10", "x11"), "x10 ~ x0 + x11"])
def test_what_analyses_need_is_measured_by_what_is_taken(analysis):
    """At this budget the cascade is predicted to be best, which measures no table that it does not elect."""
    usual = asked(*[100] * 10, 2, 2, epsilon="20")
    assert make_plan(usual).decomposition == "cascade"
    spec = ReleaseSpec.model_validate({**dict(usual.spec), "analyses": (analysis,)})
    plan = make_plan(usual.model_copy(update={"spec": spec}))
    assert plan.decomposition == "pairs" and all(each.measured for each in plan.analyses)


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
