"""The guarantee, tried on worst-case neighbours at ε = 1, with controls that break it and are caught.

`make audit-privacy` runs the same with many more trials.
"""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from schemas.spec.method import method_spec
from steps_engine.accounting.mechanisms import ELECTIONS
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree.election import AIC, Utility, elect_attributes, log_likelihood
from steps_engine.methods.tree.growth import Growth
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness
from tests.privacy_audit import epsilon_lower_bound
from tests.steps_engine.shapes import domain, electing_by, release

pytestmark = pytest.mark.slow
TRIALS = int(os.environ.get("STEPS_AUDIT_TRIALS", 4000))
SHAPE = domain(2, 3)
SOMEBODY, NOBODY = count_codes(np.array([[1, 2]])), count_codes(np.zeros((0, 2), int))


def evidence(plan, counts: Counts, seed: int, draw=sanitize) -> np.ndarray:
    """Per run: the log-likelihood ratio of what the person's own nodes show, somebody against nobody."""
    tree = build_tree(SHAPE, plan, None, None)
    mine = [int(np.flatnonzero(exact)[0]) for exact in tree.node_counts(SOMEBODY)[1:]]
    randomness, ratios = SeededRandomness(("audit", seed)), np.empty(TRIALS)
    scales = [
        float(plan.count_draw(d, 1, "inner" if d < len(tree.layers) else "leaves").scale) for d in range(1, len(mine) + 1)
    ]
    for trial in range(TRIALS):
        noisy = draw(tree, counts, plan, randomness)
        ratios[trial] = sum(
            np.sign(layer[:, node] - 0.5).sum() / scale for layer, node, scale in zip(noisy.layers, mine, scales, strict=True)
        )
    return ratios


def plan_of(epsilon="1", sets=1, **privacy):
    return make_plan(release(SHAPE, method_spec(decomposition="tree", order=("x0",), sets={"count": sets}), epsilon, **privacy))


def bound(plan, draw=sanitize) -> float:
    return epsilon_lower_bound(evidence(plan, SOMEBODY, 1, draw), evidence(plan, NOBODY, 2, draw))


@pytest.mark.parametrize("sets", [1, 2])
def test_counts_keep_their_epsilon_on_one_record_against_none(sets):
    assert bound(plan_of(sets=sets)) <= 1


def test_control_half_the_noise_is_caught():
    honest = plan_of()
    half = honest.model_copy(update={"draws": tuple(d.model_copy(update={"scale": d.scale / 2}) for d in honest.draws)})
    assert bound(half) > 1


def test_control_one_draw_too_many_is_caught():
    """Two layers at ε/1 each, as if the last cross-tabulation had been forgotten in the division."""
    honest = plan_of()
    greedy = honest.model_copy(
        update={"draws": tuple(d.model_copy(update={"scale": d.sensitivity, "epsilon": Fraction(1)}) for d in honest.draws)}
    )
    assert bound(greedy) > 1


def test_control_sets_with_the_whole_epsilon_each_are_caught():
    honest = plan_of(sets=2)
    greedy = honest.model_copy(update={"draws": tuple(d.model_copy(update={"scale": d.scale / 2}) for d in honest.draws)})
    assert bound(greedy) > 1


def test_control_empty_cells_without_noise_are_caught():
    def skipping(tree, counts, plan, randomness):
        noisy = sanitize(tree, counts, plan, randomness)
        for layer, exact in zip(noisy.layers, tree.node_counts(counts)[1:], strict=True):
            layer[:, exact == 0] = 0
        return noisy

    assert bound(plan_of(), skipping) > 1


STOPPING = method_spec(
    decomposition="tree", elect={"layers": 1, "utility": "uneven", "stop": True, "share": Fraction(999, 1000)}
)


def stopped(plan, counts: Counts, seed: int, stop=None) -> np.ndarray:
    """Per run: whether the root is split at all."""
    randomness, result = SeededRandomness(("stop", seed)), np.empty(TRIALS)
    for trial in range(TRIALS):
        result[trial] = len(stop(counts) if stop else build_tree(SHAPE, plan, counts, randomness).layers) > 1
    return result


def test_stopping_keeps_its_epsilon_and_a_control_that_stops_where_nobody_is_is_caught():
    plan = make_plan(release(SHAPE, STOPPING, "1"))
    assert epsilon_lower_bound(stopped(plan, SOMEBODY, 1), stopped(plan, NOBODY, 2)) <= 1
    exact = lambda counts: [0] * (1 + (counts.count.sum() > 0))  # noqa: E731
    assert epsilon_lower_bound(stopped(plan, SOMEBODY, 1, exact), stopped(plan, NOBODY, 2, exact)) > 1


# Substitution neighbours for an election between two attributes: the substituted record brings a new category to the
# first attribute and takes the only record of one away from the second. The first is the unlikely winner in both, so
# that its chance moves by the whole change of the difference of the scores.
PAIR = domain(3, 3)
ONE = np.array([[0, 0], [2, 0]] * 60 + [[0, 1]])
OTHER = np.array([[0, 0], [2, 0]] * 60 + [[1, 0]])
SEEN = Utility(
    "seen", lambda h, k, n: 2 * log_likelihood(h) - 2 * (h > 0).sum(axis=1), AIC.sensitivity, monotone=True
)  # K from the data: the paper's error E4


def winners(utility: Utility, rows: np.ndarray, seed: int, mechanism: str) -> np.ndarray:
    method = method_spec(
        decomposition="tree", elect={"layers": 1, "utility": utility.name, "share": Fraction(999, 1000), "mechanism": mechanism}
    )
    plan = make_plan(release(PAIR, method, "1", neighbours="substitute"), method=electing_by(utility))
    randomness, counts, root = SeededRandomness(("election", seed)), count_codes(rows), Growth.from_root(Space(PAIR))
    return np.array([elect_attributes(root, counts, plan, 0, randomness, utility)[0][0][0] for _ in range(TRIALS)])


@pytest.mark.parametrize("mechanism", ELECTIONS)
def test_elections_keep_their_epsilon_under_substitution(mechanism):
    assert epsilon_lower_bound(winners(AIC, ONE, 1, mechanism), winners(AIC, OTHER, 2, mechanism)) <= 1


@pytest.mark.parametrize("mechanism", ELECTIONS)
def test_control_categories_counted_from_data_are_caught_under_substitution(mechanism):
    assert epsilon_lower_bound(winners(SEEN, ONE, 1, mechanism), winners(SEEN, OTHER, 2, mechanism)) > 1
