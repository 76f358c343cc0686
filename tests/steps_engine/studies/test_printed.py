"""The correction as printed does not add up; ours does. Both are compared on the same noisy counts."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.correct import correct
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness, integers_below
from steps_engine.studies.printed import as_printed, correct_as_printed

SIZES = {"a": 2, "b": 3, "c": 4}


def sanitized(order: tuple[str, ...], epsilon: str = "1"):
    named = ({"name": n, "kind": "categorical", "categories": tuple(map(str, range(k)))} for n, k in SIZES.items())
    domain = Domain(name="small", population="nobody", attributes=tuple(named))
    spec = ReleaseSpec(
        name="small", dataset="-", source="-", privacy={"epsilon": Decimal(epsilon), "total": "invariant"},
        method=method_spec(**{"decomposition": "tree", "order": order, "sets": {"count": 2}}),
    )  # fmt: skip
    randomness = SeededRandomness(3)
    codes = np.stack([integers_below(k, 500, randomness) for k in SIZES.values()], axis=1)
    plan = make_plan(Release(spec=spec, domain=domain, folder="."))
    tree = build_tree(domain, plan, None, None)
    return tree, sanitize(tree, count_codes(codes), plan, randomness), plan


def gaps(tree, counts) -> list[float]:
    """Largest |parent − Σ children| of each layer, root first."""
    pairs = zip(tree.layers, counts[:-1], counts[1:], strict=True)
    return [float(np.abs(above - layer.sum_up(below, len(above))).max()) for layer, above, below in pairs]


@pytest.mark.parametrize("order", [("a",), ("a", "b")])
def test_as_printed_children_do_not_sum_to_their_parent_while_ours_do(order):
    tree, noisy, plan = sanitized(order)
    printed = as_printed(tree, [np.array([noisy.total]), *(layer[0] for layer in noisy.layers)])
    assert min(gaps(tree, printed)) > 0.5
    ours = correct(tree, noisy, plan, SeededRandomness(4))
    assert max(gaps(tree, ours.estimates)) < 1e-8 and max(gaps(tree, [layer[0] for layer in ours.whole])) == 0


def test_as_printed_leaves_are_the_plain_noisy_counts():
    tree, noisy, _ = sanitized(("a", "b"))
    printed = as_printed(tree, [np.array([noisy.total]), *(layer[0] for layer in noisy.layers)])
    assert np.array_equal(printed[-1], noisy.layers[-1][0])


def test_as_printed_the_layer_above_the_leaves_ignores_them():
    """(b^0 − 1)/(b − 1) = 0: whatever the leaves say, the printed weight of their sum is nothing."""
    tree, noisy, _ = sanitized(("a", "b"))
    rows = [np.array([noisy.total]), *(layer[0] for layer in noisy.layers)]
    shifted = [*rows[:-1], rows[-1] + 100]
    for one, other in zip(as_printed(tree, rows)[:-1], as_printed(tree, shifted)[:-1], strict=True):
        assert np.array_equal(one, other)


def test_as_printed_against_a_calculation_by_hand():
    """Three layers, b = 4: z = n* in layer 2; in layer 1 (16−4)/15·n* + 3/15·Σz; the residual is divided by 4."""
    tree, noisy, _ = sanitized(("a", "b"))
    n, one, two, _three = 500.0, *(layer[0].astype(float) for layer in noisy.layers)
    z1 = np.array([12 / 15 * one[i] + 3 / 15 * two[3 * i : 3 * i + 3].sum() for i in range(2)])
    top = z1 + (n - z1.sum()) / 4
    second = np.array([two[3 * i + j] + (top[i] - two[3 * i : 3 * i + 3].sum()) / 4 for i in range(2) for j in range(3)])
    found = as_printed(tree, [np.array([n]), *(layer[0] for layer in noisy.layers)])
    assert np.allclose(found[1], top) and np.allclose(found[2], second)


def test_its_rows_are_n_and_none_is_negative():
    tree, noisy, plan = sanitized(("a",), epsilon="0.1")
    whole = correct_as_printed(tree, noisy, plan, SeededRandomness(5)).whole[-1]
    assert whole.min() >= 0 and (whole.sum(axis=1) == noisy.total).all()


def test_with_a_huge_epsilon_even_the_printed_leaves_are_exact():
    tree, noisy, plan = sanitized(("a", "b"), epsilon="100000")
    printed = correct_as_printed(tree, noisy, plan, SeededRandomness(5))
    ours = correct(tree, noisy, plan, SeededRandomness(5))
    assert np.array_equal(printed.whole[-1], ours.whole[-1])
