"""χ² tests of association on all pairs of attributes: do original and synthetic sets lead to the same conclusions?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc

from steps_engine.evaluation.coded import Coded, must_compare, tally
from steps_engine.evaluation.measures import Measure, Options
from steps_engine.evaluation.measures.margins import subsets
from steps_engine.evaluation.section import Grid, Headline, Listing, Section
from steps_engine.noise import Randomness

ALPHAS = (0.01, 0.05, 0.1)
CLASSES = ("≤ 0.01", "0.01–0.05", "0.05–0.1", "> 0.1")


@dataclass(frozen=True)
class Association:
    """Agreement of conclusions at each α, and original (rows) × synthetic (columns) classes of p-values."""

    pairs: tuple[tuple[str, str], ...]
    original: tuple[float, ...]
    synthetic: tuple[float, ...]
    untestable: int
    agreement: dict[str, float | None]
    classes: tuple[tuple[int, ...], ...]

    def figures(self) -> dict[str, float | None]:
        return dict(self.agreement)

    def details(self) -> dict[str, dict[str, Any]]:
        return {"association": asdict(self) | {"class_names": CLASSES}}

    def section(self) -> Section:
        constant = f"{self.untestable} pairs hold a constant attribute: nothing to test, p = 1."
        return Section(
            title=f"Associations (χ² tests of all {len(self.pairs)} pairs)",
            headlines=tuple(Headline(r, f"χ² conclusions agree at α = {a}", digits=2) for a, r in self.agreement.items()),
            text="Rows: p-value class in the original; columns: in the synthetic data, combined over sets (Li et al. 1991). "
            "The diagonal agrees.",
            picture=Grid(self.classes, CLASSES, "p-value, synthetic", "p-value, original"),
            listings=(Listing(("α", "same conclusion"), tuple(self.agreement.items())),),
            notes=constant if self.untestable else "",
        )


def association(original: Coded, synthetics: Sequence[Coded]) -> Association:
    """Pearson's χ² without continuity correction; m sets' p-values combined as in Li et al. 1991."""
    must_compare(original, synthetics)
    pairs = subsets(len(original.names), 2)
    first, freedom = _tests([original], pairs)
    ours = _upper(first[0], freedom)
    statistics, freedom_synthetic = _tests(synthetics, pairs)
    theirs = combined_p_values(statistics, freedom_synthetic)
    return Association(
        tuple((original.names[i], original.names[j]) for i, j in pairs),
        tuple(ours.tolist()),
        tuple(theirs.tolist()),
        int(((freedom == 0) | (freedom_synthetic == 0)).sum()),
        {f"{a:g}": float(np.mean((ours <= a) == (theirs <= a))) if len(pairs) else None for a in ALPHAS},
        _classes(ours, theirs),
    )


def combined_p_values(statistics: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """One p-value per test from the χ² statistics of m sets (sets × tests): Li, Meng, Raghunathan and Rubin 1991, D2.

    r = (1 + 1/m)·Var(√d), D2 = (d̄/k − r·(m+1)/(m−1)) / (1 + r), referred to F(k, (m−1)(1 + 1/r)²·k^(−3/m)).
    With one set the between-set variance is unknown: its own p-value stands.
    """
    m = len(statistics)
    if m == 1:
        return _upper(statistics[0], freedom)
    k = np.maximum(freedom, 1)
    r = (1 + 1 / m) * np.sqrt(statistics).var(axis=0, ddof=1)
    d2 = (statistics.mean(axis=0) / k - r * (m + 1) / (m - 1)) / (1 + r)
    with np.errstate(divide="ignore"):
        v = (m - 1) * (1 + 1 / r) ** 2 * k ** (-3.0 / m)
    # Without variance between sets F(k, ∞) is χ²/k.
    d2 = np.maximum(d2, 0)
    p = np.where(np.isinf(v), chdtrc(k, d2 * k), fdtrc(k, np.where(np.isinf(v), 1, v), d2))
    return np.where(freedom == 0, 1.0, p)


def _tests(tables: Sequence[Coded], pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """χ² of every table and pair, and each pair's degrees of freedom, common to the tables.

    A category that no table has is no row of the cross-table. A constant attribute leaves 0 degrees: nothing to test.
    """
    sizes = tables[0].sizes
    seen = [sum(np.bincount(t.codes[:, j], t.counts, sizes[j]) for t in tables) for j in range(len(sizes))]
    present = np.array([np.count_nonzero(records) for records in seen])
    freedom = (present[pairs[:, 0]] - 1) * (present[pairs[:, 1]] - 1)
    return np.array([[_chi_square(table, i, j) for i, j in pairs] for table in tables]), freedom


def _chi_square(table: Coded, i: int, j: int) -> float:
    """Σ (observed − expected)² / expected = n·(Σ observed² / (row total · column total) − 1) over occupied cells."""
    cell, observed = tally(table.codes[:, [i, j]], (table.sizes[i], table.sizes[j]), table.counts)
    cell, observed = cell[observed > 0], observed[observed > 0]
    row, column = cell // table.sizes[j], cell % table.sizes[j]
    expected = np.bincount(row, observed)[row] * np.bincount(column, observed)[column]
    return max(0.0, float(table.total * ((observed**2 / expected).sum() - 1)))


def _upper(statistic: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """p = P(χ²_k ≥ statistic); 1 where nothing can be tested: a constant shows no association."""
    return np.where(freedom == 0, 1.0, chdtrc(np.maximum(freedom, 1), statistic))


def _classes(ours: np.ndarray, theirs: np.ndarray) -> tuple[tuple[int, ...], ...]:
    row, column = (np.searchsorted(ALPHAS, p, side="left") for p in (ours, theirs))
    return tuple(map(tuple, np.bincount(row * 4 + column, minlength=16).reshape(4, 4).tolist()))


def _asked(original: Coded, synthetics: Sequence[Coded], randomness: Randomness, options: Options) -> Association:
    return association(original, synthetics)


ENTRY = Measure("chi_square", 3, _asked)
