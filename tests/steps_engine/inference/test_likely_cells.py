"""What cells are likely to hold: the posterior written out, the margins of another fit, and far less noise than projection."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from steps_engine.accounting.mechanisms import GAUSSIAN, TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.inference import likely_cells as likely
from steps_engine.inference.raking import raked
from steps_engine.methods.tree.made_up import projected
from steps_engine.noise import SeededRandomness

SHAPE, SPARSE = (6, 5, 4, 7), (9, 8, 7, 6, 3)
NOISES = {"two-sided geometric": CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1)), "Gaussian": CountNoise(GAUSSIAN, Fraction(4))}
every_noise = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


def digits(shape: tuple[int, ...], cells: np.ndarray | None = None):
    codes = np.unravel_index(np.arange(np.prod(shape)) if cells is None else cells, shape)
    return lambda j: codes[j]


def dependent(rows: int, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> np.ndarray:
    """Two kinds of rows, of which neither is found in most cells."""
    rng, expected = np.random.default_rng(seed), np.zeros(shape)
    for share in (0.7, 0.3):
        of_kind = [rng.dirichlet(np.full(size, 0.5)) for size in shape]
        expected += share * reduce(np.multiply.outer, of_kind)
    return rng.multinomial(rows, expected.ravel() / expected.sum())


def fitted(exact: np.ndarray, noise: CountNoise, shape: tuple[int, ...] = SHAPE, seed: int = 1):
    """What is likely, and the projection, of noisy counts."""
    noisy = exact + noise.draw(len(exact), SeededRandomness(seed))
    start = projected(noisy[None, :].astype(float), np.array([float(exact.sum())])).ravel()
    return likely.likely_cells(noisy, noise, start.copy(), digits(shape), shape), start


def distance(exact: np.ndarray, found: np.ndarray, ways: int, shape: tuple[int, ...] = SHAPE) -> float:
    off = (exact / exact.sum() - found / found.sum()).reshape(shape)
    others = [tuple(set(range(len(shape))) - set(table)) for table in combinations(range(len(shape)), ways)]
    return float(np.mean([np.abs(off.sum(axis=rest)).sum() / 2 for rest in others]))


@every_noise
def test_the_ladder_is_poisson_s_law_and_that_of_the_noise_summed_value_by_value(noise):
    noisy, exact = np.array([-3, 0, 1, 2, 5, 9]), np.arange(10)
    ladder = likely._Ladder.of(noisy, noise)
    for y in noisy:
        law = noise.probability(y - exact)
        for rung in (0, ladder.rungs // 2, ladder.rungs - 1):
            mean = np.exp((ladder.first + rung) / likely.RUNGS)
            poisson = stats.poisson.pmf(exact, mean)
            at = ladder.places(np.array([y]))[0], rung + likely.OFFSETS
            assert ladder.chance[at] == pytest.approx((law * poisson).sum(), rel=1e-9)
            assert ladder.expected[at] == pytest.approx((law * poisson * exact).sum(), rel=1e-9)
            assert ladder.squared[at] == pytest.approx((law * poisson * exact**2).sum(), rel=1e-9)
        assert ladder.at_nought[ladder.places(np.array([y]))[0]] == pytest.approx(noise.probability(np.array([y]))[0])


def test_the_rung_of_a_mean_is_the_nearest_and_none_is_left_out():
    ladder = likely._Ladder.of(np.array([-2, 0, 12]), NOISES["Gaussian"])
    means = np.array([0.0, 1e-9, likely.LEAST, 0.3, 1.0, 7.7, 12.0, 1e6])
    nearest = np.exp((ladder.first + ladder.levels(means)) / likely.RUNGS)
    between = (means > likely.LEAST) & (means <= 12)
    assert np.all(np.abs(np.log(nearest[between] / means[between])) <= 0.5 / likely.RUNGS + 1e-9)
    assert ladder.levels(means)[0] == 0 and ladder.levels(means)[-1] == ladder.rungs - 1


def test_where_cells_are_what_is_implied_the_law_is_found_to_say_so():
    """And what is expected is then Bayes' answer for Poisson's counts about a known mean."""
    noise, rng = NOISES["two-sided geometric"], np.random.default_rng(5)
    mean = np.exp(np.arange(4, 9)[rng.integers(0, 5, 40_000)] / likely.RUNGS)  # each on a rung
    exact = rng.poisson(mean)
    noisy = exact + noise.draw(len(exact), SeededRandomness(3))
    ladder = likely._Ladder.of(noisy, noise)
    law = likely._Law(ladder)
    for _ in range(20):
        found, spread = law.expected(ladder.places(noisy), ladder.levels(mean))
    near = law.g[1 + likely.OFFSETS - 2 : 1 + likely.OFFSETS + 3]
    assert near.sum() > 0.9
    values = np.arange(40)
    for y, m in ((-1, mean.min()), (4, mean.max()), (8, mean.max())):
        weight = noise.probability(y - values) * stats.poisson.pmf(values, m)
        here = (noisy == y) & (mean == m)
        right = (weight * values).sum() / weight.sum()
        assert found[here].mean() == pytest.approx(right, abs=0.25)
        assert spread[here].mean() == pytest.approx((weight * values**2).sum() / weight.sum() - right**2, rel=0.2)


@pytest.mark.parametrize("ways", [1, 2])
def test_sweeps_end_with_the_margins_of_a_table_raked(ways):
    rng = np.random.default_rng(2)
    mean, wanted = rng.uniform(0.5, 2, SHAPE), rng.gamma(0.5, 2, SHAPE)
    margins = likely._Margins.of(digits(SHAPE), SHAPE, ways, mean.size)
    found = mean.ravel() / mean.sum() * wanted.sum()
    for _ in range(60):
        margins.fit(found, wanted.ravel(), np.zeros(found.size))
    tables = list(combinations(range(4), ways))
    asked = []
    for table in tables:
        rest = tuple(set(range(4)) - set(table))
        have = found.reshape(SHAPE).sum(axis=rest)
        assert np.allclose(have, wanted.sum(axis=rest), rtol=1e-4)
        asked.append((table, wanted.sum(axis=rest) / wanted.sum()))
    assert np.allclose(found.reshape(SHAPE) / found.sum(), raked(mean / mean.sum(), asked, None), atol=1e-4)


def test_a_pair_is_as_far_from_independence_as_its_noise_allows():
    counts = np.array([[40.0, 10, 10], [10, 40, 10]])
    implied = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    assert np.allclose(likely._beyond_noise(counts, np.zeros(counts.shape)), counts)
    assert np.allclose(likely._beyond_noise(counts, np.full(counts.shape, 1e9)), implied)
    some = likely._beyond_noise(counts, np.full(counts.shape, 15.0))
    assert np.allclose(some - implied, (1 - 45 / 225) * (counts - implied)) and np.allclose(some[:, 2], implied[:, 2])


@every_noise
def test_tables_of_two_and_three_are_nearer_than_those_of_the_projection(noise):
    near, far = np.zeros(2), np.zeros(2)
    for seed in range(3):
        exact = dependent(5_000, SPARSE, seed)
        found, start = fitted(exact, noise, SPARSE, seed)
        near += [distance(exact, found, ways, SPARSE) for ways in (2, 3)]
        far += [distance(exact, start, ways, SPARSE) for ways in (2, 3)]
    assert (near < 0.6 * far).all()


def test_with_the_law_of_other_noise_they_are_not():
    """The control: what is gained comes from knowing the noise."""
    exact, noise = dependent(5_000, SPARSE), NOISES["two-sided geometric"]
    noisy = exact + noise.draw(len(exact), SeededRandomness(1))
    start = projected(noisy[None, :].astype(float), np.array([float(exact.sum())])).ravel()
    right, wrong = (
        likely.likely_cells(noisy, CountNoise(TWO_SIDED_GEOMETRIC, scale), start.copy(), digits(SPARSE), SPARSE)
        for scale in (Fraction(1), Fraction(1, 20))
    )
    assert distance(exact, wrong, 3, SPARSE) > 1.3 * distance(exact, right, 3, SPARSE)


def test_cells_keep_what_is_their_own_where_pairs_know_nothing_of_it():
    """Rows of even parity only: every pair is as if attributes were independent."""
    shape = (2, 2, 2, 6)
    even = (np.indices(shape)[:3].sum(axis=0) % 2 == 0).ravel()
    exact = np.where(even, 60, 0)
    found, start = fitted(exact, NOISES["two-sided geometric"], shape)
    assert np.abs(found - exact).max() < 6 and found[~even].max() < 2
    assert distance(exact, found, 3, shape) <= distance(exact, start, 3, shape)


@pytest.mark.parametrize("shape", [(30,), (1, 30), (8, 9), (1, 8, 1, 9), (1, 1), (2, 2, 2)], ids=str)
@every_noise
def test_what_is_likely_is_a_table_of_the_given_total(noise, shape):
    exact = dependent(400, shape)
    found, start = fitted(exact, noise, shape)
    assert found.min() >= 0 and np.isfinite(found).all() and found.sum() == pytest.approx(start.sum())
    assert distance(exact, found, len(shape), shape) < 1.25 * distance(exact, start, len(shape), shape) + 0.01


def test_where_nearly_everybody_is_in_one_cell_empty_ones_are_not_filled_by_what_noise_leaves_open(monkeypatch):
    """A law of r that begins with a mean above 1 lets what is implied of 4,095 cells grow until noise contradicts it."""
    noise, exact, shape = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(7)), np.zeros(8**4, dtype=np.int64), (8, 8, 8, 8)
    exact[0] = 40_000
    assert all(fitted(exact, noise, shape, seed)[0][1:].sum() < 40 for seed in range(3))
    begun = likely._Law(likely._Ladder.of(np.zeros(1, dtype=np.int64), noise)).g
    assert begun[1:] @ likely.RATIOS <= 1
    monkeypatch.setattr(likely, "RATIOS", 1 / likely.RATIOS)  # the control: more above 1 than below
    assert fitted(exact, noise, shape, 0)[0][1:].sum() > 200


def test_nothing_is_found_in_a_table_of_nothing_and_everything_where_noise_is_none():
    noise, empty = NOISES["two-sided geometric"], np.zeros(60)
    found = likely.likely_cells(empty.astype(np.int64) - 2, noise, empty, digits((3, 4, 5)), (3, 4, 5))
    assert (found == 0).all()
    exact = dependent(500, (3, 4, 5))
    found, _ = fitted(exact, CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1, 30)), (3, 4, 5))
    assert np.allclose(found, exact, atol=1e-3)


def test_cells_that_rules_exclude_need_not_be_there():
    cells = np.flatnonzero(np.indices(SHAPE)[0].ravel() != np.indices(SHAPE)[1].ravel())
    exact, noise = dependent(3_000)[cells], NOISES["two-sided geometric"]
    noisy = exact + noise.draw(len(cells), SeededRandomness(1))
    start = projected(noisy[None, :].astype(float), np.array([float(exact.sum())])).ravel()
    found = likely.likely_cells(noisy, noise, start.copy(), digits(SHAPE, cells), SHAPE)
    assert len(found) == len(cells) and np.abs(found - exact).sum() < 0.9 * np.abs(start - exact).sum()


def test_noise_wider_than_its_steps_is_counted_in_bins():
    noise, exact = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(40)), dependent(200_000)
    assert likely._Ladder.of(exact, noise).step == 5
    found, start = fitted(exact, noise)
    assert distance(exact, found, 2) < distance(exact, start, 2) and distance(exact, found, 3) < distance(exact, start, 3)
