"""χ² conclusions: scipy's p-values, Li et al.'s combination, the paper's classes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency
from scipy.stats import f as fisher

from steps_engine.evaluation.measures.association import association, combined_p_values
from tests.steps_engine.evaluation.tables import coded, dependent, shuffled, voters


def crosstab(table, i, j):
    counts = np.zeros((table.sizes[i], table.sizes[j]))
    np.add.at(counts, (table.codes[:, i], table.codes[:, j]), 1)
    return counts[counts.any(axis=1)][:, counts.any(axis=0)]


def test_p_values_are_those_of_scipy():
    _, table = voters(3000, 1)
    found = association(table, [table])
    expected = [chi2_contingency(crosstab(table, i, j), correction=False).pvalue for i, j in combinations(range(15), 2)]
    assert len(found.pairs) == 105
    assert dict(zip(found.pairs, found.original, strict=True)) == pytest.approx(
        {(table.names[i], table.names[j]): p for (i, j), p in zip(combinations(range(15), 2), expected, strict=True)},
        abs=1e-9,
    )


def test_the_same_data_agree_everywhere_and_shuffled_data_do_not():
    table = dependent(2000, 1)
    assert set(association(table, [table]).agreement.values()) == {1.0}
    assert association(table, [shuffled(table, 2)]).agreement["0.05"] < 0.7


def test_p_values_of_several_sets_are_combined_as_li_et_al_print_it():
    d, k, m = np.array([12.0, 7.0, 9.5, 15.0]), 3, 4
    root = np.sqrt(d)
    r = (1 + 1 / m) * ((root - root.mean()) ** 2).sum() / (m - 1)
    statistic = (d.mean() / k - (m + 1) / (m - 1) * r) / (1 + r)
    expected = fisher.sf(statistic, k, k ** (-3 / m) * (m - 1) * (1 + 1 / r) ** 2)
    assert combined_p_values(d[:, None], np.array([k]))[0] == pytest.approx(expected, rel=1e-12)


def test_sets_without_variance_and_a_single_set_give_the_plain_p_value():
    for m in (1, 5):
        assert combined_p_values(np.full((m, 1), 7.0), np.array([2]))[0] == pytest.approx(chi2.sf(7.0, 2))


def test_sets_that_contradict_each_other_are_no_evidence():
    assert combined_p_values(np.array([[0.0], [400.0]]), np.array([1]))[0] == 1.0


def test_combined_p_values_of_independent_attributes_reject_about_as_often_as_they_should():
    draw = np.random.default_rng(1)
    statistics = draw.chisquare(4, (5, 20_000))
    assert (combined_p_values(statistics, np.full(20_000, 4)) <= 0.05).mean() < 0.06


def test_a_constant_attribute_shows_no_association_and_is_counted():
    table = coded([[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0]] * 20, (2, 2, 2))
    found = association(table, [table])
    assert dict(zip(found.pairs, found.original, strict=True))[("a", "c")] == 1.0
    assert found.untestable == 2


def test_an_attribute_constant_in_the_synthetic_set_alone_loses_the_association():
    original = coded([[0, 0], [1, 1]] * 50, (2, 2))
    found = association(original, [coded([[0, 0], [0, 1]] * 50, (2, 2))])
    assert (found.synthetic, found.agreement["0.05"]) == ((1.0,), 0.0)


def test_empty_categories_cost_no_degrees_of_freedom():
    narrow, wide = coded([[0, 0], [1, 1], [1, 0]] * 9, (2, 2)), coded([[0, 0], [1, 1], [1, 0]] * 9, (5, 9))
    assert association(wide, [wide]).original == association(narrow, [narrow]).original


def test_the_cross_table_puts_every_pair_in_one_class():
    _, table = voters(1500, 1)
    found = association(table, [shuffled(table, 2), shuffled(table, 3)])
    classes = np.array(found.classes)
    assert classes.shape == (4, 4) and classes.sum() == 105
    assert classes[0].sum() == sum(p <= 0.01 for p in found.original)
    assert classes[:, 3].sum() == sum(p > 0.1 for p in found.synthetic)


def test_one_attribute_has_no_pairs():
    table = coded([[0], [1]], (2,))
    assert set(association(table, [table]).agreement.values()) == {None}
