"""Weights of rows that agree with many tables: one table after the other, or many in one pass over the rows."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from steps_engine.inference import reweighting
from steps_engine.inference.reweighting import fitted, reweight, reweight_tables

SIZES = (2, 3, 4, 2, 5, 3)
TABLES = (*combinations(range(6), 2), (0, 2, 4))


def rows_and_wishes(rows: int = 20_000):
    """Rows of independent codes, and counts of others that are not independent."""
    drawn = np.random.default_rng(5)
    codes = np.stack([drawn.integers(0, size, rows) for size in SIZES], axis=1).astype(np.uint8)
    other = codes.copy()
    for j in range(1, len(SIZES)):
        copied = drawn.random(rows) < 0.3
        other[copied, j] = other[copied, j - 1] % SIZES[j]
    wanted = [np.bincount(number(other, table), minlength=np.prod(shape_of(table))) * 1.0 for table in TABLES]
    return codes, [y.reshape(shape_of(t)) for y, t in zip(wanted, TABLES, strict=True)]


def shape_of(table):
    return tuple(SIZES[j] for j in table)


def number(codes, table):
    return np.ravel_multi_index(tuple(codes[:, j].astype(np.int64) for j in table), shape_of(table))


def one_after_the_other(codes, wanted, variance):
    cells = [number(codes, table) for table in TABLES]
    return reweight(cells, [y.ravel() for y in wanted], [v.ravel() for v in variance])


def test_a_pass_for_each_table_gives_the_weights_of_one_table_after_the_other(monkeypatch):
    monkeypatch.setattr(reweighting, "LARGEST_JOINT", 1)
    codes, wanted = rows_and_wishes()
    variance = [0.05 * y + 1 for y in wanted]
    np.testing.assert_allclose(
        reweight_tables(codes, SIZES, TABLES, wanted, variance), one_after_the_other(codes, wanted, variance), rtol=1e-9
    )


def test_many_tables_in_one_pass_find_the_same_minimum(monkeypatch):
    monkeypatch.setattr(reweighting, "SWEEPS", 200)
    codes, wanted = rows_and_wishes()
    variance = [y + 10 for y in wanted]
    together = reweight_tables(codes, SIZES, TABLES, wanted, variance, sweeps=200)
    assert together.std() > 0.3  # there is something to fit
    np.testing.assert_allclose(together, one_after_the_other(codes, wanted, variance), rtol=1e-6)


def test_weights_that_begin_from_the_angles_of_other_rows_need_few_sweeps():
    """θ belongs to the law of the rows: of other rows of the same law it is nearly right, and a sweep settles their chance."""
    codes, wanted = rows_and_wishes()
    first, others = codes[: len(codes) // 2], codes[len(codes) // 2 :]
    half = [y / 2 for y in wanted]
    variance = [0.05 * y + 1 for y in half]
    nought = [np.zeros(y.shape) for y in half]
    angles = fitted(first, SIZES, TABLES, half, variance, nought, 200)[1]
    settled = fitted(others, SIZES, TABLES, half, variance, nought, 200)[0]
    begun, cold = (fitted(others, SIZES, TABLES, half, variance, each, 1)[0] for each in (angles, nought))
    assert np.abs(begun - settled).mean() < np.abs(cold - settled).mean() / 3
    again = fitted(first, SIZES, TABLES, half, variance, angles, 0)[0]
    np.testing.assert_allclose(again, fitted(first, SIZES, TABLES, half, variance, nought, 200)[0], atol=1e-3)
    assert all((angle == 0).all() for angle in nought)  # what one begins from stays


@pytest.mark.parametrize("joint", [64, 2**15])
def test_weighted_rows_agree_with_every_table_as_far_as_its_noise_demands(joint, monkeypatch):
    monkeypatch.setattr(reweighting, "LARGEST_JOINT", joint)
    codes, wanted = rows_and_wishes()
    weight = reweight_tables(codes, SIZES, TABLES, wanted, [0.001 * y + 1 for y in wanted])
    assert weight.sum() == pytest.approx(len(codes))
    for table, y in zip(TABLES, wanted, strict=True):
        found = np.bincount(number(codes, table), weights=weight, minlength=y.size)
        assert np.abs(found - y.ravel()).sum() < 0.01 * len(codes)
        assert np.abs(np.bincount(number(codes, table), minlength=y.size) - y.ravel()).sum() > 0.01 * len(codes)


def test_memory_grows_with_rows_and_not_with_tables():
    """Of 435 tables the cells of one pass are held at a time: a few columns of eight bytes."""
    sizes, rows = (3,) * 30, 50_000
    codes = np.random.default_rng(1).integers(0, 3, (rows, 30)).astype(np.uint8)
    tables = tuple(combinations(range(30), 2))
    wanted = [np.full((3, 3), rows / 9) for _ in tables]
    tracemalloc.start()
    reweight_tables(codes, sizes, tables, wanted, wanted, sweeps=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * rows
    assert peak < len(tables) * 4 * rows / 10  # the control: every table's cells at once


def test_without_tables_rows_weigh_one():
    assert reweight_tables(np.zeros((7, 2), dtype=np.uint8), (1, 1), (), [], []).tolist() == [1.0] * 7
