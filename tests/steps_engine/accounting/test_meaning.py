"""What ρ means, in figures: each held against the laws themselves, with controls that are too small."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas.plan import Draw
from schemas.spec.method import method_spec
from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.meaning import (
    belief,
    chance_of_a_right_guess,
    loss_of,
    promises_of,
    pure_epsilon_of_same_noise,
    rho_between,
)
from steps_engine.accounting.mechanisms import GAUSSIAN, TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.methods.planning import make_plan
from tests.steps_engine.shapes import domain, release

SHAPE = domain(2, 3, 4, expected_rows=1000)
OPTIONS = {"flat": {}, "tree": {"elect": {"layers": 2}}, "uh": {"layers": 1}, "cascade": {}, "privbayes": {}}
every_method = pytest.mark.parametrize("name", OPTIONS)
RHOS = pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 50), Fraction(1, 2), Fraction(1)])


def planned(name: str, epsilon: str = "1", of=SHAPE, **privacy):
    return make_plan(release(of, method_spec(name, **OPTIONS[name]), epsilon, **privacy))


def in_rho(name: str, epsilon: str = "1", of=SHAPE, delta: str = "1e-9", **privacy):
    return planned(name, epsilon, of, delta=Decimal(delta), **privacy)


def losses(rho: Fraction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a count with Gaussian noise at this cost and of its neighbour: log-ratio and both probabilities, value by value."""
    noise = CountNoise(GAUSSIAN, 1 / (2 * rho))
    values = np.arange(-math.ceil(40 * noise.length) - 40, math.ceil(40 * noise.length) + 41)
    with_them, without = noise.probability(values - 1), noise.probability(values)
    held = (with_them > 0) & (without > 0)
    return np.log(with_them[held] / without[held]), with_them[held], without[held]


@RHOS
@pytest.mark.parametrize("chance", [1 / 20, 1e-6, 1e-9])
def test_odds_grow_beyond_the_bound_with_at_most_its_chance(rho: Fraction, chance: float):
    ratio, with_them, without = losses(rho)
    for law in (with_them, without):
        assert law[ratio > loss_of(rho, chance)].sum() <= chance
        assert law[-ratio > loss_of(rho, chance)].sum() <= chance
    assert with_them[ratio > loss_of(rho / 4, chance)].sum() > chance  # control: half the noise would be noticed


def test_a_bound_on_what_was_seen_is_wider_than_epsilon_at_the_same_delta():
    """(ε, δ) alone does not bound the odds except with chance δ: the tail beyond ε is heavier than δ."""
    rho = Fraction(1, 50)
    epsilon = float(epsilon_of(rho, 1e-3).value)
    ratio, with_them, _ = losses(rho)
    assert loss_of(rho, 1e-3) > epsilon and with_them[ratio > epsilon].sum() > 1e-3


@RHOS
def test_nobody_guesses_better_than_said(rho: Fraction):
    _, with_them, without = losses(rho)
    right = np.maximum(with_them, without).sum() / 2
    assert right <= chance_of_a_right_guess(rho) <= 1
    assert right > chance_of_a_right_guess(rho / 4)  # control: half the noise would be noticed


def test_a_belief_moves_by_its_odds():
    for before in (0.01, 0.5, 0.9):
        after = belief(before, 1.5)
        assert after / (1 - after) == pytest.approx(math.exp(1.5) * before / (1 - before))
    assert belief(0.5, 1e6) == 1.0


def test_promises_are_the_plan_s_own_and_those_of_the_conversion():
    plan = in_rho("flat", delta="2.5e-7")
    told = promises_of(plan)
    assert [promise.delta for promise in told] == ["1e-6", "2.5e-7", "1e-9", "1e-12"]
    assert told[1].epsilon == plan.epsilon == "1" and told[1].order == plan.order
    for promise in (told[0], *told[2:]):
        assert Fraction(promise.epsilon) == epsilon_of(Fraction(plan.rho), float(promise.delta)).value
    assert promises_of(planned("flat")) == ()
    assert len(promises_of(in_rho("flat"))) == 3  # its own δ is told once


def test_a_replacement_is_two_steps_where_the_number_of_rows_is_published():
    rho = Fraction(in_rho("flat").rho)
    assert rho_between(in_rho("flat")) == rho
    assert rho_between(in_rho("flat", total="invariant")) == 4 * rho
    assert rho_between(in_rho("flat", total="invariant", neighbours="substitute")) == rho


@every_method
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_of_a_pure_plan_costs_its_epsilon(name: str, neighbours: str, rows: int):
    of = domain(2, 3, 4, expected_rows=1000, unit={"rows_per_person": rows})
    for epsilon in ("0.01", "1", "8"):
        same = pure_epsilon_of_same_noise(planned(name, epsilon, of, neighbours=neighbours))
        assert same == pytest.approx(float(epsilon), rel=1e-9)


@every_method
def test_the_same_noise_has_the_same_variance(name: str):
    """Each Gaussian replaced by the geometric law whose ε is found: its variance is the Gaussian's."""
    plan = in_rho(name, "2")
    for draw in plan.draws:
        if draw.kind == "count":
            alone = plan.model_copy(update={"draws": (leaf(draw),)})
            epsilon = pure_epsilon_of_same_noise(alone)
            geometric = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1) / Fraction(epsilon))
            assert geometric.variance == pytest.approx(CountNoise(GAUSSIAN, draw.scale).variance, rel=1e-6)
            assert CountNoise(TWO_SIDED_GEOMETRIC, 1 / Fraction(1.1 * epsilon)).variance < 0.95 * geometric.variance


def leaf(draw: Draw) -> Draw:
    return draw.model_copy(update={"tree": None, "layer": 1, "nodes": "leaves"})


@every_method
@pytest.mark.parametrize("epsilon", ["0.001", "300", "1000000"])
def test_both_ends_of_epsilon_have_a_figure(name: str, epsilon: str):
    assert 0 < pure_epsilon_of_same_noise(in_rho(name, epsilon)) < math.inf
    assert all(math.isfinite(promise.order) for promise in promises_of(in_rho(name, epsilon)))
