"""Rows that are exchanged: tables of three attributes come nearer to those of the pool, and nothing else happens."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from steps_engine.inference import exchanging
from steps_engine.inference.exchanging import Tables, _Balance, exchanged, passes_over
from steps_engine.noise import SeededRandomness

SIZES = (2, 3, 4, 3, 5)


def a_pool(rows: int = 8_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows in which triples are tied, with weights."""
    drawn = np.random.default_rng(3)
    codes = np.column_stack([drawn.integers(size, size=rows) for size in SIZES])
    codes[:, 3] = (codes[:, 0] + codes[:, 2]) % 3
    return codes.astype(np.uint8), drawn.integers(1, 2**15, size=rows) / 2**14


def a_sample(pool: np.ndarray, weight: np.ndarray, rows: int = 1_000) -> np.ndarray:
    return pool[np.random.default_rng(4).choice(len(pool), rows, p=weight / weight.sum())]


def misfit(rows: np.ndarray, pool: np.ndarray, weight: np.ndarray, ways: int = 3) -> float:
    """Σ (c − t)²/(t + 1) over all tables of so many attributes, by brute force."""
    total = 0.0
    for table in combinations(range(len(SIZES)), ways):
        shape = tuple(SIZES[j] for j in table)
        count, target = np.zeros(shape), np.zeros(shape)
        np.add.at(count, tuple(rows[:, j] for j in table), 1)
        np.add.at(target, tuple(pool[:, j] for j in table), weight * (len(rows) / weight.sum()))
        total += float(((count - target) ** 2 / (target + 1)).sum())
    return total


def test_triples_come_nearer_and_pairs_do_too():
    pool, weight = a_pool()
    rows = a_sample(pool, weight)
    better = exchanged(rows, pool, weight, SIZES, SeededRandomness("rows"))
    assert misfit(better, pool, weight) < 0.3 * misfit(rows, pool, weight)
    assert misfit(better, pool, weight, 2) < 0.3 * misfit(rows, pool, weight, 2)


def test_the_control_that_takes_every_offer_comes_no_nearer(monkeypatch: pytest.MonkeyPatch):
    pool, weight = a_pool()
    rows = a_sample(pool, weight)
    monkeypatch.setattr(_Balance, "gain", lambda self, old, new: np.ones(old.shape[1]))
    taken = exchanged(rows, pool, weight, SIZES, SeededRandomness("rows"))
    assert misfit(taken, pool, weight) > 0.5 * misfit(rows, pool, weight)


def test_every_row_is_one_of_the_sample_or_of_the_pool_and_the_sample_stays_as_it_was():
    pool, weight = a_pool()
    rows = a_sample(pool, weight)
    before = rows.copy()
    better = exchanged(rows, pool, weight, SIZES, SeededRandomness("rows"))
    assert np.array_equal(rows, before) and len(better) == len(rows)
    assert np.array_equal(better[:, 3], (better[:, 0] + better[:, 2]) % 3), (
        "what ties all rows of a pool ties those taken from it"
    )
    assert (better != rows).any()


def test_a_row_without_weight_never_comes():
    pool, weight = a_pool()
    weight[pool[:, 4] == 0] = 0
    rows = a_sample(pool, weight)
    assert (exchanged(rows, pool, weight, SIZES, SeededRandomness("rows"))[:, 4] != 0).all()


def test_a_gain_is_what_the_misfit_falls_by():
    pool, weight = a_pool(500)
    rows, tables = a_sample(pool, weight, 50), Tables(SIZES)
    target = tables.shares(pool, weight) * len(rows)
    balance = _Balance(np.rint(tables.shares(rows, np.ones(50)) * 50) - target, 1 / (target + 1))
    for i, other in enumerate(pool[:20]):
        changed = rows.copy()
        changed[i] = other
        old, new = tables.at(rows[i : i + 1]), tables.at(other[None])
        fallen = [misfit(rows, pool, weight, ways) - misfit(changed, pool, weight, ways) for ways in (2, 3)]
        assert balance.gain(old, new)[0] == pytest.approx(sum(fallen), abs=1e-9)


def test_what_is_kept_of_the_balance_is_what_rows_count_in_the_end(monkeypatch: pytest.MonkeyPatch):
    pool, weight = a_pool()
    rows, seen = a_sample(pool, weight), []
    made = exchanging._Balance

    def kept(*given: np.ndarray) -> _Balance:
        seen.append(made(*given))
        return seen[-1]

    monkeypatch.setattr(exchanging, "_Balance", kept)
    better = exchanged(rows, pool, weight, SIZES, SeededRandomness("rows"))
    (balance,), tables = seen, Tables(SIZES)
    target = tables.shares(pool, weight) * len(rows)
    counts = np.bincount(tables.at(better).ravel(), minlength=len(target))
    assert np.allclose(balance.beyond, counts - target)
    assert np.allclose(balance.leaves, (2 * balance.beyond - 1) / (target + 1))


def test_the_same_stream_gives_the_same_rows():
    pool, weight = a_pool(2_000)
    rows = a_sample(pool, weight, 200)
    first, again, other = (exchanged(rows, pool, weight, SIZES, SeededRandomness(seed)) for seed in ("a", "a", "b"))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("beside", [1, 70])
def test_attributes_of_one_category_have_no_part_in_it_however_many_they_are(beside: int):
    pool, weight = a_pool(2_000)
    wide, sizes = np.column_stack([np.zeros((2_000, beside), dtype=np.uint8), pool]), (*(1,) * beside, *SIZES)
    rows = a_sample(wide, weight, 200)
    found = exchanged(rows, wide, weight, sizes, SeededRandomness("rows"))
    assert np.array_equal(found[:, beside:], exchanged(rows[:, beside:], pool, weight, SIZES, SeededRandomness("rows")))
    assert (found != rows).any() and not found[:, :beside].any()
    assert exchanging.seconds(200, sizes) == exchanging.seconds(200, SIZES) > 0


@pytest.mark.parametrize(("rows", "sizes"), [(10**6, (4,) * 40), (100, (2, 2)), (0, (2, 2, 2)), (50, (200, 200, 200))])
def test_what_is_too_much_or_nothing_is_left_as_it_is(rows: int, sizes: tuple[int, ...]):
    assert passes_over(rows, sizes) == 0
    few = np.zeros((min(rows, 10), len(sizes)), dtype=np.uint8)
    assert exchanged(few, few, np.ones(len(few)), sizes, SeededRandomness("rows")).shape == few.shape


@pytest.mark.parametrize("rows", [1, 2, 33])
def test_few_rows_are_exchanged_too(rows: int):
    pool, weight = a_pool(300)
    better = exchanged(pool[:rows], pool, weight, SIZES, SeededRandomness("rows"))
    assert better.shape == (rows, len(SIZES))
