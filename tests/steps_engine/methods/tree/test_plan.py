"""What is paid is what is drawn: shares sum to ε exactly, scales cover them, impossible plans are refused before data."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.method import method_spec
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import SHAPES, counted, domain, never, release


def path_costs(plan: Plan, tree) -> set[Fraction]:
    """Brute force: the ε that each root-to-leaf path really spends, over all sets and elections."""
    costs = set()
    for depth, layer in enumerate(tree.layers, start=1):
        for leaf in np.flatnonzero(layer.cell >= 0):
            node, cost = leaf, Fraction(0)
            for d in range(depth, 0, -1):
                nodes = "leaves" if d == depth else "inner"
                cost += sum(plan.count_draw(d, s, nodes).epsilon for s in range(1, plan.sets + 1))
                node = tree.layers[d - 1].parent[node]
            costs.add(cost + sum(draw.epsilon for draw in plan.draws if draw.kind == "election"))
    return costs


@settings(max_examples=150, deadline=None)
@given(
    shape=st.sampled_from([s for s in SHAPES.values() if s.all_cells > 1]),
    nanos=st.integers(1000, 20_000_000_000), sets=st.integers(1, 7), layers=st.integers(1, 4),
    share=st.fractions(min_value=Fraction(1, 50), max_value=Fraction(9, 10), max_denominator=97),
    neighbours=st.sampled_from(["add_remove", "substitute"]), rows=st.integers(1, 5),
    shares=st.sampled_from(["equal", "cube_root"]), elected=st.sampled_from([None, {}, {"utility": "uneven", "stop": True}]),
)  # fmt: skip
@pytest.mark.whole
def test_every_path_costs_exactly_epsilon(shape, nanos, sets, layers, share, neighbours, rows, shares, elected):
    shape = shape.model_copy(update={"unit": shape.unit.model_copy(update={"rows_per_person": rows})})
    splittable = [n for n, size in zip(shape.names, shape.sizes, strict=True) if size > 1]
    layers = min(layers, len(splittable))
    how = (
        {"elect": {"layers": layers, "share": share, **elected}}
        if elected is not None
        else {"order": tuple(splittable[:layers])}
    )
    method = method_spec(decomposition="tree", shares=shares, sets={"count": sets}, **how)
    epsilon = f"{nanos // 10**9}.{nanos % 10**9:09d}"
    plan = make_plan(release(shape, method, epsilon, neighbours=neighbours))
    tree = build_tree(shape, plan, counted(shape, 20), SeededRandomness(1))
    assert path_costs(plan, tree) == {Fraction(nanos, 10**9)}
    for draw in plan.draws:
        floor = rows * (2 if neighbours == "substitute" else 1) * (2 if draw.kind == "election" else 1)
        assert draw.sensitivity >= floor and draw.scale == draw.sensitivity / draw.epsilon


def test_one_election_too_many_would_be_noticed():
    """The paper's loop runs L+1 times at rε/L each (its error E6): the same sum then exceeds ε."""
    shape = SHAPES["uneven"]
    plan = make_plan(release(shape, method_spec(decomposition="tree", elect={"layers": 2})))
    extra = next(draw for draw in plan.draws if draw.kind == "election")
    tampered = plan.model_copy(update={"draws": (*plan.draws, extra)})
    tree = build_tree(shape, plan, counted(shape, 20), SeededRandomness(1))
    assert path_costs(tampered, tree) != {Fraction(1)}


def test_a_substitution_is_the_same_mechanism_at_half_of_epsilon():
    shape = SHAPES["uneven"]
    method = method_spec(decomposition="tree", elect={"layers": 2}, sets={"count": 2})
    half = make_plan(release(shape, method, "0.5"))
    substitute = make_plan(release(shape, method, "1", neighbours="substitute"))
    assert [d.scale for d in half.draws] == [d.scale for d in substitute.draws]


def test_cube_root_shares_give_big_layers_more():
    plan = make_plan(release(domain(2, 5, 50), method_spec(decomposition="tree", order=("x0",), shares="cube_root")))
    assert plan.layers[1].share > plan.layers[0].share and sum(layer.share for layer in plan.layers) == 1
    ratio = float(plan.layers[1].share / plan.layers[0].share)
    assert ratio == pytest.approx((500 / 2) ** (1 / 3), rel=1e-3)


def test_given_shares_are_kept():
    plan = make_plan(release(domain(2, 5), method_spec(decomposition="tree", order=("x0",), shares=(1, 3))))
    assert [layer.share for layer in plan.layers] == [Fraction(1, 4), Fraction(3, 4)]


def test_a_plan_is_a_function_of_public_inputs_and_survives_json():
    shape = SHAPES["a rule"]
    one, two = (make_plan(release(shape, method_spec(decomposition="tree", order=("x1",)))) for _ in range(2))
    assert one == two and one.hash == two.hash
    assert Plan.model_validate_json(one.model_dump_json()) == one
    assert make_plan(release(shape, method_spec(decomposition="tree", order=("x1",)), "1.000000001")).hash != one.hash


def test_uh_draws_its_order_once_from_its_source():
    shape, method = domain(2, 3, 4, 5), method_spec(decomposition="uh", layers=2)
    orders = {make_plan(release(shape, method), SeededRandomness(i)).layers[0].attributes for i in range(40)}
    assert len(orders) == 4
    assert (
        make_plan(release(shape, method), SeededRandomness(1)).hash
        == make_plan(release(shape, method), SeededRandomness(1)).hash
    )


REFUSED = {
    "too many cells": (domain(*[1000] * 7), method_spec(decomposition="flat"), "can be numbered"),
    "more cells than a float holds": (domain(*[1000] * 110), method_spec(decomposition="uh", layers=3), "1.0·10³³⁰ cells"),
    "layers of more nodes than a float holds": (
        domain(*[10] * 400),
        method_spec(decomposition="tree", order=(tuple(f"x{j}" for j in range(399)),)),
        "1.0·10⁴⁰⁰ cells",
    ),
    "stopping without a price": (
        domain(2, 3),
        method_spec(decomposition="tree", elect={"layers": 1, "stop": True}),
        "say uneven",
    ),
    "more layers than attributes": (domain(2, 3), method_spec(decomposition="tree", elect={"layers": 3}), "1 to 2 layers"),
    "nothing to elect": (domain(1, 1), method_spec(decomposition="tree", elect={"layers": 1}), "1 cells"),
    "one group": (domain(2, 3), method_spec(decomposition="tree", elect={"layers": 1, "what": "groups"}), "2 to 2"),
    "too many groupings": (
        domain(*[2] * 20),
        method_spec(decomposition="tree", elect={"layers": 3, "what": "groups"}),
        "candidates",
    ),
    "bic without expected rows": (
        domain(2, 3),
        method_spec(decomposition="tree", elect={"layers": 1, "utility": "bic"}),
        "expected_rows",
    ),
    "an unknown utility": (
        domain(2, 3),
        method_spec(decomposition="tree", elect={"layers": 1, "utility": "aicc"}),
        "known are aic, bic",
    ),
    "shares that do not fit": (domain(2, 3), method_spec(decomposition="tree", order=("x0",), shares=(1, 2, 3)), "2 layers"),
    "a share of nearly nothing": (
        domain(2, 3),
        method_spec(decomposition="tree", order=("x0",), shares=(Decimal("1e300"), 1)),
        "pays so little .* larger share",
    ),
    "uh deeper than the domain": (domain(2, 3), method_spec(decomposition="uh", layers=3), "2 attributes"),
}


@pytest.mark.parametrize("shape, method, says", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_planned_is_refused_with_the_reason(shape, method, says):
    with pytest.raises(SpecError, match=says):
        make_plan(release(shape, method), SeededRandomness(1))


def test_noise_wider_than_can_be_drawn_is_refused_before_anything_is_charged():
    with pytest.raises(SpecError, match="more than can be drawn"):
        make_plan(
            release(
                domain(2, 2, unit={"rows_per_person": 10}),
                method_spec(decomposition="tree", order=("x0",), sets={"count": 100}),
                "0.000000001",
                neighbours="substitute",
            )
        )


def test_branches_that_rules_end_early_are_in_the_plan():
    shape = domain(2, 2, rules=(never(x0=1, x1=1),))
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0", "x1"))))
    assert [(layer.nodes) for layer in plan.layers] == [2, 2]
    assert {d.nodes: d.epsilon for d in plan.draws if d.layer == 1} == {"inner": Fraction(1, 2), "leaves": Fraction(1)}
