"""Trees: every allowed cell in exactly one leaf, nodes of a layer disjoint, counts as a dictionary would have them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.method import MethodSpec, method_spec
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.tables import read_tree, tree_table
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import METHODS, SHAPES, allowed_cells, counted, domain, never, records, release


def grow(shape, method, counts=None, seed=1):
    randomness = SeededRandomness(seed)
    plan = make_plan(release(shape, method), randomness)
    return plan, build_tree(shape, plan, counts if counts is not None else counted(shape, 50), randomness)


def deepest(shape) -> MethodSpec:
    return method_spec(decomposition="tree", elect={"layers": max(1, sum(size > 1 for size in shape.sizes))})


CASES = {  # a domain of one cell has nothing to elect: the plan refuses it (test_planning)
    f"{name}: {how}": (shape, method or deepest(shape))
    for name, shape in SHAPES.items()
    for how, method in {**METHODS, "elected to the bottom": None}.items()
    if shape.all_cells > 1 or how in ("flat", "tree, one layer given", "uh")
}
every_case = pytest.mark.parametrize("shape, method", CASES.values(), ids=CASES)
splittable = {name: shape for name, shape in SHAPES.items() if shape.all_cells > 1}


@every_case
def test_leaves_are_exactly_the_allowed_cells(shape, method):
    _, tree = grow(shape, method)
    cells = np.concatenate([layer.cell[layer.cell >= 0] for layer in tree.layers])
    codes = [tuple(np.unravel_index(c, shape.sizes)) for c in cells]
    assert sorted(codes) == allowed_cells(shape) and len(set(codes)) == len(codes)


@every_case
def test_nodes_count_what_a_dictionary_counts(shape, method):
    rows = records(shape, 300, seed=3)
    _, tree = grow(shape, method, counted(shape, 300, seed=3))
    exact = tree.node_counts(counted(shape, 300, seed=3))
    assert exact[0].tolist() == [300]
    for depth in range(1, len(tree.layers) + 1):
        for branch, count in zip(tree.branches(depth), exact[depth], strict=True):
            fixed = np.flatnonzero(branch >= 0)
            assert count == np.all(rows[:, fixed] == branch[fixed], axis=1).sum()


@every_case
def test_the_plan_lists_every_draw_that_the_tree_needs_and_its_node_numbers_hold(shape, method):
    plan, tree = grow(shape, method)
    for depth, (layer, planned) in enumerate(zip(tree.layers, plan.layers, strict=False), start=1):
        assert len(layer) == planned.nodes if planned.nodes_are == "exact" else len(layer) <= planned.nodes
        leaf = layer.cell >= 0
        for nodes, present in (("inner", (~leaf).any()), ("leaves", leaf.any())):
            if present:
                assert plan.count_draw(depth, 1, nodes).scale > 0


@pytest.mark.parametrize("shape", splittable.values(), ids=splittable)
def test_a_tree_survives_its_table(shape):
    _, tree = grow(shape, deepest(shape))
    again = read_tree(shape, tree_table(tree))
    for one, other in zip(again.layers, tree.layers, strict=True):
        for field in ("parent", "code", "cell"):
            assert np.array_equal(getattr(one, field), getattr(other, field))
        assert [again.splits[s] for s in one.split] == [tree.splits[s] for s in other.split]


def _column(table, name, change):
    values, field = table[name].to_pylist(), table.schema.field(name)
    change(values)
    return table.set_column(table.column_names.index(name), field, [pa.array(values, field.type)])


TAMPERED = {
    "a node twice": lambda t: pa.concat_tables([t, t.slice(0, 1)]),
    "a node missing": lambda t: t.slice(0, len(t) - 1),
    "a parent that does not exist": lambda t: _column(t, "parent", lambda v: v.__setitem__(-1, 99)),
    "siblings with the same category": lambda t: _column(t, "code", lambda v: v.__setitem__(1, v[0])),
    "an attribute twice on a path": lambda t: _column(t, "split", lambda v: v.__setitem__(slice(2, 212), v[:1] * 210)),
    "siblings split differently": lambda t: _column(t, "split", lambda v: v.__setitem__(0, v[-1])),
    "a leaf that is split": lambda t: _column(t, "leaf", lambda v: v.__setitem__(0, True)),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_table_that_is_not_a_tree_of_the_domain_is_refused(tamper):
    shape = SHAPES["uneven"]
    _, tree = grow(shape, METHODS["tree, one layer given"])
    with pytest.raises(ValueError):
        read_tree(shape, tamper(tree_table(tree).unify_dictionaries()))


def test_branches_elect_different_attributes_and_differ_in_length():
    shape = domain(2, 3, 4, 2, rules=(never(x0=1, x1=(1, 2)), never(x0=1, x2=(1, 2, 3)), never(x0=1, x3=1)))
    rng = np.random.default_rng(5)
    rows = np.array([(1, 0, 0, 0)] * 4000 + [(0, a, b, 0) for a, b in rng.integers(0, 3, (400, 2))])
    from steps_engine.domain.counting import count_codes

    randomness = SeededRandomness(2)
    plan = make_plan(release(shape, deepest(shape), "1000"), randomness)
    tree = build_tree(shape, plan, count_codes(rows), randomness)
    lengths = Counter(depth for depth, layer in enumerate(tree.layers, 1) for c in layer.cell if c >= 0)
    assert len(lengths) > 1
    uneven = build_tree(
        domain(2, 2, 2),
        make_plan(release(domain(2, 2, 2), method_spec(decomposition="tree", elect={"layers": 2}), "1000"), randomness),
        count_codes(np.array([(0, 0, i % 2) for i in range(200)] + [(1, i % 2, 0) for i in range(90)])),
        randomness,
    )
    assert len({uneven.splits[s] for s in uneven.layers[1].split}) > 1


def test_a_record_outside_the_rules_is_refused_without_saying_which():
    shape = SHAPES["a rule"]
    _, tree = grow(shape, METHODS["flat"])
    from steps_engine.domain.counting import count_codes

    with pytest.raises(ValueError, match="rules exclude"):
        tree.node_counts(count_codes(np.array([[1, 0, 3]])))


def test_a_given_tree_does_not_look_at_counts():
    shape = SHAPES["uneven"]
    plan = make_plan(release(shape, METHODS["tree, one layer given"]))
    assert build_tree(shape, plan, None, None).widths() == (1, 2, 210)


def test_exact_counts_print_only_their_shape():
    assert "confidential" in repr(counted(domain(3), 17)) and "17" not in repr(counted(domain(3), 17))
