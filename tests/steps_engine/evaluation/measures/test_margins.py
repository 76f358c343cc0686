"""Margins: the distance a dictionary gives, the worst ones by name, a fixed sample when there are too many."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from schemas.errors import SpecError
from steps_engine.evaluation import coded as coded_module
from steps_engine.evaluation.measures.margins import MOST_TRIPLES, margins, scatter, subsets
from tests.steps_engine.evaluation.tables import coded, dependent, shuffled


def brute_force(original, synthetic, members) -> float:
    shares: dict = {}
    for table, sign in ((original, 1), (synthetic, -1)):
        for row in table.codes[:, members].tolist():
            shares[tuple(row)] = shares.get(tuple(row), 0) + sign / table.total
    return sum(map(abs, shares.values())) / 2


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_distances_are_those_of_a_dictionary(ways):
    original, sets = dependent(300, 1), [dependent(200, 2, 0.2), shuffled(dependent(300, 3), 4)]
    expected = {
        tuple(original.names[j] for j in members): np.mean([brute_force(original, s, list(members)) for s in sets])
        for members in combinations(range(4), ways)
    }
    found = margins(original, sets, ways)
    assert found.mean == pytest.approx(np.mean(list(expected.values())))
    assert found.largest == pytest.approx(max(expected.values()))
    assert dict(found.worst) == pytest.approx(expected)
    assert found.worst[0][0] == max(expected, key=expected.get)


def test_equal_tables_have_distance_0_and_disjoint_ones_1():
    table = dependent(100, 1)
    assert margins(table, [table], 3).largest == 0.0
    assert margins(coded([[0], [0]], (2,)), [coded([[1]], (2,))], 1).mean == 1.0


def test_margins_too_large_for_a_dense_table_give_the_same():
    draw = np.random.default_rng(1)
    codes = [draw.integers(0, 3, (400, 3)) * 700 for _ in range(2)]
    large, small = ([coded(c // step, sizes) for c in codes] for step, sizes in ((1, (1500,) * 3), (700, (3,) * 3)))
    assert margins(large[0], large[1:], 3).mean == pytest.approx(margins(small[0], small[1:], 3).mean)
    assert len(coded_module.tally(large[0].codes, large[0].sizes, np.ones(400))[0]) <= 27


@pytest.mark.parametrize(("attributes", "ways"), [(1, 1), (5, 1), (5, 2), (7, 3), (3, 3)])
def test_every_subset_is_listed_once(attributes, ways):
    assert sorted(map(tuple, subsets(attributes, ways).tolist())) == list(combinations(range(attributes), ways))


def test_beyond_a_thousand_triples_a_fixed_sample_is_compared():
    table = coded(np.random.default_rng(1).integers(0, 2, (50, 22)), (2,) * 22)
    found = margins(table, [shuffled(table, 2)], 3)
    assert (found.compared, found.of) == (MOST_TRIPLES, comb(22, 3))
    assert (subsets(22, 3, 1000) == subsets(22, 3, 1000)).all()
    assert len({tuple(row) for row in subsets(1000, 3, 1000).tolist()}) == 1000


def test_fewer_attributes_than_ways_leave_nothing_to_compare():
    found = margins(coded([[0], [1]], (2,)), [coded([[0]], (2,))], 3)
    assert (found.compared, found.mean) == (0, 0.0)


def test_the_scatter_shows_each_cell_of_both_tables():
    points = scatter(coded([[0, 0], [1, 1]], (2, 2)), coded([[0, 1]], (2, 2)), 1)
    assert sorted(points.tolist()) == [[0.5, 0.0], [0.5, 0.0], [0.5, 1.0], [0.5, 1.0]]


def test_tables_of_different_domains_are_refused():
    with pytest.raises(SpecError, match="set 1 does not have"):
        margins(coded([[0, 0]], (2, 2)), [coded([[0]], (2,))], 1)
