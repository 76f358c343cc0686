"""Plausible tables: the posterior of exact counts given noisy ones, by brute force; calibrated; zeros stay zeros."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from schemas.spec.method import method_spec
from steps_engine.accounting.mechanisms import GAUSSIAN, TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.inference.posterior import Prior, flat_weight
from steps_engine.inference.rounding import whole_numbers
from steps_engine.methods.planning import make_plan
from steps_engine.methods.tree import posterior
from steps_engine.methods.tree.correct import correct
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import SeededRandomness, two_sided_geometric
from tests.steps_engine.shapes import domain, release

LAWS = {
    "two-sided geometric": lambda error, scale: np.exp(-np.abs(error) / scale),
    "discrete Gaussian": lambda error, scale: np.exp(-(error**2) / (2 * scale)),
}
MECHANISMS = {"two-sided geometric": TWO_SIDED_GEOMETRIC, "discrete Gaussian": GAUSSIAN}


def plain_posterior(noisy: np.ndarray, scale: float, top: int, law: str) -> np.ndarray:
    """The same EM written cell by cell: rows are cells, columns exact counts 0…top."""
    exact, prior = np.arange(top + 1), np.full(top + 1, 1 / (top + 1))
    prior = prior / 2 + (exact == 0) / 2
    for _ in range(200):
        rows = np.array([LAWS[law](y - exact, scale) * prior for y in noisy])
        rows /= rows.sum(axis=1, keepdims=True)
        prior = rows.sum(axis=0) + flat_weight(len(noisy)) / (top + 1)
        prior /= prior.sum()
    rows = np.array([LAWS[law](y - exact, scale) * prior for y in noisy])
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.whole
def test_the_posterior_is_the_one_written_out_cell_by_cell(law):
    rng, noise = (
        np.random.default_rng(2),
        CountNoise(MECHANISMS[law], Fraction(2) if law != "discrete Gaussian" else Fraction(8)),
    )
    exact = np.where(rng.random(150) < 0.7, 0, rng.poisson(6, 150))
    noisy = exact + noise.draw(150, SeededRandomness(1))
    found, plain = Prior.fit(noisy, noise), plain_posterior(noisy, float(noise.scale), int(noisy.max()), law)
    assert found.step == 1
    assert np.allclose(found.cumulative[noisy - found.lowest], np.cumsum(plain, axis=1), atol=1e-9)
    mean = plain @ np.arange(plain.shape[1])
    assert np.allclose(found.variances(noisy), plain @ np.arange(plain.shape[1]) ** 2 - mean**2, atol=1e-8)
    draws = np.array([found.draw(noisy, SeededRandomness(i)) for i in range(2000)])
    assert np.allclose(draws.mean(axis=0), mean, atol=0.35) and draws.min() >= 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("length", [Fraction(1, 2), Fraction(3), Fraction(40), Fraction(2000)])
@pytest.mark.whole
def test_draws_are_calibrated(length, law):
    """The exact count is exchangeable with its draws: it exceeds a draw as often as a draw exceeds it."""
    noise = CountNoise(MECHANISMS[law], length**2 if law == "discrete Gaussian" else length)
    ranks = np.concatenate([ranks_among_draws(noise, length, seed) for seed in range(3)])
    frequency = np.bincount(ranks, minlength=20) / len(ranks) * 20
    assert abs(ranks.mean() / 19 - 0.5) < 0.02 and np.all(np.abs(frequency - 1) < 0.2)


def ranks_among_draws(noise: CountNoise, length: Fraction, seed: int) -> np.ndarray:
    """Of 6,000 exact counts, the place of each among 19 draws of it; ties at random."""
    rng = np.random.default_rng((seed, int(length * 2)))
    exact = np.where(rng.random(6000) < 0.6, 0, rng.gamma(1.0, 6 * float(length) + 4, 6000)).astype(np.int64)
    noisy = exact + noise.draw(len(exact), SeededRandomness(("y", seed, str(length))))
    prior = Prior.fit(noisy, noise)
    draws = np.array([prior.draw(noisy, SeededRandomness((i, seed, str(length)))) for i in range(19)])
    return (draws < exact).sum(axis=0) + np.floor(rng.random(6000) * ((draws == exact).sum(axis=0) + 1)).astype(int)


def test_control_taking_noisy_counts_for_exact_ones_is_not_calibrated():
    exact = np.repeat([0, 9], 3000)
    noisy = exact + two_sided_geometric(Fraction(3), 6000, SeededRandomness(1))
    draws = np.array([noisy + two_sided_geometric(Fraction(3), 6000, SeededRandomness(i)) for i in range(19)])
    rank = (draws < exact).sum(axis=0)
    assert abs(np.bincount(rank, minlength=20) / 6000 * 20 - 1).max() > 0.25


def test_full_cells_do_not_pay_for_empty_ones():
    """Projection takes τ from every full cell to make up for the noise of the empty ones (the control); a draw does not."""
    shape, rng = domain(60, 60), np.random.default_rng(4)
    counts = Counts(np.stack([rng.permutation(60)[:40], rng.permutation(60)[:40]], axis=1).astype(np.int32), np.full(40, 50))
    randomness = SeededRandomness(9)
    plan = make_plan(release(shape, method_spec(decomposition="flat", sets={"count": 4, "budget": "shared"}), "0.5"))
    tree = build_tree(shape, plan, None, None)
    noisy, full = sanitize(tree, counts, plan, randomness), tree.node_counts(counts)[1] > 0
    drawn = correct(tree, noisy, plan, randomness).whole[1]
    assert abs(drawn[:, full].mean() - 50) < 1
    assert abs((drawn == 0).mean() - (~full).mean()) < 0.06
    fresh = noisy.layers[0][0] + two_sided_geometric(Fraction(2), 3600, randomness).astype(float)
    crude = whole_numbers(tree, [np.array([fresh.sum()]), fresh], randomness)[1]
    assert crude[full].mean() < 47


@pytest.mark.slow
def test_sets_of_one_measurement_differ_as_much_as_the_noise_leaves_open():
    """A handful of cells must not look certain: 95% intervals from the between-set variance cover the exact counts."""
    shape, exact = domain(2, 3), np.array([40, 0, 7, 12, 90, 3])
    codes = np.array([divmod(i, 3) for i in range(6)])
    counts = Counts(codes[exact > 0].astype(np.int32), exact[exact > 0])
    covered = []
    for i in range(150):
        randomness = SeededRandomness(("few", i))
        plan = make_plan(
            release(shape, method_spec(decomposition="tree", order=("x0",), sets={"count": 60, "budget": "shared"}), "1")
        )
        tree = build_tree(shape, plan, None, None)
        draws = correct(tree, sanitize(tree, counts, plan, randomness), plan, randomness).whole[2]
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        covered.append((low <= exact) & (exact <= high))
    assert np.mean(covered) > 0.85


def test_shared_sets_cost_one_measurement():
    shape = domain(2, 3)
    plan = make_plan(release(shape, method_spec(decomposition="tree", order=("x0",), sets={"count": 7, "budget": "shared"})))
    assert sum(draw.epsilon for draw in plan.draws) == 1 and plan.measurements == 1 and plan.sets == 7
    tree = build_tree(shape, plan, None, None)
    noisy = sanitize(tree, count_codes(np.array([[0, 1]] * 9)), plan, SeededRandomness(1))
    assert [layer.shape[0] for layer in noisy.layers] == [1, 1]


def test_a_known_total_is_kept_by_every_plausible_table():
    shape = domain(4, 5)
    method = method_spec(decomposition="tree", order=("x0",), sets={"count": 3, "budget": "shared"})
    plan = make_plan(release(shape, method, "0.5", total="invariant"))
    tree, randomness = build_tree(shape, plan, None, None), SeededRandomness(5)
    rows = np.random.default_rng(1).integers(0, 4, (77, 2))
    assert (correct(tree, sanitize(tree, count_codes(rows), plan, randomness), plan, randomness).whole[0] == 77).all()


def rows_in_empty_families(groups: int, monkeypatch) -> float:
    """60 families of 100 cells, every second one empty and the others sparse: rows that a drawn table puts in the empty ones."""
    monkeypatch.setattr(posterior, "MOST_GROUPS", groups)
    shape, rng, randomness = domain(60, 100), np.random.default_rng(3), SeededRandomness("families")
    rows = np.stack([2 * rng.integers(0, 30, 3000), rng.integers(0, 100, 3000)], axis=1)
    plan = make_plan(
        release(shape, method_spec(decomposition="tree", order=("x0",), sets={"count": 4, "budget": "shared"}), "1")
    )
    tree = build_tree(shape, plan, None, None)
    whole = correct(tree, sanitize(tree, count_codes(rows), plan, randomness), plan, randomness).whole[2]
    return whole.reshape(4, 30, 2, 100)[:, :, 1].sum() / 4


def test_cells_of_empty_families_stay_empty(monkeypatch):
    """With one prior for all cells (the control) they take part of what the full families have."""
    assert rows_in_empty_families(16, monkeypatch) < rows_in_empty_families(1, monkeypatch) / 2
