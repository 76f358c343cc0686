"""The posterior of an interaction: as wide as it says, kind to what is strong or smooth, and nothing for the margins."""

from __future__ import annotations

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
