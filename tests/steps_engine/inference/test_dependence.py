"""The posterior of an interaction: as wide as it says, kind to what is strong or smooth, and nothing for the margins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steps_engine.inference.contrasts import interaction
from steps_engine.inference.dependence import axis, dependence
from steps_engine.noise import SeededRandomness

SHARES = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.6, 0.3, 0.1])
TOTAL, SIGMA = 10_000, 40.0


def noisy(truth: np.ndarray, rng: np.random.Generator, sigma: float = SIGMA) -> np.ndarray:
    return truth + interaction(rng.normal(0, sigma, truth.shape))


def drawn_from_the_prior(strength: float, rng: np.random.Generator) -> np.ndarray:
    """An interaction of this strength: independent along functions that are orthonormal under the margins."""
    sides = []
    for shares in SHARES:
        root = np.sqrt(shares)
        sides.append(np.linalg.qr(np.column_stack([root, np.eye(len(root))]))[0][:, 1:] * root[:, None])
    z = rng.normal(size=(sides[0].shape[1], sides[1].shape[1]))
    return TOTAL * strength * sides[0] @ z @ sides[1].T


def posterior(measured: np.ndarray, ordered: bool = False, sigma: float = SIGMA):
    return dependence(measured, sigma**2, TOTAL, tuple(axis(shares, ordered) for shares in SHARES))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.whole
def test_draws_add_nothing_to_the_margins_and_have_the_mean_of_the_posterior(ordered):
    rng = np.random.default_rng(1)
    found = posterior(noisy(drawn_from_the_prior(0.05, rng), rng), ordered)
    draws = np.array([found.draw(SeededRandomness(("draw", i))) for i in range(2000)])
    assert np.allclose(draws.sum(axis=1), 0, atol=1e-6) and np.allclose(draws.sum(axis=2), 0, atol=1e-6)
    assert np.abs(draws.mean(axis=0) - found.mean).max() < 4.5 * draws.std(axis=0).max() / np.sqrt(2000)


def test_with_hardly_any_noise_the_posterior_is_the_measurement_and_with_much_it_is_about_nought():
    rng = np.random.default_rng(2)
    truth = drawn_from_the_prior(0.2, rng)
    assert posterior(truth, sigma=1e-3).mean == pytest.approx(truth, abs=0.01)
    assert np.abs(posterior(noisy(0 * truth, rng, 3000.0), sigma=3000.0).mean).mean() < 300


def covered(strength: float, how) -> float:
    """How often the interval of 40 draws, or of what `how` makes of the posterior, holds a cell's interaction."""
    rng, inside = np.random.default_rng(3), []
    for repeat in range(60):
        truth = drawn_from_the_prior(strength, rng)
        found = posterior(noisy(truth, rng))
        draws = np.array([how(found, SeededRandomness((repeat, i))) for i in range(40)])
        inside.append(np.abs(truth - draws.mean(axis=0)) <= 2.02 * draws.std(axis=0, ddof=1))
    return float(np.mean(inside))


@pytest.mark.parametrize("strength", [0.01, 0.03, 0.3])
@pytest.mark.whole
def test_intervals_from_draws_cover_whatever_the_strength(strength):
    assert 0.91 < covered(strength, lambda found, randomness: found.draw(randomness)) < 0.99


@pytest.mark.whole
def test_draws_of_half_the_spread_would_cover_less():
    """The control: what independent noise in each cell of a table of two by two, centred afterwards, comes to."""
    assert covered(0.3, lambda found, randomness: (found.mean + found.draw(randomness)) / 2) < 0.8


def test_smooth_dependence_of_ordered_categories_is_found_with_less_error():
    """A shift along 15 bins: polynomials of high order are noise, and are recognised as such."""
    rng, shares = np.random.default_rng(4), (np.full(3, 1 / 3), np.exp(-0.5 * np.linspace(-3, 3, 15) ** 2))
    shares = shares[0], shares[1] / shares[1].sum()
    truth = TOTAL * 0.2 * np.outer(shares[0] * [-1, 0, 1], shares[1] * np.linspace(-3, 3, 15))
    truth = truth - truth.sum(axis=1, keepdims=True) * shares[1]
    errors = []
    for ordered in (False, True):
        axes = axis(shares[0], False), axis(shares[1], ordered)
        found = [dependence(noisy(truth, rng), SIGMA**2, TOTAL, axes).mean for _ in range(40)]
        errors.append(np.mean((np.array(found) - truth) ** 2))
    assert errors[1] < errors[0] / 2


PEOPLE, PLACE = 5_000, (np.arange(10) - 4.5, np.arange(14) - 6.5)
TILTED = np.outer(np.array([1, 2, 2, 5, 11, 19, 21, 26, 11, 2]), 0.85 ** np.arange(14)) * np.exp(0.01 * np.outer(*PLACE))


def slopes_held(with_trends: bool) -> float:
    """How often ten draws hold the covariance of a sample of people in whom one attribute rises with another."""
    rng, inside, sigma = np.random.default_rng(4), [], 3.0
    for repeat in range(40):
        table = rng.multinomial(PEOPLE, (TILTED / TILTED.sum()).ravel()).reshape(TILTED.shape).astype(float)
        sides = table.sum(axis=1) / PEOPLE, table.sum(axis=0) / PEOPLE
        truth = interaction(table - PEOPLE * np.outer(*sides))
        axes = tuple(axis(shares, True) for shares in sides)
        found = dependence(
            noisy(truth, rng, sigma),
            sigma**2,
            PEOPLE,
            axes if with_trends else tuple(replace(each, trend=None) for each in axes),
        )
        draws = np.array([(found.draw(SeededRandomness((repeat, i))) * np.outer(*PLACE)).sum() for i in range(10)])
        inside.append(abs((truth * np.outer(*PLACE)).sum() - draws.mean()) <= 2.26 * np.sqrt(1.1) * draws.std(ddof=1))
    return float(np.mean(inside))


def test_a_trend_is_not_pulled_to_nought_with_all_that_surrounds_it():
    assert slopes_held(True) >= 0.85


def test_control_without_a_coefficient_of_its_own_it_is():
    assert slopes_held(False) < 0.65


def test_attributes_without_an_order_have_a_trend_if_they_have_two_categories():
    two, three, alone = axis(np.array([0.3, 0.7]), False), axis(SHARES[1], False), axis(np.array([1.0, 0.0]), True)
    assert two.trend == pytest.approx(np.array([-1, 1]) / np.sqrt(2)) and three.trend is None and alone.trend is None
    ordered = axis(SHARES[0], True).trend
    assert ordered is not None and ordered.sum() == pytest.approx(0) and ordered[0] < 0 < ordered[-1]
