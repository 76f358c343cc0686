"""PrivBayes: its cost, its rules, what it reproduces, and its guarantee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.methods.blocks import together
from steps_engine.methods.cascade.sanitize import sanitize
from steps_engine.methods.planning import make_plan
from steps_engine.methods.privbayes import network as privbayes
from steps_engine.methods.privbayes.network import as_tree, elect_network
from steps_engine.methods.privbayes.synthesize import sample, synthesize_privbayes
from steps_engine.noise import SeededRandomness
from tests.privacy_audit import epsilon_lower_bound
from tests.steps_engine.shapes import SHAPES, allowed_cells, counted, domain, release

PRIVBAYES = method_spec(decomposition="privbayes")


def fit(of, plan, counts, randomness):
    """Elect the network, then sanitize its joint tables."""
    trees = tuple(as_tree(of, j, parents) for j, parents in elect_network(of, plan, counts, randomness))
    return sanitize(of, trees, plan, counts, randomness)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6), st.decimals("0.001", "20", places=3), st.integers(1, 4),
    st.sampled_from(["split", "shared"]), st.sampled_from(["add_remove", "substitute"]), st.integers(1, 3),
)  # fmt: skip
def test_all_draws_together_cost_epsilon_exactly(sizes, epsilon, sets, budget, neighbours, rows):
    of = domain(*sizes, unit={"rows_per_person": rows})
    method = method_spec(decomposition="privbayes", sets={"count": sets, "budget": budget})
    plan = make_plan(release(of, method, str(epsilon), neighbours=neighbours))
    assert sum((draw.epsilon for draw in plan.draws), Fraction(0)) == Fraction(epsilon)
    factor = rows * (2 if neighbours == "substitute" else 1)
    for draw in plan.draws:
        assert draw.sensitivity == factor * (4 if draw.kind == "election" else 1)
        assert draw.scale == draw.sensitivity / draw.epsilon


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_keeps_its_rules(name):
    of, randomness = SHAPES[name], SeededRandomness(1)
    plan = make_plan(release(of, PRIVBAYES, "0.5"))
    rows = sample(of, plan, fit(of, plan, counted(of, 300), randomness), 1, randomness)
    assert set(map(tuple, rows.tolist())) <= set(allowed_cells(of))


def test_no_records_give_a_plausible_set():
    of, randomness = domain(2, 3, 2), SeededRandomness(1)
    plan = make_plan(release(of, PRIVBAYES))
    network = fit(of, plan, count_codes(np.zeros((0, 3), int)), randomness)
    assert together(synthesize_privbayes(of, plan, network, 1, randomness)).num_rows < 500


def test_a_chain_is_found_and_followed_with_a_large_budget():
    of, randomness = domain(2, 2, 2, 2, expected_rows=4000), SeededRandomness(2)
    first = np.random.default_rng(0).integers(0, 2, (4000, 2))
    codes = np.stack([first[:, 0], first[:, 1], first[:, 0], 1 - first[:, 1]], axis=1)
    plan = make_plan(release(of, PRIVBAYES, "10000"))
    rows = sample(of, plan, fit(of, plan, count_codes(codes), randomness), 1, randomness)
    assert np.array_equal(rows[:, 2], rows[:, 0]) and np.array_equal(rows[:, 3], 1 - rows[:, 1])


def test_a_network_places_each_attribute_once_after_its_parents():
    of, randomness = domain(2, 3, 2, 4, expected_rows=10**6), SeededRandomness(3)
    plan = make_plan(release(of, PRIVBAYES))
    network = elect_network(of, plan, counted(of, 500), randomness)
    for place, (attribute, parents) in enumerate(network):
        assert set(parents) <= {j for j, _ in network[:place]} and len(parents) <= privbayes.DEGREE
        assert attribute not in [j for j, _ in network[:place]]
    assert sorted(j for j, _ in network) == [0, 1, 2, 3]


def test_tables_that_noise_would_drown_are_no_candidates():
    of = domain(50, 50, expected_rows=100)
    plan = make_plan(release(of, PRIVBAYES, "0.1"))
    assert [parents for _, parents in elect_network(of, plan, counted(of, 100), SeededRandomness(1))] == [(), ()]


TRIALS = 4000
WITH, WITHOUT = np.array([[0, 0, 0]] * 30 + [[1, 1, 0]]), np.array([[0, 0, 0]] * 30)


def torn_apart(plan, codes: np.ndarray, seed: int) -> np.ndarray:
    """Per run: whether of the two attributes that the added record ties together one came first, and not the other next."""
    randomness, counts = SeededRandomness(("privbayes", seed)), count_codes(codes)
    networks = (elect_network(SHAPE, plan, counts, randomness) for _ in range(TRIALS))
    return np.array([network[0][0] != 2 and network[1][0] == 2 for network in networks], dtype=float)


SHAPE = domain(2, 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "caught"), [(1, False), (12, True)])
def test_elections_keep_their_epsilon_and_a_control_that_takes_twelve_times_as_much_is_caught(strength, caught):
    honest = make_plan(release(SHAPE, PRIVBAYES, "2"))
    draws = tuple(d.model_copy(update={"epsilon": d.epsilon * strength, "scale": d.scale / strength}) for d in honest.draws)
    plan = honest.model_copy(update={"draws": draws})
    bound = epsilon_lower_bound(torn_apart(plan, WITH, 1), torn_apart(plan, WITHOUT, 2))
    assert (bound > 0.5) == caught  # the first election has a quarter of ε = 2
