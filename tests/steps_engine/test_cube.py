"""Noise by the max norm: its law, its radius, its variance, what it costs; and controls that are no such noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from steps_engine import bits, cube, laws, noise
from steps_engine.noise import SeededRandomness, SystemRandomness
from tests.zcdp_audit import Vector

SCALES = (Fraction(1, 3), Fraction(1), Fraction(7, 2))
RUNS = 200_000


def chances(scale: Fraction, dimension: int, reach: int) -> dict[tuple[int, ...], float]:
    """P(x) of every vector within reach, by the formula; the sum over all radii has the form Σ (cube's surface)·exp."""
    radius = np.arange(reach + 400)
    surface = (2 * radius + 1.0) ** dimension - np.maximum(2 * radius - 1, 0.0) ** dimension * (radius > 0)
    whole = (surface * np.exp(-radius / float(scale))).sum()
    inside = product(range(-reach, reach + 1), repeat=dimension)
    return {x: math.exp(-max(map(abs, x)) / float(scale)) / whole for x in inside}


def p_value(drawn: np.ndarray, scale: Fraction, reach: int) -> float:
    """Pearson's, with all that lies beyond reach in one cell."""
    law = chances(scale, drawn.shape[1], reach)
    kept = drawn[np.abs(drawn).max(axis=1) <= reach]
    place = np.ravel_multi_index(tuple((kept + reach).T), (2 * reach + 1,) * drawn.shape[1])
    counts = np.bincount(place, minlength=len(law))
    expected = len(drawn) * np.array(list(law.values()))
    common = expected > 5
    observed = np.append(counts[common], len(drawn) - counts[common].sum())
    wanted = np.append(expected[common], len(drawn) - expected[common].sum())
    return float(stats.chisquare(observed, wanted).pvalue)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("scale", SCALES)
def test_vectors_have_their_law(scale, dimension):
    drawn = noise.max_norm(scale, dimension, RUNS, SeededRandomness(("law", str(scale), dimension)))
    assert p_value(drawn, scale, math.ceil(4 * scale)) > 1e-4


def test_the_system_s_randomness_gives_the_same_law():
    assert p_value(noise.max_norm(Fraction(1), 2, RUNS, SystemRandomness()), Fraction(1), 4) > 1e-6


def test_control_radii_one_too_small_and_coordinates_of_their_own_radius_are_caught():
    scale, randomness = Fraction(1), SeededRandomness("control")
    drawn = noise.max_norm(scale, 2, RUNS, randomness)
    assert p_value(np.sign(drawn) * np.maximum(np.abs(drawn) - 1, 0), scale, 4) < 1e-10
    apart = np.stack([noise.max_norm(scale, 2, RUNS, randomness)[:, 0] for _ in range(2)], axis=1)
    assert p_value(apart, scale, 4) < 1e-10


@pytest.mark.parametrize("scale", [Fraction(15), Fraction(1, 2)])
def test_one_coordinate_is_two_sided_geometric(scale):
    ours = noise.max_norm(scale, 1, RUNS, SeededRandomness("one"))[:, 0]
    other = noise.two_sided_geometric(scale, RUNS, SeededRandomness("other"))
    assert stats.ks_2samp(ours, other).pvalue > 1e-4
    assert cube.variance(scale, 1) == pytest.approx(laws.variance(scale)) == pytest.approx(ours.var(), rel=0.03)


@pytest.mark.parametrize("dimension", [1, 4, 66, 1000])
@pytest.mark.parametrize("scale", [Fraction(1, 100), Fraction(1, 3), Fraction(20)])
def test_a_radius_is_accepted_in_proportion_to_its_law(scale, dimension):
    """By enumeration: what is proposed times what is accepted, over (2r + 1)^d·exp(−r/scale), is one constant."""
    law = cube.Radius(scale, dimension)
    middle = max(0, math.floor(dimension * scale))
    radius = np.unique(np.linspace(middle // 2, 2 * middle + 3, 50).astype(np.int64))
    log = np.array([float(law.chance(int(r), 60).ln()) for r in radius]) - radius / float(law.proposed)
    wanted = dimension * np.log(2 * radius + 1) - radius / float(scale)
    assert log - wanted == pytest.approx(np.full(len(radius), (log - wanted)[0]), abs=1e-6)
    assert all(law.chance(int(r), 60) <= 1 for r in radius)


@pytest.mark.parametrize("dimension", [1, 66, 4950, cube.MOST_DIMENSIONS])
@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 3), Fraction(10**6, 7)])
def test_double_precision_stays_well_within_its_margin(scale, dimension):
    law = cube.Radius(scale, dimension)
    near = np.linspace(0.9, 1.1, 21) if dimension > 1000 else np.linspace(0.05, 4, 40)
    radius = np.unique([math.floor(float(law.tangent) * y) for y in near])
    exact = np.array([float(law.chance(int(r), 50)) for r in radius])
    assert np.abs(law.rough(radius) - exact).max() < cube.MARGIN / 50


def test_where_double_precision_leaves_it_open_digits_decide(monkeypatch):
    """With a margin that leaves everything open the same radii are drawn."""
    before = noise.max_norm(Fraction(2), 5, 300, SeededRandomness("open"))
    monkeypatch.setattr(cube, "MARGIN", 2.0)
    assert (noise.max_norm(Fraction(2), 5, 300, SeededRandomness("open")) == before).all()


def test_a_radius_that_is_surely_accepted_is_one():
    law = cube.Radius(Fraction(1, 2), 2)  # tangent 3/2: the radius 1
    assert law.is_sure(1) and not law.is_sure(2) and law.rough(np.array([1]))[0] == 1
    assert bits.accepted(law, np.ones(1000, dtype=np.int64), SeededRandomness(1)).all()


@pytest.mark.parametrize(("scale", "dimension"), [(Fraction(10), 66), (Fraction(1, 5), 20), (Fraction(300), 4950)])
@pytest.mark.whole
def test_coordinates_have_the_variance_that_estimates_use(scale, dimension):
    drawn = noise.max_norm(scale, dimension, max(400, 200_000 // dimension), SeededRandomness(("moments", dimension)))
    assert drawn.var() == pytest.approx(cube.variance(scale, dimension), rel=0.05)
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 5 / math.sqrt(len(drawn))


@pytest.mark.parametrize("shift", [(1, 0), (1, 1), (1, -1), (2, 1)])
def test_what_is_told_is_the_largest_change_over_the_scale_and_no_more(shift):
    scale = Fraction(3, 2)
    one, other = Vector(scale, shift).chances()
    inside = (one > 1e-12) & (other > 1e-12)
    loss = np.abs(np.log(one[inside] / other[inside])).max()
    assert loss == pytest.approx(max(map(abs, shift)) / float(scale))
    first, second = Vector(scale, shift).sampled(50_000, SeededRandomness("told"))
    assert max(np.abs(first).max(), np.abs(second).max()) <= max(map(abs, shift)) / float(scale) + 1e-12


@pytest.mark.parametrize(("scale", "dimension"), [(Fraction(2**40), 1), (Fraction(1), 0), (Fraction(1), 2**17 + 1), (0.5, 2)])
def test_what_cannot_be_drawn_is_refused(scale, dimension):
    with pytest.raises((ValueError, TypeError), match="scale|coordinates"):
        noise.max_norm(scale, dimension, 1, SeededRandomness(1))
