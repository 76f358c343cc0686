"""Which decomposition: predicted from ε, domain, sets and expected_rows alone. No data, no budget spent on choosing.

What is predicted is the part of the rows that a small margin misplaces. Only which one is least matters (docs/choosing.md).

flat     Positive noise amounts to r = ½·cells·E|noise|/rows. Cut at 0 and scaled, its odds against the records would be r : 1;
         projection takes from small counts first and leaves a quarter. By chance half of these rows suit a small margin.
tree     The same for each layer, with its error after least squares. But a family never misplaces more rows than it holds,
         and in a sparse table most hold few: the noise of the leaves counts as r/∛(1 + 20·cells/rows).
cascade  With c times the cells of its one-way margins, whose noise is x, it errs by c·x and leaves D/c of the dependence
         unexplained; elections split until the two meet, at √(D·x).
"""

from __future__ import annotations

import math

from schemas.plan import Considered
from schemas.spec.domain import Domain
from schemas.spec.release import Method, Release
from steps_engine.domain.cells import Space
from steps_engine.laws import mean_size
from steps_engine.methods.cascade.plan import attribute_order, make_cascade_plan, tree_draws
from steps_engine.methods.tree.plan import MOST_BYTES, bytes_of, make_plan
from steps_engine.scores import MOST_ROWS

DEPENDENCE = 0.1  # D: the part of the rows that one-way margins alone would misplace, as a rule of thumb


def consider(release: Release) -> tuple[Considered, ...]:
    """Flat, the tree and the cascade, each with its predicted error."""
    names = ("flat", "tree") if _order(release) else ("flat",)
    return (*(_table(release, name) for name in names), _cascade(release))


def _table(release: Release, name: str) -> Considered:
    """One table of all cells, as a tree of one layer or more."""
    rows, cells = release.domain.expected_rows, Space(release.domain).count()
    if rows is None or bytes_of(release.domain.all_cells, release.spec.method.sets.count) > MOST_BYTES:
        why = "expected_rows is not known" if rows is None else f"{cells:,} cells do not fit"
        return Considered(decomposition=name, predicted_error=1.0, why=why)
    plan = make_plan(decided(release, name))
    *above, leaves = plan.layers
    noise = cells * mean_size(plan.count_draw(leaves.layer, 1, "leaves").scale)
    if above:
        noise /= math.cbrt(1 + 20 * cells / rows)
        noise += sum(layer.nodes * layer.expected_error * math.sqrt(2 / math.pi) for layer in above)
    odds = noise / (2 * rows) / 4
    why = f"noise on {cells:,} cells" + (f" below {above[-1].nodes:,} nodes" if above else "")
    return Considered(decomposition=name, predicted_error=_rounded(odds / (1 + odds) / 2), why=why)


def _cascade(release: Release) -> Considered:
    rows, sizes = release.domain.expected_rows, release.domain.sizes
    if rows is not None and rows > MOST_ROWS:
        return Considered(decomposition="cascade", predicted_error=1.0, why="more rows than its elections are exact for")
    plan = make_cascade_plan(decided(release, "cascade"))
    if rows is None:
        return Considered(decomposition="cascade", predicted_error=DEPENDENCE, why="does without expected_rows")
    names = [layer.attributes[0] for layer in plan.layers]
    scales = [tree_draws(plan, name).counts[0][-1].scale for name in names]
    noise = sum(sizes[release.domain.index(name)] * mean_size(scale) for name, scale in zip(names, scales, strict=True))
    error = min(0.5, math.sqrt(DEPENDENCE * noise / (2 * rows)))
    why = f"noise of {len(names)} trees and dependence beyond them"
    return Considered(decomposition="cascade", predicted_error=_rounded(error), why=why)


def decided(release: Release, decomposition: str) -> Release:
    """The release with its decomposition chosen. The tree is ours unless an order is given: shares by the cube-root rule."""
    method = release.spec.method
    order = {"flat": None, "tree": _order(release), "cascade": method.order}[decomposition]
    shares = (method.shares or "cube_root") if decomposition == "tree" else None
    chosen = Method(decomposition=decomposition, order=order, shares=shares, sets=method.sets)
    return release.model_copy(update={"spec": release.spec.model_copy(update={"method": chosen})})


def _order(release: Release) -> tuple[tuple[str, ...], ...]:
    """A tree's layers above its cells: the given ones, or else one."""
    return release.spec.method.order or top_layer(release.domain)


def top_layer(domain: Domain) -> tuple[tuple[str, ...], ...]:
    """The attributes with the fewest categories, together up to √cells nodes; none where that leaves nothing above or below.

    A family is then about as large as the number of families: small enough to be told empty, few enough to be told apart.
    """
    names, nodes = [], 1
    for j in attribute_order(domain, Method()):
        nodes *= domain.sizes[j]
        if nodes**2 > domain.all_cells:
            break
        names.append(domain.names[j])
    return (tuple(names),) if names and domain.all_cells > 1 else ()


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
