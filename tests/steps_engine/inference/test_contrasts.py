"""Contrasts of tables: whole numbers, of one length for every row, and enough to tell the interaction."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from steps_engine.inference.contrasts import contrast, contrast_shape, interaction, residual, residual_variance, squared_length

SIZES = [(), (2,), (5,), (2, 2), (2, 7), (4, 3), (2, 3, 4), (2, 2, 2)]
every_shape = pytest.mark.parametrize("sizes", SIZES, ids=str)
either_way = pytest.mark.parametrize("centred", [True, False])


def one_row(sizes: tuple[int, ...], cell: tuple[int, ...]) -> np.ndarray:
    table = np.zeros(sizes, dtype=np.int64)
    table[cell] = 1
    return table


@every_shape
@either_way
def test_every_row_changes_a_contrast_by_the_same_length(sizes, centred):
    for cell in itertools.product(*map(range, sizes)):
        change = contrast(one_row(sizes, cell), centred)
        assert change.dtype == np.int64 and change.shape == contrast_shape(sizes, centred)
        assert (change**2).sum() == squared_length(sizes, centred)
        assert centred or np.abs(change).sum() == 1


@every_shape
@either_way
def test_two_rows_never_change_it_by_more_than_twice_that_length(sizes, centred):
    """What a substitution is paid for."""
    changes = [contrast(one_row(sizes, cell), centred) for cell in itertools.product(*map(range, sizes))]
    for one, other in itertools.product(changes, repeat=2):
        assert ((one - other) ** 2).sum() <= 4 * squared_length(sizes, centred)
        assert centred or np.abs(one - other).sum() <= 2


@every_shape
@either_way
def test_without_noise_the_residual_is_the_interaction_part_of_the_table(sizes, centred):
    table = np.random.default_rng(1).integers(0, 50, sizes)
    found = residual(contrast(table, centred), sizes, centred)
    assert found == pytest.approx(interaction(table))
    assert all(np.allclose(found.sum(axis=axis), 0) for axis in range(len(sizes)))


@every_shape
@either_way
@pytest.mark.whole
def test_noise_in_the_contrast_has_the_variance_it_says_in_every_cell_of_the_residual(sizes, centred):
    rng = np.random.default_rng(2)
    found = np.array([residual(rng.normal(size=contrast_shape(sizes, centred)), sizes, centred) for _ in range(6000)])
    assert found.var(axis=0) == pytest.approx(residual_variance(sizes, centred), rel=0.12)


def test_at_one_cost_in_rho_a_residual_has_no_more_noise_than_a_histogram_and_half_for_two_binary_attributes():
    for sizes in SIZES:
        measured = squared_length(sizes, True) * residual_variance(sizes, True)
        histogram = np.prod([1 - 1 / size for size in sizes])  # noise of variance 1 in each cell, margins taken off
        assert measured <= histogram + 1e-12
    assert squared_length((2, 2), True) * residual_variance((2, 2), True) == pytest.approx(1 / 16)
