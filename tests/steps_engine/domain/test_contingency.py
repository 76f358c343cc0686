"""Tables of many groups from few passes: every group once, and each table what counting the group alone gives."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steps_engine.domain import contingency
from steps_engine.domain.contingency import chunks, covers, in_parallel, joint_table, margin
from steps_engine.domain.counting import Counts, no_codes

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=7)


def all_groups(sizes: list[int], largest: int) -> list[tuple[int, ...]]:
    return [group for size in range(1, largest + 1) for group in itertools.combinations(range(len(sizes)), size)]


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 3), st.integers(0, 300))
def test_every_group_is_in_exactly_one_cover_and_covers_are_no_larger_than_allowed(sizes, largest, most):
    groups = all_groups(sizes, largest)
    found = covers(groups, tuple(sizes), most)
    assert sorted(number for _, served in found for number in served) == list(range(len(groups)))
    for attributes, served in found:
        assert all(set(groups[number]) <= set(attributes) for number in served)
        assert math.prod(sizes[j] for j in attributes) <= most or attributes in groups


def test_pairs_share_passes():
    groups = all_groups([2] * 12, 2)
    assert len(covers(groups, (2,) * 12, 64)) < len(groups) / 5


@pytest.mark.parametrize("chunk", [7, 10**6])
def test_the_table_of_a_group_is_what_counting_it_alone_gives(monkeypatch, chunk):
    monkeypatch.setattr(contingency, "CHUNK", chunk)
    sizes, rng = (2, 3, 300), np.random.default_rng(1)
    codes = no_codes(50, sizes)
    codes[:] = rng.integers(0, sizes, (50, 3))
    count, place = rng.integers(1, 9, 50), rng.integers(0, 4, 50).astype(np.int32)
    joint = joint_table(Counts(codes, count), place, 4, (0, 1, 2), sizes)
    for group in all_groups(list(sizes), 3):
        wanted = np.zeros((4, *(sizes[j] for j in group)))
        np.add.at(wanted, (place, *(codes[:, j] for j in group)), count)
        assert np.array_equal(margin(joint, (0, 1, 2), group), wanted.reshape(4, -1))


def test_chunks_hold_every_row_once_and_results_keep_their_order(monkeypatch):
    monkeypatch.setattr(contingency, "CHUNK", 3)
    found = in_parallel(lambda part: list(range(part.start, part.stop)), chunks(10))
    assert sum(found, []) == list(range(10))


def test_codes_are_as_narrow_as_their_attributes_allow():
    assert no_codes(1, (2, 254)).dtype == np.uint16 and no_codes(1, (2, 253)).dtype == np.uint8
