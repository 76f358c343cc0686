"""Levels of places joined: the two passes are generalized least squares, and variances of any sums are exact."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.domain.places import places_of
from steps_engine.inference.levels import Level, joined_levels
from tests.steps_engine.shapes import PLACED

PLACES = places_of(PLACED)
NOISE = {
    "the nation is not known": (np.inf, 4.0, 9.0, 1.0),
    "the nation is exact": (0.0, 4.0, 9.0, 1.0),
    "a level is not measured": (2.0, np.inf, 9.0, 3.0),
    "only the finest": (np.inf, np.inf, np.inf, 2.0),
}


def levels(noise: tuple[float, ...], depth: int, columns: int = 2, seed: int = 0) -> list[Level]:
    rng = np.random.default_rng(seed)
    return [Level(rng.normal(50, 10, (size, columns)), v) for size, v in zip(PLACES.sizes[: depth + 1], noise, strict=False)]


def dense(said: list[Level], depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and covariance of the deepest places by the textbook: columns alike."""
    finest = PLACES.within(depth, depth)
    rows, values, weight = [], [], []
    for level, each in enumerate(said):
        if np.isfinite(each.variance):
            rows.append((PLACES.within(depth, level)[None] == np.arange(PLACES.sizes[level])[:, None]).astype(float))
            values.append(each.value)
            weight += [1 / max(each.variance, 1e-7)] * PLACES.sizes[level]
    design, value = np.concatenate(rows), np.concatenate(values)
    covariance = np.linalg.inv(design.T @ (np.array(weight)[:, None] * design))
    assert len(finest) == len(covariance)
    return covariance @ design.T @ (np.array(weight)[:, None] * value), covariance


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_places_are_estimated_by_least_squares_and_add_up(noise, depth):
    noise = (*noise[:depth], 2.0)
    said = levels(noise, depth)
    found, (value, covariance) = joined_levels(PLACES.down_to(depth), said), dense(said, depth)
    for level in range(depth + 1):
        sums = PLACES.within(depth, level)[None] == np.arange(PLACES.sizes[level])[:, None]
        assert np.allclose(found.value[level], sums @ value, atol=1e-4)
        assert np.allclose(found.variance[level], np.diag(sums @ covariance @ sums.T), atol=1e-4)


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_variances_of_sums_are_exact(noise):
    said = levels((*noise[:3], 2.0), 3)
    found, (_, covariance) = joined_levels(PLACES.tree, said), dense(said, 3)
    rng = np.random.default_rng(1)
    for classes in (np.arange(6), PLACES.at(2), np.array([0, -1, 1, 1, 0, 2]), rng.integers(-1, 3, 6)):
        whole = rng.integers(0, 2, 6).astype(bool)
        number = int(classes.max()) + 1
        sums, all_ = (classes[None] == np.arange(number)[:, None]).astype(float), whole.astype(float)
        told = found.sums(classes, whole)
        assert np.allclose(told.variance, np.diag(sums @ covariance @ sums.T), atol=1e-4)
        assert np.allclose(told.cross, sums @ covariance @ all_, atol=1e-4)
        assert np.isclose(told.whole, all_ @ covariance @ all_, atol=1e-4)


def test_control_sums_of_variances_alone_would_be_wrong():
    """Places of one county are correlated: their sum is known better than its parts say."""
    found = joined_levels(PLACES.tree, levels((2.0, 4.0, 1.0, 9.0), 3))
    assert (found.sums(PLACES.at(2), np.ones(6)).variance < 0.5 * np.bincount(PLACES.at(2), found.variance[3])).all()
