"""Which decomposition: predicted from ε, domain, sets and expected_rows alone. No data, no budget spent on choosing.

What is predicted is the part of the rows that a small margin misplaces. Only which one is least matters (docs/choosing.md).

flat     Positive noise amounts to r = ½·cells·E|noise|/rows. Cut at 0 and scaled, its odds against the records would be r : 1;
         projection takes from small counts first and leaves a quarter. By chance half of these rows suit a small margin.
tree     The same with its leaves' noise, but a family never misplaces more rows than it holds, and in a sparse table most hold
         few: r/√(1 + 3·cells/rows).
cascade  With c times the cells of its one-way margins, whose noise is x, it errs by c·x and leaves D/c of the dependence
         unexplained; elections split until the two meet, at √(D·x).
"""

from __future__ import annotations

import math
from fractions import Fraction

from schemas.domain import Domain
from schemas.plan import Considered, Plan
from schemas.release import Method, Release
from steps_engine.cascade_plan import attribute_order, make_cascade_plan, tree_draws
from steps_engine.cells import Space
from steps_engine.planning import MOST_BYTES, bytes_of, make_plan

DEPENDENCE = 0.1  # D: the part of the rows that margins alone would misplace, as a rule of thumb


def consider(release: Release) -> tuple[Considered, ...]:
    """Flat, a tree and the cascade, each with its predicted error."""
    names = ("flat", "tree") if release.spec.method.order or top(release.domain) else ("flat",)
    return (*(_table(release, name) for name in names), _cascade(release))


def _table(release: Release, name: str) -> Considered:
    rows, cells = release.domain.expected_rows, Space(release.domain).count()
    if rows is None or bytes_of(release.domain.all_cells, release.spec.method.sets.count) > MOST_BYTES:
        why = "expected_rows is not known" if rows is None else f"{cells:,} cells do not fit"
        return Considered(decomposition=name, predicted_error=1.0, why=why)
    plan = make_plan(decided(release, name))
    noise = cells * mean_noise(plan.count_draw(len(plan.layers), 1, "leaves").scale) / (2 * rows)
    if len(plan.layers) > 1:
        noise /= math.sqrt(1 + 3 * cells / rows)
    above = f" below {plan.layers[-2].nodes:,} nodes" if len(plan.layers) > 1 else ""
    return Considered(decomposition=name, predicted_error=_rounded(noise / (4 + noise) / 2), why=f"noise on {cells:,} cells{above}")


def _cascade(release: Release) -> Considered:
    rows, plan = release.domain.expected_rows, make_cascade_plan(decided(release, "cascade"))
    if rows is None:
        return Considered(decomposition="cascade", predicted_error=_rounded(DEPENDENCE), why="needs no expected_rows")
    noise = sum(map(_margin_noise, [plan] * len(plan.layers), release.domain.attributes)) / (2 * rows)
    error = min(0.5, math.sqrt(DEPENDENCE * noise))
    return Considered(decomposition="cascade", predicted_error=_rounded(error), why="dependence beyond its trees, and their noise")
