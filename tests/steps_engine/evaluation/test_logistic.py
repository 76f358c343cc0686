"""The sparse Newton fit gives the numbers of the textbook fits."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.evaluation import logistic
from steps_engine.evaluation.coded import stack
from steps_engine.evaluation.logistic import columns, design, fit_scores
from tests.steps_engine.evaluation.tables import coded, dependent, shuffled, voters


def test_the_voter_domain_has_501_columns_and_an_intercept():
    _, table = voters(200, 1)
    assert columns(table.sizes, interactions=True) == 502
    assert design(table.codes, table.sizes, interactions=True).shape == (200, 502)


@pytest.mark.parametrize("interactions", [False, True])
def test_the_design_spans_what_every_coding_spans(interactions):
    table = dependent(500, 1)
    ours = design(table.codes, table.sizes, interactions).toarray()
    dummies = [np.eye(size)[table.codes[:, j]][:, 1:] for j, size in enumerate(table.sizes)]
    products = [(a[:, :, None] * b[:, None, :]).reshape(len(a), -1) for i, a in enumerate(dummies) for b in dummies[i + 1 :]]
    textbook = np.column_stack([np.ones(500), *dummies, *(products if interactions else [])])
    assert ours.shape == textbook.shape
    rank = np.linalg.matrix_rank(textbook)
    assert np.linalg.matrix_rank(ours) == rank == np.linalg.matrix_rank(np.column_stack([ours, textbook]))


@pytest.mark.parametrize("interactions", [False, True])
@pytest.mark.whole
def test_scores_equal_those_of_statsmodels_on_the_stacked_records(interactions):
    from statsmodels.api import GLM, families

    original, synthetic = dependent(2000, 1), shuffled(dependent(1500, 2), 3)
    rows = stack(original, synthetic)
    scores = fit_scores(design(rows.codes, rows.sizes, interactions), rows.original, rows.synthetic)
    everyone = np.concatenate([original.codes, synthetic.codes])
    x = design(everyone, original.sizes, interactions).toarray()
    y = np.repeat([0, 1], [original.total, synthetic.total])
    expected = GLM(y, x, family=families.Binomial()).fit().predict()
    place = {tuple(row): p for row, p in zip(rows.codes.tolist(), scores.probability, strict=True)}
    assert scores.converged and not scores.separated
    assert np.abs(np.array([place[tuple(row)] for row in everyone.tolist()]) - expected).max() < 1e-3


def test_a_fit_that_was_cut_short_says_so(monkeypatch):
    rows = stack(dependent(500, 1), shuffled(dependent(500, 2), 3))
    x = design(rows.codes, rows.sizes, interactions=True)
    assert fit_scores(x, rows.original, rows.synthetic).converged
    monkeypatch.setattr(logistic, "STEPS", 1)
    assert not fit_scores(x, rows.original, rows.synthetic).converged


def test_separation_is_reported_and_the_scores_stay_finite():
    rows = stack(coded([[0, 0], [0, 1]] * 50, (2, 2)), coded([[1, 0], [1, 1]] * 50, (2, 2)))
    scores = fit_scores(design(rows.codes, rows.sizes, interactions=True), rows.original, rows.synthetic)
    assert scores.separated and scores.converged
    assert np.isfinite(scores.probability).all()


def test_rows_without_weight_are_scored_and_change_nothing():
    rows = stack(dependent(800, 1), shuffled(dependent(800, 2), 3))
    x = design(rows.codes, rows.sizes, interactions=False)
    kept = np.arange(len(rows.codes)) % 3 > 0
    alone = fit_scores(x[kept], rows.original[kept], rows.synthetic[kept]).probability
    among = fit_scores(x, rows.original * kept, rows.synthetic * kept).probability
    assert np.abs(among[kept] - alone).max() < 1e-4
    assert np.isfinite(among).all()
