"""Stopping has its fair chance: noise alone splits hardly a node, real dependence still does, and old plans grow as they did."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Plan, read_plan
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.accounting.mechanisms import elect
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.cascade import growth
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.growth import grow
from steps_engine.methods.cascade.plan import BY_NOISE, prices, threshold, tree_draws
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import release

ATTRIBUTES, ROWS = 67, 4000


def wide_domain(sizes: list[int]) -> Domain:
    attributes = tuple({"name": f"q{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(sizes))
    return Domain.model_validate({"name": "d", "population": "p", "expected_rows": ROWS, "attributes": attributes})


@pytest.fixture(scope="module")
def independent() -> tuple[Domain, Counts]:
    rng = np.random.default_rng(67)
    sizes = rng.integers(2, 6, ATTRIBUTES).tolist()
    return wide_domain(sizes), count_codes(np.stack([rng.integers(0, size, ROWS) for size in sizes], axis=1))


def planned(domain: Domain, epsilon: str = "1", **privacy) -> Plan:
    return make_plan(release(domain, method_spec(decomposition="cascade"), epsilon, **privacy))


def without_threshold(plan: Plan) -> Plan:
    """The plan as an earlier version would have sealed it."""
    document = plan.document
    del document["election"]["by_noise"]
    return read_plan(document)


def parts_split(trees: tuple[AttributeTree, ...]) -> tuple[int, int]:
    """Nodes that were split, of all that could have been: a node below one that stopped is no other node."""
    split, could = 0, 0
    for tree in trees[1:]:  # the first has no predecessor to be split on
        open_ = np.ones(1, dtype=bool)
        for layer, fanout in zip(tree.layers, tree.fanouts, strict=True):
            split, could = split + int((layer[open_] > 0).sum()), could + int(open_.sum())
            open_ = np.repeat(open_ & (layer > 0), fanout)
    return split, could


@pytest.mark.whole
def test_among_independent_attributes_fewer_than_one_node_in_twenty_is_split(independent):
    domain, counts = independent
    plan = planned(domain)
    found = [parts_split(grow(domain, plan, counts, SeededRandomness(("stop", seed)))) for seed in range(3)]
    split, could = map(sum, zip(*found, strict=True))
    assert could >= 3 * (ATTRIBUTES - 1) and split < 0.05 * could


def test_control_without_the_threshold_nearly_every_root_is_split(independent):
    domain, counts = independent
    old = without_threshold(planned(domain))
    assert old.election is not None and old.election.by_noise is None
    split, could = parts_split(grow(domain, old, counts, SeededRandomness("stop")))
    assert split > 0.6 * could


def roots_split(epsilon: str, seeds: int) -> tuple[int, int]:
    """Among eight independent attributes, file after file."""
    split, could, sizes = 0, 0, [2, 3, 4, 2, 5, 3, 2, 6]
    domain = wide_domain(sizes)
    plan = planned(domain, epsilon)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        counts = count_codes(np.stack([rng.integers(0, size, ROWS) for size in sizes], axis=1))
        trees = grow(domain, plan, counts, SeededRandomness(("chance", seed)))
        split, could = split + sum(int(tree.layers[0][0] > 0) for tree in trees[1:]), could + len(trees) - 1
    return split, could


@pytest.mark.whole
def test_where_noise_is_small_chance_splits_hardly_a_root_either():
    """Finite files of independent people show dependence: at ε = 40 that, and not the noise, is what a threshold must bear."""
    split, could = roots_split("40", seeds=40)
    assert could == 280 and split <= 3  # 0.7 at most are to be expected


@pytest.mark.whole
def test_control_a_threshold_that_knows_of_noise_alone_splits_more(monkeypatch):
    monkeypatch.setattr(growth, "threshold", lambda penalties, draw, chance, rows: threshold(penalties, draw, chance))
    split, could = roots_split("40", seeds=20)
    assert split > 0.1 * could


def test_a_dependence_that_is_real_is_still_split_on():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (ROWS, 12))
    codes[:, 11] = codes[:, 0]
    codes[:, 7] = np.where(rng.random(ROWS) < 0.9, codes[:, 3], 1 - codes[:, 3])
    domain = wide_domain([2] * 12)
    trees = grow(domain, planned(domain, "8"), count_codes(codes), SeededRandomness("real"))
    on = {tree.attribute: {j for split in tree.splits for j in split} for tree in trees}
    assert 0 in on[11] and 3 in on[7]


@pytest.mark.parametrize("privacy", [{}, {"delta": Decimal("1e-9")}], ids=["permute and flip", "exponential"])
def test_the_threshold_keeps_the_chance_that_it_is_named_after(privacy):
    """Scores of attributes without any dependence, 20,000 elections at once: the chance is a bound, and not far below it."""
    domain = wide_domain([2, 3, 4, 2, 3, 2])
    plan = planned(domain, "1", **privacy)
    draw = tree_draws(plan, "q5").elections[0]
    splits = ((), *((j,) for j in range(5)), *((i, j) for i in range(5) for j in range(i)))
    price = prices(domain.sizes, splits, 5, 1.0)
    for chance in (Fraction(1, 5), Fraction(1, 50)):
        scores = np.tile(-price - np.where(price > 0, threshold(price, draw, chance), 0.0), (20_000, 1))
        elected = elect(draw, scores, np.ones(scores.shape, dtype=bool), SeededRandomness("chance"))
        split = float((elected > 0).mean())
        least = 0.3 if draw.mechanism == "permute_and_flip" else 0.7
        assert least * chance < split < float(chance) + 3 * (float(chance) / 20_000) ** 0.5


def test_the_threshold_grows_with_the_candidates_and_is_none_where_penalties_are_enough():
    draw = tree_draws(planned(wide_domain([2, 2, 2])), "q1").elections[0]
    few, many = (threshold(np.zeros(1 + number), draw, BY_NOISE) for number in (2, 60))
    assert many - few == pytest.approx(float(draw.scale) * np.log(30))
    assert threshold(np.array([0.0, 100 * float(draw.scale)]), draw, BY_NOISE) == 0.0
    assert threshold(np.zeros(1), draw, BY_NOISE) == 0.0


def test_a_plan_without_the_key_keeps_its_text_and_its_hash(independent):
    plan = planned(independent[0])
    old = without_threshold(plan)
    assert plan.election is not None and plan.election.by_noise == BY_NOISE
    assert "by_noise" not in old.document["election"] and old.hash != plan.hash
    assert read_plan(old.document).hash == old.hash
