"""What tables say of interactions: exact without noise, as noisy as it says, and better together."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.inference.contrasts import contrast, contrast_shape, interaction
from steps_engine.inference.evidence import Said, interactions

SIZES = [(2, 2), (2, 5), (4, 3), (2, 3, 4), (3, 3, 2, 2)]
either_way = pytest.mark.parametrize("centred", [True, False])


@either_way
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_without_noise_every_part_is_the_interaction_of_the_summed_table(sizes, centred):
    table = np.random.default_rng(1).integers(0, 50, sizes)
    found = dict(interactions(contrast(table, centred), sizes, 1.0, centred))
    for axes, said in found.items():
        out = tuple(axis for axis in range(len(sizes)) if axis not in axes)
        assert said.value == pytest.approx(interaction(table.sum(axis=out)))


@either_way
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.whole
def test_the_noise_of_every_part_has_the_variance_that_is_said_in_every_direction(sizes, centred):
    rng = np.random.default_rng(2)
    parts: dict[tuple[int, ...], list[Said]] = {}
    for _ in range(3000):
        noise = rng.normal(0, 3, contrast_shape(sizes, centred))
        for axes, said in interactions(noise, sizes, 9.0, centred):
            parts.setdefault(axes, []).append(said)
    for axes, found in parts.items():
        dimensions = np.prod([sizes[axis] - 1 for axis in axes])
        squared = np.mean([(said.value**2).sum() for said in found])
        assert squared == pytest.approx(found[0].variance * dimensions, rel=0.1)


def test_a_difference_tells_of_no_part_without_its_axis_and_a_centred_table_of_itself_alone():
    counts = np.ones((2, 5), dtype=np.int64)
    assert [axes for axes, _ in interactions(contrast(counts, False), (2, 5), 1.0, False)] == [(0,), (0, 1)]
    assert [axes for axes, _ in interactions(contrast(counts, True), (2, 5), 1.0, True)] == [(0, 1)]


def test_two_measurements_are_joined_by_their_precision():
    joined = Said(np.array([1.0, -1.0]), 1.0).joined(Said(np.array([4.0, -4.0]), 2.0))
    assert joined.value.tolist() == [2.0, -2.0] and joined.variance == pytest.approx(2 / 3)
    assert Said(np.zeros(2), 1.0).joined(None).variance == 1.0
