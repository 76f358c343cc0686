"""Least squares against dense generalised least squares; projection against brute force; rounding that keeps sums."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from schemas.spec.method import method_spec
from steps_engine.accounting.mechanisms import TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.domain.nodes import Layer, Tree
from steps_engine.inference.least_squares import least_squares, least_squares_weights, variances
from steps_engine.inference.rounding import project, round_keeping_sums, whole_numbers
from steps_engine.laws import variance
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.plan import expected_errors
from steps_engine.methods.tree.sanitize import NoisyCounts, sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import SHAPES, counted, domain, release


def ragged_tree(rng: np.random.Generator, depths: int) -> Tree:
    """A random tree in which any node may be a leaf, with fan-outs from 1 to 5."""
    layers, alive = [], np.array([0])
    for depth in range(depths):
        parent = np.repeat(alive, rng.integers(1, 6, size=len(alive)))
        leaf = rng.random(len(parent)) < 0.3 if depth < depths - 1 else np.ones(len(parent), dtype=bool)
        if leaf.all() and depth < depths - 1:
            leaf[0] = False
        layers.append(Layer(parent, np.zeros(len(parent), np.int32), np.arange(len(parent)), np.where(leaf, 0, -1)))
        alive = np.flatnonzero(~leaf)
    return Tree(domain(2), ((0,),), tuple(layers))


def design(tree: Tree) -> np.ndarray:
    """Rows: nodes, root first; columns: leaves; 1 where the leaf lies below the node."""
    widths = tree.widths()
    start = np.cumsum((0, *widths))
    members: list[set[int]] = [set() for _ in range(start[-1])]
    leaves = [(d, i) for d, layer in enumerate(tree.layers, 1) for i in range(len(layer)) if layer.cell[i] >= 0]
    for column, (depth, node) in enumerate(leaves):
        while True:
            members[start[depth] + node].add(column)
            if depth == 0:
                break
            node, depth = int(tree.layers[depth - 1].parent[node]), depth - 1
    matrix = np.zeros((start[-1], len(leaves)))
    for row, columns in enumerate(members):
        matrix[row, list(columns)] = 1
    return matrix


def dense_least_squares(tree: Tree, noisy: list[np.ndarray], noise_variance: list[np.ndarray]):
    matrix, y, v = design(tree), np.concatenate(noisy).astype(float), np.concatenate(noise_variance)
    known = v == 0
    weight = np.where(np.isfinite(v) & ~known, 1 / np.where(known, 1, v), 0.0)
    normal = matrix.T @ (weight[:, None] * matrix)
    if not known.any():
        cover = np.linalg.inv(normal)
        leaves = cover @ (matrix.T @ (weight * y))
    else:  # Lagrange: least squares subject to the known totals
        held = matrix[known]
        block = np.block([[normal, held.T], [held, np.zeros((len(held), len(held)))]])
        inverse = np.linalg.inv(block)
        solution = inverse @ np.concatenate([matrix.T @ (weight * y), y[known]])
        leaves, cover = solution[: matrix.shape[1]], inverse[: matrix.shape[1], : matrix.shape[1]]
    return matrix @ leaves, np.diag(matrix @ cover @ matrix.T)


@pytest.mark.parametrize("root", [np.inf, 0.0, 3.7], ids=["total not counted", "total known", "total counted"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.whole
def test_two_passes_equal_dense_least_squares_on_ragged_trees(seed, root):
    rng = np.random.default_rng(seed)
    tree = ragged_tree(rng, depths=2 + seed % 4)
    noise_variance = [np.array([root]), *(rng.uniform(0.2, 40, len(layer)) for layer in tree.layers)]
    noisy = [rng.normal(50, 30, width) for width in tree.widths()]
    weights = least_squares_weights(tree, noise_variance)
    expected, expected_variance = dense_least_squares(tree, noisy, noise_variance)
    assert np.allclose(np.concatenate(least_squares(tree, weights, noisy)), expected, rtol=0, atol=1e-9)
    assert np.allclose(np.concatenate(weights.variance), expected_variance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fanout, depth", [(2, 4), (3, 3), (5, 2)])
def test_equal_fanout_and_variance_is_hay_et_al(fanout, depth):
    """Theorem 3 of Hay et al. (2010), root counted: z by their weights, then each child takes 1/b of the residual."""
    layers = []
    for d in range(1, depth + 1):
        width = fanout**d
        cell = np.arange(width) if d == depth else np.full(width, -1)
        layers.append(Layer(np.arange(width) // fanout, np.zeros(width, np.int32), np.arange(width) % fanout, cell))
    tree = Tree(domain(2), ((0,),), tuple(layers))
    rng = np.random.default_rng(0)
    noisy = [rng.normal(20, 9, width) for width in tree.widths()]
    ours = least_squares(tree, least_squares_weights(tree, [np.full(w, 2.0) for w in tree.widths()]), noisy)
    z = noisy[-1]
    bottom_up = [z]
    for height in range(2, depth + 2):  # their ℓ: a leaf has height 1
        own = (fanout**height - fanout ** (height - 1)) / (fanout**height - 1)
        z = own * noisy[-height] + (1 - own) * z.reshape(-1, fanout).sum(axis=1)
        bottom_up.insert(0, z)
    theirs = [bottom_up[0]]
    for z in bottom_up[1:]:
        residual = theirs[-1] - z.reshape(-1, fanout).sum(axis=1)
        theirs.append(z + np.repeat(residual, fanout) / fanout)
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(a, b, atol=1e-9)


def test_the_papers_printed_correction_leaves_children_that_miss_their_parent():
    """A control: eqn (top) as printed keeps the leaves as they are, so the sum does not hold; ours does."""
    shape = SHAPES["uneven"]
    randomness, counts = SeededRandomness(4), counted(shape, 500)
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0",))))
    tree = build_tree(shape, plan, None, None)
    noisy = sanitize(tree, counts, plan, randomness)
    ours = correct(tree, noisy, plan, randomness)
    last = tree.layers[-1]
    assert np.allclose(last.sum_up(ours.estimates[2], 2), ours.estimates[1])
    assert not np.allclose(last.sum_up(noisy.layers[1][0].astype(float), 2), ours.estimates[1], atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_projection_is_the_nearest_nonnegative_point_with_the_parents_sum(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=4)
    parent = np.repeat(np.arange(4), sizes)
    layer = Layer(parent, np.zeros(len(parent), np.int32), np.arange(len(parent)), np.arange(len(parent)))
    estimate, totals = rng.normal(1, 4, len(parent)), rng.integers(0, 9, size=4)
    kept, values, _ = project(layer, estimate, totals)
    found = np.zeros(len(parent))
    found[kept] = values
    for family in range(4):
        mine = parent == family
        best = minimize(
            lambda x, h=estimate[mine]: ((x - h) ** 2).sum(), np.full(mine.sum(), totals[family] / mine.sum()),
            bounds=[(0, None)] * mine.sum(), constraints={"type": "eq", "fun": lambda x, t=totals[family]: x.sum() - t},
            method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        assert np.isclose(found[mine].sum(), totals[family], atol=1e-9)
        assert np.allclose(found[mine], best.x, atol=1e-5)


def test_rounding_keeps_every_sum_and_is_unbiased():
    values = np.array([0.5, 0.25, 0.25, 1.0, 2.3, 0.7, 3.9, 0.1])
    sizes, totals = np.array([4, 0, 2, 2]), np.array([2, 0, 3, 4])
    draws = np.array([round_keeping_sums(values, sizes, totals, SeededRandomness(i)) for i in range(4000)])
    for family, total in ((slice(0, 4), 2), (slice(4, 6), 3), (slice(6, 8), 4)):
        assert np.all(draws[:, family].sum(axis=1) == total)
    assert np.all((draws == np.floor(values)) | (draws == np.floor(values) + 1))
    assert np.allclose(draws.mean(axis=0), values, atol=0.03)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_whole_numbers_add_up_and_are_not_negative(shape):
    randomness = SeededRandomness(8)
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0",), sets={"count": 3}), "0.3"))
    tree = build_tree(shape, plan, None, None)
    result = correct(tree, sanitize(tree, counted(shape, 40), plan, randomness), plan, randomness)
    for depth, layer in enumerate(tree.layers):
        inner = np.unique(layer.parent)
        for set_ in range(3):
            assert (result.whole[depth + 1][set_] >= 0).all()
            sums = layer.sum_up(result.whole[depth + 1][set_], len(result.whole[depth][set_]))
            assert np.array_equal(sums[inner], result.whole[depth][set_][inner])


def test_a_zero_total_gives_nobody():
    tree = ragged_tree(np.random.default_rng(1), 3)
    noisy = [np.array([-3.2]), *(np.random.default_rng(2).normal(0, 5, len(layer)) for layer in tree.layers)]
    rows = whole_numbers(tree, noisy, SeededRandomness(1))
    assert all((layer == 0).all() for layer in rows)


@pytest.mark.parametrize("total", ["estimated", "invariant"])
@pytest.mark.whole
def test_standard_errors_describe_the_estimates(total):
    """z-scores of the least-squares counts over many draws have mean 0 and variance 1, in every layer and for several sets."""
    shape, counts = SHAPES["uneven"], counted(SHAPES["uneven"], 900, seed=2)
    plan = make_plan(
        release(shape, method_spec(decomposition="tree", order=("x1", "x0"), sets={"count": 2}), "0.7", total=total)
    )
    tree = build_tree(shape, plan, None, None)
    exact, scores = tree.node_counts(counts), [[], [], [], []]
    for i in range(300):
        randomness = SeededRandomness(i)
        result = correct(tree, sanitize(tree, counts, plan, randomness), plan, randomness)
        for depth in range(4):
            if result.errors[depth].all():
                scores[depth].append((result.estimates[depth] - exact[depth]) / result.errors[depth])
    if total == "invariant":
        assert result.errors[0][0] == 0 and result.estimates[0][0] == 900 and (result.whole[0] == 900).all()
    for depth in range(1, 4):
        z = np.array(scores[depth])
        assert abs(z.mean()) < 4 / np.sqrt(z.size) + 0.02 and 0.9 < z.var() < 1.1


def test_expected_errors_of_the_plan_are_those_of_an_even_tree():
    shape = domain(3, 4, 5)
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0", "x1"))))
    tree = build_tree(shape, plan, None, None)
    found = least_squares_weights(tree, variances(tree, plan)).variance
    for layer, t in zip(plan.layers, found[1:], strict=True):
        assert np.allclose(np.sqrt(t), layer.expected_error, rtol=1e-5)
    assert expected_errors((4,), [CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1))], "estimated")[0] == pytest.approx(
        variance(Fraction(1)) ** 0.5
    )


def test_counts_survive_their_tables():
    shape, randomness = SHAPES["a rule"], SeededRandomness(3)
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0",), sets={"count": 2}), total="invariant"))
    tree = build_tree(shape, plan, None, None)
    noisy = sanitize(tree, counted(shape, 33), plan, randomness)
    consistent = correct(tree, noisy, plan, randomness)
    again = NoisyCounts.from_table(noisy.to_table())
    assert again.total == 33 and all(np.array_equal(a, b) for a, b in zip(again.layers, noisy.layers, strict=True))
    back = ConsistentCounts.from_table(consistent.to_table())
    for field in ("estimates", "errors", "whole"):
        assert all(np.array_equal(a, b) for a, b in zip(getattr(back, field), getattr(consistent, field), strict=True))
