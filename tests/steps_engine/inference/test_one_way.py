"""One-way tables: nonnegative, of their total, smooth where noise explains the differences; groups of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.inference.one_way import FEW, halves, joined, on_simplex, smoothed


@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_the_nearest_table_is_nonnegative_has_its_total_and_no_move_of_mass_comes_nearer(size):
    values = np.random.default_rng(size).normal(3, 10, size)
    found = on_simplex(values, 40.0)
    assert found.min() >= 0 and found.sum() == pytest.approx(40)
    if size > 1:
        slope = found - values  # half the gradient: equal where mass is, no lower where none is
        assert slope[found > 0].max() <= slope.min() + 1e-9


@pytest.mark.parametrize("size", [2, FEW, FEW + 1, 120])
def test_smoothing_keeps_total_and_sign_and_without_noise_the_table(size):
    table = np.random.default_rng(1).integers(0, 500, size).astype(float)
    noisy = table + np.random.default_rng(2).normal(0, 400, size)
    found = smoothed(noisy, 400.0**2, table.sum())
    assert found.min() >= 0 and found.sum() == pytest.approx(table.sum())
    assert smoothed(table, 1e-9, table.sum()) == pytest.approx(table, abs=1e-3)
    assert smoothed(table, 0.0, table.sum()) == pytest.approx(table)


def test_smoothing_takes_most_of_the_noise_out_of_a_smooth_table_and_leaves_a_lone_peak():
    smooth, peak = np.full(120, 100.0), np.zeros(120)
    peak[70] = 12_000
    rng = np.random.default_rng(3)
    for table, part in ((smooth, 0.3), (peak, 0.5)):
        noise = rng.normal(0, 50, 120)
        left = np.abs(smoothed(table + noise, 2500.0, 12_000.0) - table).sum()
        assert left < part * np.abs(noise).sum()
    assert smoothed(peak + noise, 2500.0, 12_000.0)[70] > 10_000


@pytest.mark.parametrize("size", [1, 2, 3, 17, 120])
def test_halves_are_the_nodes_of_a_tree_parents_first(size):
    known = {(0, size)}
    for low, middle, high in halves(size).tolist():
        assert (low, high) in known and low < middle < high
        known |= {(low, middle), (middle, high)}
    assert {(k, k + 1) for k in range(size)} <= known


@pytest.mark.parametrize("least", [0.0, 1.0, 50.0, 400.0, 1e9])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_groups_are_of_neighbours_and_all_but_a_lone_one_beside_a_large_category_hold_enough(size, least):
    table = np.random.default_rng(size).integers(0, 60, size).astype(float)
    group = joined(table, least)
    assert group[0] == 0 and set(np.diff(group)) <= {0, 1}
    held = np.bincount(group, weights=table)
    assert len(held) == 1 or held[-1] >= least
    assert all(held[k] >= least or table[group == k + 1][0] >= least for k in range(len(held) - 1))


def test_a_large_category_stands_alone():
    assert joined(np.array([1.0, 2, 500, 3, 2, 1]), 100).tolist() == [0, 0, 1, 1, 1, 1]
    assert joined(np.array([500.0, 500, 500]), 100).tolist() == [0, 1, 2]
