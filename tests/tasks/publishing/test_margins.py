"""Margins: their standard errors against dense generalised least squares, written out."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from steps_engine.laws import variance
from steps_engine.methods.tree.branches import Branches, read_branches
from steps_engine.methods.tree.margins import margins
from tasks.publishing import bundle
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import ELECTED, GIVEN, POLL, Made, a_release, make, some_counts


def _branches(made: Made) -> Branches:
    folder = made.home.public / made.release.name
    return read_branches(POLL, made.plan, bundle.read_table((folder / "tree.parquet").read_bytes()))


def _dense_error(branches: Branches, plan, wanted: np.ndarray) -> float:
    """sqrt(qᵀ(AᵀV⁻¹A)⁻¹q / m): A says which leaves each measured node holds; a known total is a constraint on q."""
    leaves = len(branches.ends)
    rows, variances, held = [], [], np.zeros((len(branches.layers[-1]), leaves), dtype=bool)
    starts = np.cumsum([0, *(len(nodes) for nodes in branches.layers)])
    for depth in range(len(branches.layers), 0, -1):
        nodes = branches.layers[depth - 1]
        for cell, row in enumerate(branches.end_row):
            if starts[depth - 1] <= row < starts[depth]:
                held[row - starts[depth - 1], cell] = True
        for node in range(len(nodes)):
            draw = plan.count_draw(depth, 1, "leaves" if nodes.leaf[node] else "inner")
            rows.append(held[node].astype(float))
            variances.append(variance(draw.scale))
        above = np.zeros((starts[depth - 1] - starts[depth - 2] if depth > 1 else 1, leaves), dtype=bool)
        np.logical_or.at(above, nodes.parent, held)
        held = above
    design = np.array(rows)
    covariance = np.linalg.inv(design.T @ (design / np.array(variances)[:, None]))
    if plan.total != "estimated":
        everyone = covariance @ np.ones(leaves)
        covariance -= np.outer(everyone, everyone) / everyone.sum()
    return float(np.sqrt(max(wanted @ covariance @ wanted, 0.0) / plan.measurements))


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (GIVEN, {}),
        (ELECTED, {}),
        ({"decomposition": "flat"}, {}),
        ({"decomposition": "tree", "elect": {"layers": 5}, "shares": "cube_root"}, {"total": "invariant"}),
        (GIVEN, {"total": "public", "neighbours": "substitute"}),
    ],
)
@pytest.mark.whole
def test_the_error_of_every_margin_is_that_of_dense_least_squares(tmp_path, method, privacy):
    made = make(tmp_path / "home", a_release(POLL, method, **privacy), some_counts(POLL, 2000))
    folder = publish(*made.arguments).folder
    branches, counts = _branches(made), pq.read_table(folder / "consistent-counts.parquet")
    whole = np.stack([counts[f"whole_{i}"].to_numpy() for i in range(1, made.plan.sets + 1)])
    found = margins(branches, made.plan, counts["estimate"].to_numpy(), whole)
    assert [margin.attribute for margin in found] == list(POLL.names)
    for j, margin in enumerate(found):
        digit = branches.space.digit(branches.ends, j)
        dense = [_dense_error(branches, made.plan, (digit == k).astype(float)) for k in range(POLL.sizes[j])]
        np.testing.assert_allclose(margin.error, dense, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(margin.estimate.sum(), counts["estimate"][0].as_py(), rtol=1e-9)


@pytest.mark.whole
def test_a_margin_that_is_a_layer_has_the_published_errors(given):
    folder = given.home.public / given.release.name
    counts = pq.read_table(folder / "consistent-counts.parquet")
    whole = np.stack([counts[f"whole_{i}"].to_numpy() for i in (1, 2)])
    voted = margins(_branches(given), given.plan, counts["estimate"].to_numpy(), whole)[0]
    np.testing.assert_allclose(voted.error, counts["standard_error"].to_numpy()[1:3], rtol=1e-9)
    np.testing.assert_allclose(voted.estimate, counts["estimate"].to_numpy()[1:3], rtol=1e-9)


def test_the_rings_are_the_mean_counts_of_the_synthetic_rows(given):
    folder = given.home.public / given.release.name
    counts = pq.read_table(folder / "consistent-counts.parquet")
    whole = np.stack([counts[f"whole_{i}"].to_numpy() for i in (1, 2)])
    rows = [pq.read_table(folder / f"synthetic-{i}.parquet")["registered"].to_pylist() for i in (1, 2)]
    margin = margins(_branches(given), given.plan, counts["estimate"].to_numpy(), whole)[1]
    assert margin.synthetic.tolist() == [sum(r.count(label) for r in rows) / 2 for label in margin.labels]
