"""A pair of attributes is called clear of noise and chance in at most one release of twenty where there is nothing to find."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.spec.domain import Domain
from steps_engine.domain.counting import count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tests.tasks.publishing.making import a_release

ROWS = 3000
TREE = {"decomposition": "tree", "order": ("a0", "a1", "a2")}
PAIRS = {"decomposition": "pairs"}
SHARES = {
    "nearly all alike": lambda j, size: [0.97] + [0.03 / (size - 1)] * (size - 1),
    "categories that nobody is in": lambda j, size: [0.5, 0.5] + [0.0] * (size - 2) if j % 2 else [1 / size] * size,
}


def domain(attributes: int, size: int) -> Domain:
    named = ({"name": f"a{j}", "kind": "categorical", "categories": tuple("abcdefghi"[:size])} for j in range(attributes))
    return Domain.model_validate({"name": "d", "population": "town", "expected_rows": ROWS, "attributes": tuple(named)})


def clear(of: Domain, method: dict, epsilon: str, codes: np.ndarray, seed: int) -> set[str]:
    source = SeededRandomness(("clear", seed))
    plan = make_plan(a_release(of, method, epsilon=epsilon), source)
    view = method_of(plan).view(of, plan, run_plan(of, plan, count_codes(codes), source).tables)
    return {f"{pair.first} {pair.second}" for pair in view.pairs if pair.clear}


@pytest.mark.parametrize(
    ("method", "shares", "attributes", "size", "epsilon", "releases"),
    [
        (TREE, "nearly all alike", 3, 6, "1", 40),
        (TREE, "nearly all alike", 3, 6, "10", 40),
        (TREE, "categories that nobody is in", 3, 6, "1", 40),
        pytest.param(PAIRS, "categories that nobody is in", 6, 9, "1", 15, marks=pytest.mark.whole),
        pytest.param(PAIRS, "nearly all alike", 8, 4, "10", 10, marks=pytest.mark.whole),
    ],
)
def test_attributes_that_have_nothing_to_do_with_each_other_are_not_called_related(
    method: dict, shares: str, attributes: int, size: int, epsilon: str, releases: int
):
    of, wrong = domain(attributes, size), 0
    for seed in range(releases):
        rng = np.random.default_rng(seed)
        codes = np.stack([rng.choice(size, ROWS, p=SHARES[shares](j, size)) for j in range(attributes)], axis=1)
        wrong += clear(of, method, epsilon, codes, seed) != set()
    assert wrong <= releases // 10, f"{wrong} of {releases} releases of independent attributes claim a relation"


@pytest.mark.parametrize("method", [TREE, PAIRS], ids=["tree", "pairs"])
def test_a_relation_of_rare_categories_is_found(method: dict):
    """The control: whoever never calls a pair clear would pass the test above."""
    of, rng = domain(3, 6), np.random.default_rng(1)
    first = rng.choice(6, ROWS, p=SHARES["nearly all alike"](0, 6))
    codes = np.stack([first, first, rng.integers(0, 6, ROWS)], axis=1)
    assert clear(of, method, "10", codes, 1) == {"a0 a1"}
