"""The peers' mirror descent on bare arrays, beside tables of all attributes."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.peer_descent import Passing, Seen, descended, factors_of, gradient_at, part, seen_in

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}
CLIQUES = [("a", "b"), ("b", "c"), ("b", "d")]
DOMAIN = SimpleNamespace(config=SIZES)
TREE = [(0, 1, "b"), (2, 1, "b"), (1, 0, "b"), (1, 2, "b")]  # leaves first, then back
TOTAL = 500.0


def chain() -> Passing:
    order = [
        (one, other, part(DOMAIN, CLIQUES[one], common), part(DOMAIN, CLIQUES[other], common)) for one, other, common in TREE
    ]
    return Passing(TOTAL, order)


def tables(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(0, 1, [SIZES[name] for name in clique]) for clique in CLIQUES]


def in_all_cells(potentials: list[np.ndarray]) -> np.ndarray:
    """The model written out: a cell's share is the exponential of the sum of its potentials."""
    whole = np.zeros(list(SIZES.values()))
    for cell in itertools.product(*map(range, SIZES.values())):
        at = dict(zip(SIZES, cell, strict=True))
        whole[cell] = sum(table[tuple(at[name] for name in clique)] for table, clique in zip(potentials, CLIQUES, strict=True))
    whole = np.exp(whole)
    return TOTAL * whole / whole.sum()


def margin(whole: np.ndarray, attributes: tuple[str, ...]) -> np.ndarray:
    return whole.sum(axis=tuple(axis for axis, name in enumerate(SIZES) if name not in attributes))


def test_marginals_are_those_of_the_model_written_out():
    potentials = tables(1)
    whole = in_all_cells(potentials)
    for table, clique in zip(chain().marginals(potentials), CLIQUES, strict=True):
        np.testing.assert_allclose(table, margin(whole, clique), rtol=1e-12)


def test_the_slope_is_that_of_the_loss():
    """By differences: the loss of the model's tables, moved in one cell by a little."""
    seen, marginals, little = measured(tables(2)), chain().marginals(tables(1)), 1e-4
    _, slopes, _ = gradient_at(seen, marginals)
    for each, slope in zip(seen, slopes, strict=True):
        up, down = (moved(marginals, each.clique, by) for by in (little, -little))
        rise = (gradient_at(seen, up)[0] - gradient_at(seen, down)[0]) / (2 * little)
        others = sum(
            one.ravel()[0] for other, one in zip(seen, slopes, strict=True) if other.clique == each.clique and one is not slope
        )
        np.testing.assert_allclose(rise, slope.ravel()[0] + others, rtol=1e-6)


def test_descent_finds_the_tables_that_were_measured_without_noise():
    truth = tables(2)
    potentials, marginals = descended([np.zeros_like(table) for table in truth], measured(truth), chain(), 3000)
    whole = in_all_cells(truth)
    for table, clique in zip(marginals, CLIQUES, strict=True):
        np.testing.assert_allclose(table, margin(whole, clique), atol=0.01)
    np.testing.assert_allclose(in_all_cells(potentials), whole, atol=0.01)


def measured(truth: list[np.ndarray]) -> list[Seen]:
    """All tables of the model, and one margin as well."""
    whole, asked = in_all_cells(truth), [(0, ("a", "b")), (1, ("b", "c")), (2, ("b", "d")), (1, ("c",))]
    return [seen(number, attributes, margin(whole, attributes)) for number, attributes in asked]


def seen(number: int, attributes: tuple[str, ...], table: np.ndarray) -> Seen:
    """Cells that were measured with unequal noise."""
    weights = np.linspace(0.02, 0.06, table.size).reshape(table.shape)
    return Seen(number, part(DOMAIN, CLIQUES[number], attributes), weights, table)


def moved(marginals: list[np.ndarray], clique: int, by: float) -> list[np.ndarray]:
    changed = [table.copy() for table in marginals]
    changed[clique].ravel()[0] += by
    return changed


def test_measurements_of_one_table_are_added_up():
    """Two of (b, a), turned around, the second with a factor of a half in its last cell, as MST counts what it joined."""
    random = np.random.default_rng(3)
    first, second, factors = random.normal(50, 5, (3, 2)), random.normal(50, 5, (3, 2)), np.r_[np.ones(5), 0.5]
    measured = [(np.eye(6), first.ravel(), 2.0, ("b", "a")), (np.diag(factors), factors * second.ravel(), 4.0, ("b", "a"))]
    engine = SimpleNamespace(domain=DOMAIN, groups={clique: [] for clique in CLIQUES} | {("a", "b"): measured})
    (found,) = seen_in(engine, CLIQUES)
    table = random.normal(50, 5, (2, 3))
    loss, slopes, _ = gradient_at([found], [table])
    said = [((query @ table.T.ravel() - values) / noise, query, noise) for query, values, noise, _ in measured]
    np.testing.assert_allclose(slopes[0].T.ravel(), sum(query.T @ apart / noise for apart, query, noise in said))
    other = random.normal(50, 5, (2, 3))
    moved = [((query @ other.T.ravel() - values) / noise) for query, values, noise, _ in measured]
    rise = 0.5 * (sum(one @ one for one in moved) - sum(apart @ apart for apart, *_ in said))
    np.testing.assert_allclose(gradient_at([found], [other])[0] - loss, rise)


def test_a_measurement_that_mixes_cells_is_refused():
    with pytest.raises(ValueError, match="mixes cells"):
        factors_of(np.ones((2, 2)), 2)
