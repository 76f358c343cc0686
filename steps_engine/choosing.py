"""Which decomposition: predicted from ε, domain, sets and expected_rows alone. No data, no budget spent on choosing.

A table that is measured as a whole misplaces about ½·Σ E|noise| of its rows. A cascade measures few cells, so its noise is
small, but it models dependence only as far as its trees go. So: measure everything where the noise over the whole table moves
fewer rows than a cascade leaves unexplained, and only then. docs/cascade.md has the figures behind UNMODELLED.
"""

from __future__ import annotations

import math
from fractions import Fraction

from schemas.plan import Considered, Plan
from schemas.release import Method, Release
from steps_engine.cells import Space
from steps_engine.planning import MOST_CELLS, make_plan

UNMODELLED = 0.1  # of the rows: what a cascade of two elections a path leaves unexplained, as a rule of thumb


def consider(release: Release) -> tuple[Considered, ...]:
    """Flat, the tree whose order is given, and the cascade, each with the part of rows it would misplace."""
    rows, method = release.domain.expected_rows, release.spec.method
    cells = Space(release.domain).count()
    names = ["flat"] + (["tree"] if method.order else [])
    found = []
    for name in names:
        if release.domain.all_cells > MOST_CELLS or rows is None:
            why = "expected_rows is not known" if rows is None else f"{cells:,} cells do not fit"
            found.append(Considered(decomposition=name, predicted_error=1.0, why=why))
            continue
        plan = make_plan(decided(release, name))
        error = min(1.0, cells * mean_noise(_leaf_scale(plan)) / (2 * rows))
        found.append(Considered(decomposition=name, predicted_error=_rounded(error), why=f"noise on {cells:,} cells"))
    cascade = Considered(decomposition="cascade", predicted_error=UNMODELLED, why="dependence beyond its trees")
    return (*found, cascade)


def decided(release: Release, decomposition: str) -> Release:
    """The release with its decomposition chosen; `flat` has no use for an order."""
    method = release.spec.method
    chosen = Method(
        decomposition=decomposition, order=None if decomposition == "flat" else method.order,
        shares=method.shares if decomposition == "tree" else "equal", sets=method.sets,
    )  # fmt: skip
    return release.model_copy(update={"spec": release.spec.model_copy(update={"method": chosen})})


def mean_noise(scale: Fraction) -> float:
    """E|X| of two-sided geometric noise: 2α/(1 − α²)."""
    alpha = math.exp(-1 / float(scale))
    return 2 * alpha / (1 - alpha**2)


def _leaf_scale(plan: Plan) -> Fraction:
    return plan.count_draw(len(plan.layers), 1, "leaves").scale


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
